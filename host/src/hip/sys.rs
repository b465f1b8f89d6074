//! The HIP runtime's functions, found when they are first wanted: programs link with nothing of AMD's.
//!
//! Source: "HIP Runtime API Reference", version 5.2; `hip/hip_runtime_api.h`. The functions used here are the same in 6.x.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

use libloading::Library;

use crate::error::{Error, Result};

/// The runtime's library by its names, newest first.
const NAMES: [&str; 4] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];

/// `hipError_t`: 0 is success.
type Status = c_int;

/// `hipErrorNoDevice` and `hipErrorInvalidDevice`: what the runtime's start answers where there is no GPU, by its version.
pub(super) const NO_DEVICE: [Status; 2] = [100, 101];

/// What launches have: end, buffer and size of the argument block, by their numbers in the header.
pub(super) const LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = ptr::without_provenance_mut(1);
pub(super) const LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = ptr::without_provenance_mut(2);
pub(super) const LAUNCH_PARAM_END: *mut c_void = ptr::without_provenance_mut(3);

/// Which way `memcpy` goes.
#[derive(Clone, Copy)]
#[repr(i32)]
pub(super) enum CopyKind {
    HostToDevice = 1,
    DeviceToHost = 2,
}

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($arg:ty),*);)*) => {
        /// The functions, and the library that holds them.
        #[derive(Debug)]
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($arg),*) -> Status,)*
            error_name: unsafe extern "C" fn(Status) -> *const c_char,
            error_string: unsafe extern "C" fn(Status) -> *const c_char,
            /// Keeps the pointers above valid.
            _library: Library,
        }

        impl Functions {
            fn find(library: Library) -> Result<Self> {
                Ok(Self {
                    $(
                        // SAFETY: the type is the header's.
                        $field: *unsafe { library.get(concat!($symbol, "\0").as_bytes()) }.map_err(|_| lacks($symbol))?,
                    )*
                    // SAFETY: the type is the header's.
                    error_name: *unsafe { library.get(b"hipGetErrorName\0") }.map_err(|_| lacks("hipGetErrorName"))?,
                    // SAFETY: the type is the header's.
                    error_string: *unsafe { library.get(b"hipGetErrorString\0") }.map_err(|_| lacks("hipGetErrorString"))?,
                    _library: library,
                })
            }
        }
    };
}

functions! {
    init = "hipInit": fn(c_uint);
    device_count = "hipGetDeviceCount": fn(*mut c_int);
    set_device = "hipSetDevice": fn(c_int);
    module_load_data = "hipModuleLoadData": fn(*mut *mut c_void, *const c_void);
    module_unload = "hipModuleUnload": fn(*mut c_void);
    module_get_function = "hipModuleGetFunction": fn(*mut *mut c_void, *mut c_void, *const c_char);
    module_launch_kernel = "hipModuleLaunchKernel":
        fn(*mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void, *mut *mut c_void, *mut *mut c_void);
    malloc = "hipMalloc": fn(*mut *mut c_void, usize);
    free = "hipFree": fn(*mut c_void);
    memcpy = "hipMemcpy": fn(*mut c_void, *const c_void, usize, CopyKind);
    synchronize = "hipDeviceSynchronize": fn();
}

impl Functions {
    /// Opens the runtime: `at`, or the first of its names that the loader finds.
    pub(super) fn open(at: Option<&Path>) -> Result<Self> {
        if let Some(path) = at {
            // SAFETY: the caller names a HIP runtime, whose initialisers ask nothing of the program.
            return unsafe { Library::new(path) }.map_err(|error| missing(&error)).and_then(Self::find);
        }
        let mut first = None;
        for name in NAMES {
            // SAFETY: the runtime's initialisers ask nothing of the program that loads it.
            match unsafe { Library::new(name) } {
                Ok(library) => return Self::find(library),
                Err(error) => first = first.or(Some(error)),
            }
        }
        // `NAMES` is not empty, so there is a first error.
        Err(missing(&first.unwrap_or(libloading::Error::DlOpenUnknown)))
    }

    /// Fails where `status` is no success.
    pub(super) fn check(&self, operation: &'static str, status: Status) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: any number may be given; the answer is a string that lives as long as the library.
        let text = |function: unsafe extern "C" fn(Status) -> *const c_char| unsafe {
            let text = function(status);
            if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        };
        Err(Error::Driver {
            operation: operation.to_owned(),
            code: status as u32,
            name: text(self.error_name),
            description: text(self.error_string),
            hint: "see what rocminfo says of the GPU and its driver".to_owned(),
        })
    }
}

fn missing(error: &libloading::Error) -> Error {
    Error::Unavailable {
        what: format!("there is no HIP runtime, libamdhip64.so, on this machine ({error})"),
        hint: "install ROCm, and name its lib folder in LD_LIBRARY_PATH".to_owned(),
    }
}

fn lacks(symbol: &str) -> Error {
    Error::Unavailable {
        what: format!("the HIP runtime has no function {symbol}"),
        hint: "install ROCm 5.2 or newer".to_owned(),
    }
}
