//! A module on a GPU: its PTX, compiled by the driver, and the functions in it.

use std::collections::BTreeMap;
use std::ffi::{CString, c_uint, c_void};
use std::sync::Arc;

use cust::sys::{CUfunction, CUjit_option as JitOption, CUmodule};

use super::context::{Context, Current};
use super::failure::Failure;
use super::function::CudaFunction;
use super::ptx::{self, Choice, EntryShape, Gpu};
use super::sys::call;
use crate::device::ModuleSource;
use crate::device::driver::{DriverFunction, DriverModule};
use crate::device::module::unknown_kernel;
use crate::error::{Error, Result};

/// Room for each of the two logs of the driver's compiler.
const LOG_BYTES: usize = 16 << 10;

/// A loaded module.
#[derive(Debug)]
pub(super) struct CudaModule {
    name: &'static str,
    functions: BTreeMap<String, Arc<CudaFunction>>,
}

impl CudaModule {
    /// Chooses among the module's texts, has it compiled, and loads the code of every entry at once: code that is loaded at
    /// its first launch waits for the whole device, and so for kernels of other ranks that wait for this very launch.
    pub(super) fn load(context: &Arc<Context>, source: &ModuleSource) -> Result<Self> {
        let properties = context.properties();
        let gpu = Gpu { name: &properties.name, capability: context.capability(), cuda: context.cuda() };
        let choice = ptx::choose(source.name, source.ptx, gpu)?;
        let shapes = ptx::entries(source.name, choice, properties.max_threads_per_block)?;

        let current = context.enter()?;
        let module = compile(&current, source.name, choice)?;
        // From here on the context owns it, also where a function fails to load.
        context.keep_module(module);
        let mut functions = BTreeMap::new();
        for shape in shapes {
            let raw = find(&current, module, &shape)?;
            functions
                .insert(shape.name.clone(), Arc::new(CudaFunction::load(context, &current, raw, shape)?));
        }
        tracing::debug!(module = source.name, architecture = choice.architecture, "loaded");
        Ok(Self { name: source.name, functions })
    }
}

impl DriverModule for CudaModule {
    fn function(&self, name: &str, args_size: usize) -> Result<Arc<dyn DriverFunction>> {
        let known = || self.functions.keys().map(String::as_str);
        let function = self.functions.get(name).ok_or_else(|| unknown_kernel(name, self.name, known()))?;
        if function.args_size() != args_size {
            return Err(Error::ArgumentMismatch {
                kernel: name.to_owned(),
                expected: function.args_size(),
                got: args_size,
            });
        }
        Ok(Arc::clone(function) as Arc<dyn DriverFunction>)
    }
}

/// Has the driver compile a text for the current context's GPU.
fn compile(_current: &Current<'_>, name: &str, choice: Choice) -> Result<CUmodule> {
    let image = CString::new(choice.text).map_err(|error| Error::InvalidPtx {
        module: name.to_owned(),
        architecture: choice.architecture,
        reason: error.to_string(),
    })?;
    let (mut info, mut errors) = (vec![0u8; LOG_BYTES], vec![0u8; LOG_BYTES]);
    let mut options = [
        JitOption::CU_JIT_INFO_LOG_BUFFER,
        JitOption::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        JitOption::CU_JIT_ERROR_LOG_BUFFER,
        JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    // A value that fits a pointer stands in its place, not behind it.
    let size = std::ptr::without_provenance_mut::<c_void>(LOG_BYTES);
    let mut values = [info.as_mut_ptr().cast(), size, errors.as_mut_ptr().cast(), size];
    let mut module = std::ptr::null_mut();
    let count = options.len() as c_uint;
    // SAFETY: the image ends with a zero; there are as many values as options, and both logs have the size that is said.
    // All of them outlive the call, and the driver keeps none.
    let loaded = unsafe {
        call!(cuModuleLoadDataEx(
            &mut module,
            image.as_ptr().cast(),
            count,
            options.as_mut_ptr(),
            values.as_mut_ptr()
        ))
    };
    loaded.map_err(|failure| Error::ModuleLoad {
        module: name.to_owned(),
        architecture: choice.architecture,
        log: match (log_text(&errors), log_text(&info)) {
            (errors, info) if errors.is_empty() && info.is_empty() => "it is empty".to_owned(),
            (errors, info) if errors.is_empty() => info,
            (errors, _) => errors,
        },
        source: Box::new(failure.during("compile the PTX")),
    })?;
    let notes = log_text(&info);
    if !notes.is_empty() {
        tracing::debug!(module = name, "the driver's compiler: {notes}");
    }
    Ok(module)
}

/// The text in a log, up to the zero that ends it.
fn log_text(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).trim().to_owned()
}

fn find(_current: &Current<'_>, module: CUmodule, shape: &EntryShape) -> Result<CUfunction> {
    let during = |failure: Failure| failure.during(&format!("find the kernel {} in its module", shape.name));
    let name =
        CString::new(shape.name.as_str()).map_err(|_| Failure { function: "cuModuleGetFunction", code: 500 });
    let mut function = std::ptr::null_mut();
    // SAFETY: the module is loaded in the current context; the name ends with a zero.
    name.and_then(|name| unsafe { call!(cuModuleGetFunction(&mut function, module, name.as_ptr())) })
        .map_err(during)?;
    Ok(function)
}

#[cfg(test)]
mod tests {
    use super::log_text;

    #[test]
    fn a_log_ends_at_its_zero() {
        assert_eq!(log_text(b"ptxas error: x\n\0rest"), "ptxas error: x");
        assert_eq!(log_text(b"\0"), "");
        assert_eq!(log_text(b""), "");
        assert_eq!(log_text(b"full"), "full");
    }
}
