//! A queue of work, and the OS thread that does it.

use std::any::Any;
use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use super::super::LaunchConfig;
use super::super::driver::{DriverEvent, DriverFunction, DriverGraph, DriverStream};
use super::CpuFunction;
use super::capacity::Capacity;
use super::event::{CpuEvent, Mark};
use super::grid::Launch;
use crate::error::{Error, Result};
use crate::monitor::Monitor;

/// Bytes of the thread's stack: it runs one of a launch's blocks itself.
const STACK_BYTES: usize = 512 << 10;

/// A stream: its queue, and the thread that works it off.
///
/// Where a launch fails, what is queued behind it is not run until the failure has been taken by `synchronize`, except for
/// events: somebody may be waiting for them.
#[derive(Debug)]
pub(super) struct CpuStream {
    queue: Arc<Monitor<Queue>>,
    worker: Option<JoinHandle<()>>,
}

#[derive(Clone, Debug)]
enum Work {
    Launch(Arc<Launch>),
    Copy { destination: u64, source: u64, bytes: usize },
    Fill { destination: u64, value: u8, bytes: usize },
    Word { destination: u64, value: u64 },
    Event(Arc<Mark>),
    Graph(Arc<[Work]>),
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Work>,
    /// Pieces of work queued, and ended, since the stream began.
    queued: u64,
    ended: u64,
    failure: Option<Error>,
    recording: Option<Vec<Work>>,
    closed: bool,
}

impl CpuStream {
    pub(super) fn new(capacity: &'static Capacity) -> Result<Self> {
        let queue = Arc::new(Monitor::default());
        let of_worker = Arc::clone(&queue);
        let worker = thread::Builder::new()
            .name("warpwire-stream".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || work_off(&of_worker, capacity))
            .map_err(|source| Error::System { operation: "starting a stream's thread".to_owned(), source })?;
        Ok(Self { queue, worker: Some(worker) })
    }

    fn push(&self, work: Work) {
        self.queue.change(|queue| match &mut queue.recording {
            Some(recording) => recording.push(work),
            None => {
                queue.waiting.push_back(work);
                queue.queued += 1;
            }
        });
    }
}

/// What the stream's thread does, until the queue is closed and empty.
fn work_off(queue: &Monitor<Queue>, capacity: &'static Capacity) {
    let next = |queue: &mut Queue| match queue.waiting.pop_front() {
        Some(work) => Some(Some((work, queue.failure.is_some()))),
        None => queue.closed.then_some(None),
    };
    while let Some((work, skip)) = queue.wait(next) {
        let failure = work.run(skip, capacity).err();
        // Before its end is told: who waits for that may free what it used.
        drop(work);
        queue.change(|queue| {
            queue.ended += 1;
            if let Some(failure) = failure {
                queue.failure.get_or_insert(failure);
            }
        });
    }
}

impl Work {
    fn run(&self, skip: bool, capacity: &'static Capacity) -> Result<()> {
        match self {
            Self::Event(mark) => mark.pass(),
            _ if skip => {}
            Self::Launch(launch) => launch.run(capacity)?,
            Self::Copy { destination, source, bytes } => {
                // SAFETY: the contract of `DriverStream::copy`, which made this work.
                unsafe { ptr::copy_nonoverlapping(*source as *const u8, *destination as *mut u8, *bytes) };
            }
            Self::Fill { destination, value, bytes } => {
                // SAFETY: the contract of `DriverStream::fill`, which made this work.
                unsafe { ptr::write_bytes(*destination as *mut u8, *value, *bytes) };
            }
            Self::Word { destination, value } => {
                // SAFETY: the contract of `DriverStream::write_word`, which made this work.
                unsafe { AtomicU64::from_ptr(*destination as *mut u64) }.store(*value, Ordering::Release);
            }
            Self::Graph(recorded) => recorded.iter().try_for_each(|work| work.run(false, capacity))?,
        }
        Ok(())
    }
}

impl DriverStream for CpuStream {
    unsafe fn launch(&self, function: &dyn DriverFunction, config: LaunchConfig, args: &[u8]) -> Result<()> {
        let function: &CpuFunction =
            function.as_any().downcast_ref().ok_or(Error::ForeignObject { what: "function" })?;
        // SAFETY: the caller's contract.
        let launch = unsafe { Launch::new(function.entry, config, args) };
        self.push(Work::Launch(Arc::new(launch)));
        Ok(())
    }

    unsafe fn copy(&self, destination: u64, source: u64, bytes: usize) -> Result<()> {
        self.push(Work::Copy { destination, source, bytes });
        Ok(())
    }

    unsafe fn fill(&self, destination: u64, value: u8, bytes: usize) -> Result<()> {
        self.push(Work::Fill { destination, value, bytes });
        Ok(())
    }

    unsafe fn write_word(&self, destination: u64, value: u64) -> Result<()> {
        self.push(Work::Word { destination, value });
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        let target = self.queue.with(|queue| queue.queued);
        self.queue.wait(|queue| (queue.ended >= target).then(|| queue.failure.take().map_or(Ok(()), Err)))
    }

    fn is_idle(&self) -> Result<bool> {
        Ok(self.queue.with(|queue| queue.ended == queue.queued))
    }

    fn record(&self) -> Result<Box<dyn DriverEvent>> {
        let mark = Arc::new(Mark::default());
        self.push(Work::Event(Arc::clone(&mark)));
        Ok(Box::new(CpuEvent(mark)))
    }

    fn begin_capture(&self) -> Result<()> {
        self.queue.with(|queue| {
            if queue.recording.is_some() {
                return Err(Error::CaptureActive { operation: "begin a capture" });
            }
            queue.recording = Some(Vec::new());
            Ok(())
        })
    }

    fn end_capture(&self) -> Result<Arc<dyn DriverGraph>> {
        let recorded = self.queue.with(|queue| queue.recording.take()).ok_or(Error::NotCapturing)?;
        Ok(Arc::new(CpuGraph(recorded.into())))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CpuStream {
    fn drop(&mut self) {
        self.queue.change(|queue| queue.closed = true);
        if let Some(worker) = self.worker.take() {
            // It catches what kernels panic with, so an error here is a fault of its own, and printed by its panic.
            let _ = worker.join();
        }
    }
}

/// Recorded work.
#[derive(Debug)]
struct CpuGraph(Arc<[Work]>);

impl DriverGraph for CpuGraph {
    unsafe fn launch(&self, stream: &dyn DriverStream) -> Result<()> {
        let stream: &CpuStream =
            stream.as_any().downcast_ref().ok_or(Error::ForeignObject { what: "graph" })?;
        stream.push(Work::Graph(Arc::clone(&self.0)));
        Ok(())
    }
}
