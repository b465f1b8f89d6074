//! The driver's functions, called through `cust`'s bindings so that every result code is a number.
//!
//! `cust::sys` declares the functions of CUDA 11 with an `enum` of CUDA 11's result codes. Later drivers return codes that
//! the `enum` does not have, and such a value in it is undefined behaviour: [`call!`] therefore calls each function in its
//! [`Numeric`] form. `cust`'s safe types are not used above this, for the same reason: they turn each code that they do not
//! know into `UnknownError`, and just those tell a user what to do. (Its streams also drop the non-blocking flag, without
//! which a rank's launch would wait for the default stream.)

use std::ffi::{CStr, c_char, c_int};

use cust::sys::CUresult;

/// The code of success.
pub(super) const SUCCESS: c_int = 0;
/// The code of an argument that cannot be.
pub(super) const INVALID_VALUE: c_int = 1;
/// The code of a failed allocation.
pub(super) const OUT_OF_MEMORY: c_int = 2;
/// The code of a function, or of an operation, that the driver does not have.
pub(super) const NOT_SUPPORTED: c_int = 801;
/// The code of work that is still queued or running.
pub(super) const NOT_READY: c_int = 600;

/// A driver function whose result is an `enum`, as one whose result is a number.
pub(super) trait Numeric {
    /// The same function, returning `c_int`.
    type Function;

    /// Gives it.
    fn numeric(self) -> Self::Function;
}

macro_rules! numeric {
    ($($arg:ident)*) => {
        impl<$($arg),*> Numeric for unsafe extern "C" fn($($arg),*) -> CUresult {
            type Function = unsafe extern "C" fn($($arg),*) -> c_int;

            fn numeric(self) -> Self::Function {
                // SAFETY: the two types of function pointer differ in the result alone, and `CUresult` is `repr(i32)`,
                // so C passes both results in the same way; a number has no invalid value.
                unsafe { std::mem::transmute::<Self, Self::Function>(self) }
            }
        }
    };
}

numeric!(A);
numeric!(A B);
numeric!(A B C);
numeric!(A B C D);
numeric!(A B C D E);
numeric!(A B C D E F G H I J K);

/// `call!(cuMemFree_v2(address))` calls the function and gives `Result<(), Failure>`.
macro_rules! call {
    ($function:ident($($arg:expr),* $(,)?)) => {{
        let function: unsafe extern "C" fn($($crate::device::cuda::sys::any!($arg)),*) -> _ = cust::sys::$function;
        let code = $crate::device::cuda::sys::Numeric::numeric(function)($($arg),*);
        $crate::device::cuda::failure::Failure::check(stringify!($function), code)
    }};
}

/// A type to be inferred, one for each argument.
macro_rules! any {
    ($arg:expr) => {
        _
    };
}

pub(super) use {any, call};

/// The driver's own name and description of a result code; `None` where it has none, or where there is no driver.
pub(super) fn describe(code: c_int) -> Option<(String, String)> {
    type Text = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
    type Declared = unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult;

    let text = |function: Declared| {
        // SAFETY: as in `numeric!`; the parameter's type changes likewise, so that a code need not be one of the `enum`'s.
        let function = unsafe { std::mem::transmute::<Declared, Text>(function) };
        let mut text = std::ptr::null();
        // SAFETY: `text` is a live place for one pointer; the functions take any number.
        let found = unsafe { function(code, &mut text) } == SUCCESS && !text.is_null();
        // SAFETY: on success the driver gave a string of its own, which ends with a zero and lives as long as the driver.
        found.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    Some((text(cust::sys::cuGetErrorName)?, text(cust::sys::cuGetErrorString)?))
}
