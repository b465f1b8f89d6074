//! A kernel's code on a GPU.

use std::any::Any;
use std::ffi::c_int;
use std::sync::Arc;

use cust::sys::{CUfunction, CUfunction_attribute as Attribute};
use warpwire_device::abi::LaunchLimits;

use super::context::{Context, Current};
use super::failure::Failure;
use super::ptx::EntryShape;
use super::sys::call;
use crate::device::driver::DriverFunction;
use crate::error::{LaunchError, ModuleError, Result};

/// A function of a module.
#[derive(Debug)]
pub(super) struct CudaFunction {
    /// Keeps the module loaded.
    context: Arc<Context>,
    raw: CUfunction,
    name: String,
    args_size: usize,
    limits: LaunchLimits,
    max_dynamic_shared: u32,
}

// SAFETY: a function handle is the driver's and belongs to no thread; it is only read, and its attributes are set before the
// value exists.
unsafe impl Send for CudaFunction {}
// SAFETY: as above.
unsafe impl Sync for CudaFunction {}

impl CudaFunction {
    /// Loads the function's code, and lets its launches have all the shared memory that the GPU gives.
    pub(super) fn load(
        context: &Arc<Context>,
        current: &Current<'_>,
        raw: CUfunction,
        shape: EntryShape,
    ) -> Result<Self> {
        let EntryShape { name, args_size, mut limits } = shape;
        let during = |failure: Failure| failure.during(&format!("load the kernel {name}"));
        // SAFETY: the function is of a module that the context keeps, and the context is current.
        unsafe { context.late().load_function(raw) }.map_err(during)?;
        let threads =
            attribute(current, raw, Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK).map_err(during)?;
        limits.max_threads = limits.max_threads.min(threads);
        let fixed =
            attribute(current, raw, Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES).map_err(during)?;
        let max_dynamic_shared = context.shared_limit().saturating_sub(fixed);
        let which = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = c_int::try_from(max_dynamic_shared).unwrap_or(c_int::MAX);
        // The driver refuses more than 48 KiB unless it is told beforehand. Told here, once, no launch has to, and no two
        // launches contend for it.
        // SAFETY: as above.
        unsafe { call!(cuFuncSetAttribute(raw, which, bytes)) }.map_err(during)?;
        Ok(Self { context: Arc::clone(context), raw, name, args_size, limits, max_dynamic_shared })
    }

    /// The driver's handle.
    pub(super) fn raw(&self) -> CUfunction {
        self.raw
    }

    /// The context that it was loaded in.
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Bytes of its parameters.
    pub(super) fn args_size(&self) -> usize {
        self.args_size
    }

    /// Refuses an argument block of another size than the kernel's.
    pub(super) fn check_args(&self, args: &[u8]) -> Result<()> {
        if args.len() == self.args_size {
            return Ok(());
        }
        let (kernel, expected, got) = (self.name.clone(), self.args_size, args.len());
        Err(ModuleError::ArgumentMismatch { kernel, expected, got }.into())
    }

    /// Refuses a block that wants more shared memory than the function's own leaves.
    pub(super) fn check_shared(&self, shared_bytes: u32) -> Result<()> {
        if shared_bytes <= self.max_dynamic_shared {
            return Ok(());
        }
        Err(LaunchError::SharedTooLarge {
            kernel: self.name.clone(),
            asked: shared_bytes,
            limit: self.max_dynamic_shared,
        }
        .into())
    }
}

impl DriverFunction for CudaFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> LaunchLimits {
        self.limits
    }

    fn resident_blocks(&self, threads: u32, shared_bytes: u32) -> Result<u32> {
        self.check_shared(shared_bytes)?;
        let _current = self.context.enter()?;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        let mut each = 0;
        // SAFETY: `each` is a live place for the result; the function's module stays loaded, since `self` holds its context.
        unsafe {
            call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut each,
                self.raw,
                threads,
                shared_bytes as usize
            ))
        }
        .map_err(|failure| failure.during(&format!("ask how many blocks of {} the GPU holds", self.name)))?;
        let each = u32::try_from(each).unwrap_or(0);
        Ok(each.saturating_mul(self.context.properties().multiprocessors))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn attribute(
    _current: &Current<'_>,
    function: CUfunction,
    which: Attribute,
) -> std::result::Result<u32, Failure> {
    let mut value = 0;
    // SAFETY: `value` is a live place for the result; the function is loaded in the current context.
    unsafe { call!(cuFuncGetAttribute(&mut value, which, function)) }?;
    Ok(u32::try_from(value).unwrap_or(0))
}
