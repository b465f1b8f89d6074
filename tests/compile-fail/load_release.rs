//! C15: a load cannot release.

use warpwire_device::abi::Global;
use warpwire_device::arch::{Release, Sys, load_u64};

fn main() {
    // SAFETY: never run.
    unsafe { load_u64::<Release, Sys>(Global::NULL) };
}
