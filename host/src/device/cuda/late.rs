//! The driver's functions that `cust`'s bindings lack, or that older drivers lack: looked up when a device is opened.

use std::ffi::{c_int, c_ulonglong};

use cust::sys::{CUfunction, CUgraph, CUgraphExec};
use libloading::Library;

use super::failure::Failure;

/// The driver's library by its names, in the order tried.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

type FuncLoad = unsafe extern "C" fn(CUfunction) -> c_int;
type GraphInstantiateWithFlags = unsafe extern "C" fn(*mut CUgraphExec, CUgraph, c_ulonglong) -> c_int;

/// The late-bound functions, and the library that holds them.
#[derive(Debug)]
pub(super) struct Late {
    func_load: Option<FuncLoad>,
    graph_instantiate: Option<GraphInstantiateWithFlags>,
    /// Keeps the pointers above valid.
    _library: Library,
}

impl Late {
    /// Opens the driver's library. The error is the loader's own text.
    pub(super) fn open() -> Result<Self, libloading::Error> {
        let library = Self::library()?;
        // SAFETY: the types are those of cuda.h: cuFuncLoad(CUfunction), since CUDA 12.4.
        let func_load = unsafe { library.get::<FuncLoad>(b"cuFuncLoad\0") }.ok().map(|f| *f);
        // SAFETY: as above: cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long), since CUDA 11.4.
        let graph_instantiate =
            unsafe { library.get::<GraphInstantiateWithFlags>(b"cuGraphInstantiateWithFlags\0") }
                .ok()
                .map(|f| *f);
        Ok(Self { func_load, graph_instantiate, _library: library })
    }

    fn library() -> Result<Library, libloading::Error> {
        let mut first = None;
        for name in NAMES {
            // SAFETY: the driver's initialisers ask nothing of the program that loads it.
            match unsafe { Library::new(name) } {
                Ok(library) => return Ok(library),
                Err(error) => first = first.or(Some(error)),
            }
        }
        // `NAMES` is not empty, so there is a first error.
        Err(first.unwrap_or(libloading::Error::DlOpenUnknown))
    }

    /// Loads a function's code now instead of at its first launch, where the driver can; `Ok(false)` where it cannot.
    ///
    /// # Safety
    ///
    /// `function` is live and its context current.
    pub(super) unsafe fn load_function(&self, function: CUfunction) -> Result<bool, Failure> {
        let Some(load) = self.func_load else { return Ok(false) };
        // SAFETY: the caller's contract.
        Failure::check("cuFuncLoad", unsafe { load(function) }).map(|()| true)
    }

    /// Makes a graph executable. `cuGraphInstantiate` has had three signatures; the one with flags has had one.
    ///
    /// # Safety
    ///
    /// `graph` is live and its context current.
    pub(super) unsafe fn instantiate(&self, graph: CUgraph) -> Result<CUgraphExec, Failure> {
        let mut executable = std::ptr::null_mut();
        match self.graph_instantiate {
            Some(instantiate) => {
                // SAFETY: `executable` is a live place for the result; the caller's contract.
                let code = unsafe { instantiate(&mut executable, graph, 0) };
                Failure::check("cuGraphInstantiateWithFlags", code)?;
            }
            None => {
                let (node, log) = (std::ptr::null_mut(), std::ptr::null_mut());
                // SAFETY: as above; the error node and the log are optional.
                unsafe { super::sys::call!(cuGraphInstantiate_v2(&mut executable, graph, node, log, 0)) }?;
            }
        }
        Ok(executable)
    }
}
