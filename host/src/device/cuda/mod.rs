//! An NVIDIA GPU as a device, through the driver API and `cust`'s bindings of it.
//!
//! # Layers
//!
//! `sys` (calls), `failure` (result codes), `late` (functions looked up), `ptx` (which text a GPU takes) < `context` <
//! `event`, `function` < `module`, `graph`, `relaunch`, `stream` < `memory`, `physical` < `shared_memory` < `pointer`, `multicast`, `peers`
//! < `memory_driver` < this.
//!
//! # Threads
//!
//! Any thread may call anything: each entry makes the primary context current and puts back what the thread had before.
//!
//! # Many ranks on one GPU
//!
//! Ranks that wait for each other need their kernels to run at the same time, so nothing that one rank does may wait for
//! another's kernel. Streams do not wait for the default stream; copies and allocations go through a stream of their own. Two
//! things are left to the program:
//! - the driver spreads a process' streams over 8 hardware queues, and behind a kernel that waits its queue stands still: a
//!   program with more than 7 ranks on a GPU sets `CUDA_DEVICE_MAX_CONNECTIONS` to 32 before its first CUDA call
//!   ([`Properties::max_concurrent_streams`] is what it comes to);
//! - loading code waits for every kernel that runs: ranks ask for their kernels before the first launch. A module, or a part
//!   of one, is loaded as a whole when the first of its kernels is asked for, so that no launch has to wait for it.

mod context;
mod event;
mod failure;
mod function;
mod graph;
mod late;
mod memory;
mod memory_driver;
mod module;
mod multicast;
mod peers;
mod physical;
mod pointer;
mod ptx;
mod relaunch;
mod shared_memory;
mod stream;
mod sys;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) use self::peers::peers;

use self::context::Context;
use self::memory::Heap;
use self::module::CudaModule;
use self::stream::CudaStream;
use super::driver::{Driver, DriverModule, DriverStream};
use super::{ModuleSource, Properties};
use crate::error::Result;

/// Opens GPU `ordinal`. Without a driver or a GPU the error's kind is
/// [`Unavailable`](crate::ErrorKind::Unavailable).
pub(super) fn open(ordinal: u32) -> Result<Arc<dyn Driver>> {
    let context = Arc::new(Context::open(ordinal)?);
    let heap = Arc::new(Heap::new(Arc::clone(&context))?);
    Ok(Arc::new(CudaDevice { context, heap, modules: Mutex::default() }))
}

/// An open GPU.
#[derive(Debug)]
struct CudaDevice {
    context: Arc<Context>,
    heap: Arc<Heap>,
    /// What has been loaded, so that each rank of a process does not compile the same PTX again.
    modules: Mutex<Vec<(Texts, Arc<CudaModule>)>>,
}

/// A module's texts: two modules with the same ones are the same.
struct Texts(&'static [(u32, &'static str)]);

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the texts themselves: they have thousands of lines.
        f.debug_tuple("Texts").field(&self.0.len()).finish()
    }
}

impl Driver for CudaDevice {
    fn properties(&self) -> &Properties {
        self.context.properties()
    }

    fn stream(&self) -> Result<Arc<dyn DriverStream>> {
        Ok(Arc::new(CudaStream::new(Arc::clone(&self.context))?))
    }

    fn bind_thread(&self) -> Result<()> {
        self.context.bind_thread()
    }

    fn is_bound_to_thread(&self) -> Result<bool> {
        self.context.is_bound_to_thread()
    }

    fn relax_capture(&self) -> Result<()> {
        context::relax_capture()
    }

    fn load(&self, source: &ModuleSource) -> Result<Arc<dyn DriverModule>> {
        // Held while the driver compiles: whoever wants the same module meanwhile waits for it instead of doing it again.
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, module)) = modules.iter().find(|(texts, _)| std::ptr::eq(texts.0, source.ptx)) {
            return Ok(Arc::clone(module) as Arc<dyn DriverModule>);
        }
        let module = Arc::new(CudaModule::load(&self.context, source)?);
        modules.push((Texts(source.ptx), Arc::clone(&module)));
        Ok(module)
    }
}
