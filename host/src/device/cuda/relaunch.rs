//! A kernel as the one node of a graph, whose arguments are set before each launch.
//!
//! The driver makes up a launch's commands anew each time, and those of a graph once: on an H200 a launch takes 4.2 us of the host's
//! time, setting the node's arguments and launching the graph 2.6 (docs/performance.md).

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cust::sys::{CUDA_KERNEL_NODE_PARAMS, CUfunction, CUgraph, CUgraphExec, CUgraphNode};

use super::context::{Context, Current, warn_on_failure};
use super::failure::Failure;
use super::function::CudaFunction;
use super::stream::CudaStream;
use super::sys::call;
use crate::device::LaunchConfig;
use crate::device::driver::{DriverFunction, DriverRelaunch, DriverStream};
use crate::error::{Error, ModuleError, Result};

/// The graph. Its launches do not overlap: each begins when the one before has ended, whatever their streams.
#[derive(Debug)]
pub(super) struct CudaRelaunch {
    context: Arc<Context>,
    name: String,
    function: CUfunction,
    args_size: usize,
    config: LaunchConfig,
    /// Locked from the setting of the arguments to the launch that takes them.
    graph: Mutex<Handles>,
}

/// A graph, its one node, and the executable made of it. The graph stays, since its node names the executable's.
#[derive(Debug)]
struct Handles {
    graph: CUgraph,
    node: CUgraphNode,
    executable: CUgraphExec,
}

// SAFETY: the handles are the driver's and belong to no thread; that only one thread uses them at a time is the mutex' work.
unsafe impl Send for Handles {}

// SAFETY: a function handle is the driver's and belongs to no thread; it is only read, and its module stays loaded as long as the
// context, which the value holds.
unsafe impl Send for CudaRelaunch {}
// SAFETY: as above; the graph is behind its mutex.
unsafe impl Sync for CudaRelaunch {}

impl CudaRelaunch {
    /// The graph of one launch of `function`, which is of the stream's context and whose shape has been checked, sent to the GPU in
    /// the order of `stream`.
    pub(super) fn new(stream: &CudaStream, function: &CudaFunction, config: LaunchConfig) -> Result<Self> {
        let context = stream.context();
        let current = context.enter()?;
        let during = |failure: Failure| failure.during(&format!("make a graph of {}", function.name()));
        // A node has to have some arguments; no launch takes these.
        let mut zeros = vec![0u8; function.args_size()];
        let mut arguments = [zeros.as_mut_ptr().cast::<c_void>()];
        let params = node(function.raw(), config, &mut arguments);
        let graph = Handles::new(context, &current, &params).map_err(during)?;
        let executable = graph.executable;
        // Dropped, and so destroyed, where the upload fails.
        let relaunch = Self {
            context: Arc::clone(context),
            name: function.name().to_owned(),
            function: function.raw(),
            args_size: function.args_size(),
            config,
            graph: Mutex::new(graph),
        };
        // Now, and not by the first launch, which somebody may wait for whose kernel has the GPU.
        // SAFETY: graph and stream are of the context that is current.
        unsafe { call!(cuGraphUpload(executable, stream.raw())) }.map_err(during)?;
        Ok(relaunch)
    }
}

impl DriverRelaunch for CudaRelaunch {
    unsafe fn launch(&self, stream: &dyn DriverStream, args: &[u8]) -> Result<()> {
        let stream = stream
            .as_any()
            .downcast_ref::<CudaStream>()
            .filter(|stream| stream.context().is(&self.context))
            .ok_or(Error::ForeignObject { what: "kernel" })?;
        if args.len() != self.args_size {
            let (kernel, expected, got) = (self.name.clone(), self.args_size, args.len());
            return Err(ModuleError::ArgumentMismatch { kernel, expected, got }.into());
        }
        let _current = self.context.enter()?;
        // The driver reads `args_size` bytes through it before it returns.
        let mut arguments = [args.as_ptr().cast_mut().cast::<c_void>()];
        let params = node(self.function, self.config, &mut arguments);
        let during = |failure: Failure| failure.during(&format!("launch {}", self.name));
        // The handles do not change: a panic elsewhere leaves them whole.
        let graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the node is that of the graph that the executable was made of, and no other thread uses either; launches that are
        // queued keep the arguments that they were launched with.
        unsafe { call!(cuGraphExecKernelNodeSetParams(graph.executable, graph.node, &params)) }
            .map_err(during)?;
        // SAFETY: executable and stream are of the context that is current; what the kernel does is the caller's contract.
        unsafe { call!(cuGraphLaunch(graph.executable, stream.raw())) }.map_err(during)
    }
}

/// The node of a launch of this shape. One pointer to arguments, since a kernel has one parameter.
fn node(
    function: CUfunction,
    config: LaunchConfig,
    arguments: &mut [*mut c_void; 1],
) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: config.blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: config.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: config.shared_bytes,
        kernelParams: arguments.as_mut_ptr(),
        extra: std::ptr::null_mut(),
    }
}

impl Handles {
    fn new(
        context: &Context,
        _current: &Current<'_>,
        params: &CUDA_KERNEL_NODE_PARAMS,
    ) -> std::result::Result<Self, Failure> {
        let mut graph = std::ptr::null_mut();
        // SAFETY: `graph` is a live place for the result.
        unsafe { call!(cuGraphCreate(&mut graph, 0)) }?;
        let mut node = std::ptr::null_mut();
        // SAFETY: `node` is a live place for the result; the node depends on none, and the driver copies what `params` points at.
        let made = unsafe { call!(cuGraphAddKernelNode(&mut node, graph, std::ptr::null(), 0, params)) }
            // SAFETY: the graph is live, and the context current.
            .and_then(|()| unsafe { context.late().instantiate(graph) });
        match made {
            Ok(executable) => Ok(Self { graph, node, executable }),
            Err(failure) => {
                // SAFETY: nobody else has the graph.
                warn_on_failure("destroy a graph", unsafe { call!(cuGraphDestroy(graph)) });
                Err(failure)
            }
        }
    }
}

impl Drop for CudaRelaunch {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        let Handles { graph, executable, .. } = self.graph.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the handle is this value's; the driver lets a launch that is queued end first.
        warn_on_failure("destroy a graph", unsafe { call!(cuGraphExecDestroy(*executable)) });
        // SAFETY: the handle is this value's, and nothing uses it any more.
        warn_on_failure("destroy a graph", unsafe { call!(cuGraphDestroy(*graph)) });
    }
}
