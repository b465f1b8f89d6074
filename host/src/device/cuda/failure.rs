//! What the driver's result codes mean, and what to do about them.

use std::ffi::c_int;

use super::sys::{self, SUCCESS};
use crate::error::Error;

/// A driver call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The function called.
    pub(super) function: &'static str,
    /// What it answered.
    pub(super) code: c_int,
}

impl Failure {
    /// The result of a call of `function` that answered `code`.
    pub(super) fn check(function: &'static str, code: c_int) -> Result<(), Self> {
        if code == SUCCESS { Ok(()) } else { Err(Self { function, code }) }
    }

    /// The error of the operation that made the call.
    pub(super) fn during(self, operation: &str) -> Error {
        let (name, description) = self.words();
        Error::Driver {
            operation: format!("cannot {operation} ({})", self.function),
            code: self.code.unsigned_abs(),
            name,
            description,
            hint: hint(self.code).to_owned(),
        }
    }

    /// The error of a device that cannot be opened. A code that says that this machine has no usable driver or GPU makes it
    /// [`Error::Unavailable`], so that a caller may go on with the CPU device.
    pub(super) fn opening(self, operation: &str) -> Error {
        if !is_absence(self.code) {
            return self.during(operation);
        }
        let (name, description) = self.words();
        Error::Unavailable {
            what: format!(
                "cannot {operation} ({}): the driver answered {name} ({}): {description}",
                self.function, self.code
            ),
            hint: hint(self.code).to_owned(),
        }
    }

    fn words(self) -> (String, String) {
        sys::describe(self.code).unwrap_or_else(|| match self.code {
            // No driver is there to ask.
            34 => ("CUDA_ERROR_STUB_LIBRARY".to_owned(), "the driver's library is a stub".to_owned()),
            _ => ("an unknown code".to_owned(), "the driver has no description of it".to_owned()),
        })
    }
}

/// Whether the code means that there is no usable driver or GPU, rather than that the program did something wrong.
fn is_absence(code: c_int) -> bool {
    // 3: libcuda without its kernel module's answer; 999 at the first calls: the kernel module is there and broken.
    matches!(code, 3 | 34 | 46 | 100 | 802..=808 | 999)
}

/// Whether the code means that the context is lost: every later call in this process answers the same.
pub(super) fn is_lost(code: c_int) -> bool {
    matches!(code, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719)
}

/// What to do about a code.
fn hint(code: c_int) -> &'static str {
    match code {
        2 => "free buffers, or see with nvidia-smi who else uses the GPU",
        3 | 34 => {
            "install the NVIDIA driver (its library libcuda.so.1, not a toolkit's stub), in a container start it with the \
             NVIDIA runtime (--gpus all), or choose the device \"cpu\""
        }
        46 => "another process has the GPU to itself: see nvidia-smi, and set its compute mode to default",
        100 => {
            "see whether nvidia-smi lists a GPU and CUDA_VISIBLE_DEVICES does not hide it, or choose the device \"cpu\""
        }
        101 => "nvidia-smi -L lists the GPUs",
        221 | 223 => {
            "the driver's own PTX compiler is missing or disabled (CUDA_DISABLE_PTX_JIT): install the whole driver"
        }
        200 | 209 | 218 | 222 => "rebuild the PTX for this GPU's architecture, or update the driver",
        214 | 220 => "the hardware failed: see the kernel's log for an Xid line",
        600 => "the work has not ended yet: synchronize first",
        701 => "the block needs more registers or shared memory than there are: launch fewer threads",
        800 => {
            "the system does not permit it to this user or in this container (fabric handles need the IMEX service)"
        }
        801 => "this device, or this version of the driver, does not do it",
        802 => {
            "on a machine with NVSwitch, start nvidia-fabricmanager, or wait until the GPUs are initialised"
        }
        803 => {
            "the driver's library and its kernel module are of different versions: restart the machine or reload the module; \
             in a container, take its compatibility libraries (cuda-compat) off the library path, or update the host's driver"
        }
        804 => {
            "remove CUDA's forward-compatibility package from the library path: this GPU does not support it"
        }
        805..=809 => "look at the MPS control daemon's log, or restart it",
        900..=908 => "the operation has no place in a stream capture",
        999 => "see the kernel's log for an NVRM or Xid line",
        code if is_lost(code) => {
            "the GPU's context is lost and every later call in this process fails: restart the program; \
             compute-sanitizer finds the access at fault"
        }
        _ => "the CUDA driver API's manual describes the code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn success_is_no_failure() {
        assert_eq!(Failure::check("cuInit", 0), Ok(()));
        assert_eq!(Failure::check("cuInit", 100), Err(Failure { function: "cuInit", code: 100 }));
    }

    #[test]
    fn absence_and_failure_are_of_different_kinds() {
        for code in [3, 34, 46, 100, 802, 803, 999] {
            let error = Failure { function: "cuInit", code }.opening("start");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{code}");
        }
        for code in [1, 2, 101, 201, 700] {
            let error = Failure { function: "cuInit", code }.opening("start");
            assert_eq!(error.kind(), ErrorKind::Driver, "{code}");
        }
    }

    #[test]
    fn the_text_names_operation_function_code_and_remedy() {
        let text =
            Failure { function: "cuStreamSynchronize", code: 700 }.during("wait for the stream").to_string();
        for part in ["cannot wait for the stream", "cuStreamSynchronize", "700", "restart the program"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let text = Failure { function: "cuInit", code: 34 }.opening("start the driver").to_string();
        for part in ["cannot start the driver", "cuInit", "34", "install the NVIDIA driver", "\"cpu\""] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn codes_that_no_binding_knows_have_an_error_too() {
        for code in [-1, 12345, i32::MAX] {
            assert_eq!(Failure { function: "cuInit", code }.during("start").kind(), ErrorKind::Driver);
        }
    }
}
