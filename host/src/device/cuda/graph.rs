//! Recorded work, ready to be queued as one.

use std::sync::{Arc, Mutex};

use cust::sys::{CUgraph, CUgraphExec, CUstream};

use super::context::{Context, Current, warn_on_failure};
use super::failure::Failure;
use super::stream::CudaStream;
use super::sys::call;
use crate::device::driver::{DriverGraph, DriverStream};
use crate::error::{Error, Result};

/// An executable graph.
#[derive(Debug)]
pub(super) struct CudaGraph {
    context: Arc<Context>,
    /// Locked for each launch: the driver does not do it for graphs.
    executable: Mutex<Executable>,
}

#[derive(Debug)]
struct Executable(CUgraphExec);

// SAFETY: the handle belongs to no thread; that only one thread uses it at a time is the mutex' work.
unsafe impl Send for Executable {}

impl CudaGraph {
    /// Makes what a capture recorded executable, and sends it to the GPU in the order of `stream`. `ended` is how the
    /// capture ended; `graph` is null where nothing came of it, and is destroyed here.
    pub(super) fn instantiate(
        context: &Arc<Context>,
        _current: &Current<'_>,
        graph: CUgraph,
        ended: std::result::Result<(), Failure>,
        stream: CUstream,
    ) -> Result<Self> {
        // SAFETY: the graph is the capture's own, and the context is current.
        let made = ended.and_then(|()| unsafe { context.late().instantiate(graph) });
        if !graph.is_null() {
            // SAFETY: nobody else has the graph, and an executable one does not need it.
            warn_on_failure("destroy a captured graph", unsafe { call!(cuGraphDestroy(graph)) });
        }
        let executable = made.map_err(|failure| failure.during("make a graph of the capture"))?;
        // Dropped, and so destroyed, where the upload fails.
        let graph = Self { context: Arc::clone(context), executable: Mutex::new(Executable(executable)) };
        // SAFETY: graph and stream are of the context that is current.
        unsafe { call!(cuGraphUpload(executable, stream)) }
            .map_err(|failure| failure.during("send the graph to the GPU"))?;
        Ok(graph)
    }
}

impl DriverGraph for CudaGraph {
    unsafe fn launch(&self, stream: &dyn DriverStream) -> Result<()> {
        let stream = stream
            .as_any()
            .downcast_ref::<CudaStream>()
            .filter(|stream| stream.context().is(&self.context))
            .ok_or(Error::ForeignObject { what: "graph" })?;
        let _current = self.context.enter()?;
        let executable = self.executable.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: graph and stream are of the context that is current, and no other thread launches the graph; what it runs
        // is the caller's contract.
        unsafe { call!(cuGraphLaunch(executable.0, stream.raw())) }
            .map_err(|failure| failure.during("launch a graph"))
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        let Executable(executable) =
            self.executable.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: the handle is this graph's; the driver lets a launch that is queued end first.
        warn_on_failure("destroy a graph", unsafe { call!(cuGraphExecDestroy(*executable)) });
    }
}
