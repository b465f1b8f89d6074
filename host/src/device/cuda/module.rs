//! A module on a GPU: its PTX, compiled by the driver as a whole or in parts, and the functions in it.

use std::ffi::{CString, c_uint, c_void};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cust::sys::{CUfunction, CUjit_option as JitOption, CUmodule};

use super::context::{Context, Current};
use super::failure::Failure;
use super::function::CudaFunction;
use super::ptx::{self, EntryShape, Gpu};
use super::sys::call;
use crate::device::ModuleSource;
use crate::device::driver::{DriverFunction, DriverModule};
use crate::device::module::unknown_kernel;
use crate::error::{Error, ModuleError, Result};

/// Room for each of the two logs of the driver's compiler.
const LOG_BYTES: usize = 16 << 10;

/// A module, of which those parts are loaded whose kernels have been asked for.
#[derive(Debug)]
pub(super) struct CudaModule {
    name: &'static str,
    architecture: u32,
    context: Arc<Context>,
    parts: Vec<Part>,
}

/// A text of a module.
struct Part {
    text: &'static str,
    shapes: Vec<EntryShape>,
    /// None before it is loaded.
    loaded: Mutex<Option<Kernels>>,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the text itself: it has thousands of lines.
        let kernels: Vec<&str> = self.shapes.iter().map(|shape| shape.name.as_str()).collect();
        f.debug_struct("Part").field("kernels", &kernels).finish_non_exhaustive()
    }
}

/// The kernels of a loaded part.
type Kernels = Arc<[Arc<CudaFunction>]>;

impl CudaModule {
    /// Chooses among the module's texts, and loads what was chosen if it is one; parts are loaded when they are asked for.
    pub(super) fn load(context: &Arc<Context>, source: &ModuleSource) -> Result<Self> {
        let properties = context.properties();
        let gpu = Gpu { name: &properties.name, capability: context.capability(), cuda: context.cuda() };
        let choice = ptx::choose(source.name, source.ptx, gpu)?;
        let shapes = ptx::entries(source.name, &choice, properties.max_threads_per_block)?;
        let parts = choice.texts.iter().zip(shapes);
        let module = Self {
            name: source.name,
            architecture: choice.architecture,
            context: Arc::clone(context),
            parts: parts.map(|(text, shapes)| Part { text, shapes, loaded: Mutex::default() }).collect(),
        };
        if let [whole] = &module.parts[..] {
            module.kernels(whole)?;
        }
        Ok(module)
    }

    /// The part's kernels, in the order of its shapes, loaded. Whoever wants the same part meanwhile waits for it instead of
    /// compiling it again; other parts are not held up.
    fn kernels(&self, part: &Part) -> Result<Kernels> {
        // A panic elsewhere leaves it as it was: it is set once the part is loaded.
        let mut loaded = part.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let kernels = match &mut *loaded {
            Some(kernels) => kernels,
            none => none.insert(self.load_part(part)?),
        };
        Ok(Arc::clone(kernels))
    }

    /// Has a part compiled, and loads the code of every entry at once: code that is loaded at its first launch waits for the
    /// whole device, and so for kernels of other ranks that wait for this very launch.
    fn load_part(&self, part: &Part) -> Result<Kernels> {
        let current = self.context.enter()?;
        let module = self.compile(&current, part.text)?;
        // From here on the context owns it, also where a function fails to load.
        self.context.keep_module(module);
        let load = |shape: &EntryShape| {
            let raw = find(&current, module, shape)?;
            Ok(Arc::new(CudaFunction::load(&self.context, &current, raw, shape.clone())?))
        };
        let kernels: Kernels = part.shapes.iter().map(load).collect::<Result<_>>()?;
        let (module, architecture) = (self.name, self.architecture);
        tracing::debug!(module, architecture, kernels = kernels.len(), bytes = part.text.len(), "loaded");
        Ok(kernels)
    }

    /// Has the driver compile a text for the GPU of the current context, which is the module's.
    fn compile(&self, _current: &Current<'_>, text: &str) -> Result<CUmodule> {
        let image = CString::new(text).map_err(|error| {
            Error::Module(ModuleError::InvalidPtx {
                module: self.name.to_owned(),
                architecture: self.architecture,
                reason: error.to_string(),
            })
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
        loaded.map_err(|failure| {
            Error::Module(ModuleError::Load {
                module: self.name.to_owned(),
                architecture: self.architecture,
                log: match (log_text(&errors), log_text(&info)) {
                    (errors, info) if errors.is_empty() && info.is_empty() => "it is empty".to_owned(),
                    (errors, info) if errors.is_empty() => info,
                    (errors, _) => errors,
                },
                source: Box::new(failure.during("compile the PTX")),
            })
        })?;
        let notes = log_text(&info);
        if !notes.is_empty() {
            tracing::debug!(module = self.name, "the driver's compiler: {notes}");
        }
        Ok(module)
    }
}

impl DriverModule for CudaModule {
    fn function(&self, name: &str, args_size: usize) -> Result<Arc<dyn DriverFunction>> {
        let place = |part: &Part| part.shapes.iter().position(|shape| shape.name == name);
        let Some((part, at)) = self.parts.iter().find_map(|part| Some((part, place(part)?))) else {
            let known = self.parts.iter().flat_map(|part| &part.shapes).map(|shape| shape.name.as_str());
            return Err(unknown_kernel(name, self.name, known));
        };
        let expected = part.shapes[at].args_size;
        if expected != args_size {
            return Err(
                ModuleError::ArgumentMismatch { kernel: name.to_owned(), expected, got: args_size }.into()
            );
        }
        let kernel = Arc::clone(&self.kernels(part)?[at]);
        Ok(kernel)
    }
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
