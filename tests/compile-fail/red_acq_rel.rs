//! C15: an addition without a result cannot acquire, so it cannot do both.

use warpwire_device::abi::Global;
use warpwire_device::arch::{AcqRel, Sys, red_add_u64};

fn main() {
    // SAFETY: never run.
    unsafe { red_add_u64::<AcqRel, Sys>(Global::NULL, 1) };
}
