//! A queue of work on a GPU.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cust::sys::{CUstream, CUstream_flags, CUstreamCaptureMode};

use super::context::{Context, Current, warn_on_failure};
use super::event::CudaEvent;
use super::failure::Failure;
use super::function::CudaFunction;
use super::graph::CudaGraph;
use super::relaunch::CudaRelaunch;
use super::sys::{NOT_READY, call};
use crate::device::LaunchConfig;
use crate::device::driver::{DriverEvent, DriverFunction, DriverGraph, DriverRelaunch, DriverStream};
use crate::error::{Error, Result};

/// A stream, which does not wait for the default stream.
#[derive(Debug)]
pub(super) struct CudaStream {
    context: Arc<Context>,
    raw: CUstream,
    /// Whether a capture has begun. A wait for a stream that is being captured would spoil the capture, so it is refused
    /// here.
    capturing: AtomicBool,
}

// SAFETY: a stream handle belongs to no thread, and the driver locks what stands behind it.
unsafe impl Send for CudaStream {}
// SAFETY: as above.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    /// A new stream.
    pub(super) fn new(context: Arc<Context>) -> Result<Self> {
        let raw = create_stream(&context.enter()?).map_err(|failure| failure.during("create a stream"))?;
        Ok(Self { context, raw, capturing: AtomicBool::new(false) })
    }

    /// The driver's handle.
    pub(super) fn raw(&self) -> CUstream {
        self.raw
    }

    /// The context that it was made in.
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    fn refuse_capturing(&self, operation: &'static str) -> Result<()> {
        if self.capturing.load(Ordering::Acquire) { Err(Error::CaptureActive { operation }) } else { Ok(()) }
    }
}

impl CudaStream {
    /// The function as this context's, where it takes a launch of this shape.
    fn own<'a>(&self, function: &'a dyn DriverFunction, config: LaunchConfig) -> Result<&'a CudaFunction> {
        let function = function
            .as_any()
            .downcast_ref::<CudaFunction>()
            .filter(|function| function.context().is(&self.context))
            .ok_or(Error::ForeignObject { what: "kernel" })?;
        function.check_shared(config.shared_bytes)?;
        Ok(function)
    }
}

impl DriverStream for CudaStream {
    unsafe fn launch(&self, function: &dyn DriverFunction, config: LaunchConfig, args: &[u8]) -> Result<()> {
        let function = self.own(function, config)?;
        function.check_args(args)?;
        let _current = self.context.enter()?;
        // One pointer, since a kernel has one parameter. The driver reads `args_size` bytes through it before it returns.
        let mut parameters = [args.as_ptr().cast_mut().cast::<c_void>()];
        let (blocks, threads, shared) = (config.blocks, config.threads, config.shared_bytes);
        // SAFETY: function and stream are of the context that is current; `args` is as long as the parameter, and its
        // content is the caller's contract.
        unsafe {
            call!(cuLaunchKernel(
                function.raw(),
                blocks,
                1,
                1,
                threads,
                1,
                1,
                shared,
                self.raw,
                parameters.as_mut_ptr(),
                std::ptr::null_mut()
            ))
        }
        .map_err(|failure| failure.during(&format!("launch {}", function.name())))
    }

    fn relaunch(
        &self,
        function: &dyn DriverFunction,
        config: LaunchConfig,
    ) -> Result<Option<Box<dyn DriverRelaunch>>> {
        let function = self.own(function, config)?;
        Ok(Some(Box::new(CudaRelaunch::new(self, function, config)?)))
    }

    unsafe fn copy(&self, destination: u64, source: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: the caller's contract; the stream is of the context that is current.
        unsafe { call!(cuMemcpyDtoDAsync_v2(destination, source, bytes, self.raw)) }
            .map_err(|failure| failure.during("queue a copy"))
    }

    unsafe fn fill(&self, destination: u64, value: u8, bytes: usize) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the caller's contract; the stream is of the context that is current.
        unsafe { call!(cuMemsetD8Async(destination, value, bytes, self.raw)) }
            .map_err(|failure| failure.during("queue a fill"))
    }

    unsafe fn write_word(&self, destination: u64, value: u64) -> Result<()> {
        let _current = self.context.enter()?;
        // 0, the default: a barrier of system scope stands between what was queued before and the write.
        // SAFETY: the caller's contract; the stream is of the context that is current.
        unsafe { self.context.late().stream_write_value(self.raw, destination, value, 0) }
            .map_err(|failure| failure.during("queue the setting of a word"))
    }

    unsafe fn write_words(&self, words: [(u64, u64); 2]) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the caller's contract; the stream is of the context that is current.
        unsafe { self.context.late().write_words(self.raw, words) }
            .map_err(|failure| failure.during("queue the setting of two words"))
    }

    fn synchronize(&self) -> Result<()> {
        self.refuse_capturing("wait for the stream")?;
        let _current = self.context.enter()?;
        // SAFETY: the stream is of the context that is current.
        unsafe { call!(cuStreamSynchronize(self.raw)) }
            .map_err(|failure| failure.during("wait for the stream"))
    }

    fn is_idle(&self) -> Result<bool> {
        self.refuse_capturing("ask whether the stream is idle")?;
        let _current = self.context.enter()?;
        // SAFETY: as above.
        match unsafe { call!(cuStreamQuery(self.raw)) } {
            Ok(()) => Ok(true),
            Err(Failure { code: NOT_READY, .. }) => Ok(false),
            Err(failure) => Err(failure.during("ask whether the stream is idle")),
        }
    }

    fn record(&self) -> Result<Box<dyn DriverEvent>> {
        self.refuse_capturing("record an event")?;
        Ok(Box::new(CudaEvent::record(&self.context, self.raw)?))
    }

    fn begin_capture(&self) -> Result<()> {
        if self.capturing.swap(true, Ordering::AcqRel) {
            return Err(Error::CaptureActive { operation: "begin a capture" });
        }
        let begun = self.context.enter().and_then(|_current| {
            // Relaxed: the closure may allocate or load a module meanwhile; none of that touches this stream.
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
            // SAFETY: the stream is of the context that is current.
            unsafe { call!(cuStreamBeginCapture_v2(self.raw, mode)) }
                .map_err(|failure| failure.during("begin a capture"))
        });
        if begun.is_err() {
            self.capturing.store(false, Ordering::Release);
        }
        begun
    }

    fn end_capture(&self) -> Result<Arc<dyn DriverGraph>> {
        if !self.capturing.load(Ordering::Acquire) {
            return Err(Error::NotCapturing);
        }
        let current = self.context.enter()?;
        let mut graph = std::ptr::null_mut();
        // SAFETY: `graph` is a live place for the result; the stream is of the context that is current.
        let ended = unsafe { call!(cuStreamEndCapture(self.raw, &mut graph)) };
        // The capture has ended, whatever came of it.
        self.capturing.store(false, Ordering::Release);
        let executable = CudaGraph::instantiate(&self.context, &current, graph, ended, self.raw)?;
        Ok(Arc::new(executable))
    }

    fn with_native(&self, take: &mut dyn FnMut(*mut c_void)) -> Result<bool> {
        let _current = self.context.enter()?;
        take(self.raw.cast());
        Ok(true)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: the handle is this stream's; the driver lets queued work end before it frees what the stream has.
        warn_on_failure("destroy a stream", unsafe { call!(cuStreamDestroy_v2(self.raw)) });
    }
}

/// A stream that does not wait for the default one.
pub(super) fn create_stream(_current: &Current<'_>) -> std::result::Result<CUstream, Failure> {
    let mut stream = std::ptr::null_mut();
    let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: `stream` is a live place for the result, and a context is current.
    unsafe { call!(cuStreamCreate(&mut stream, flags)) }?;
    Ok(stream)
}
