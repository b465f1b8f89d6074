//! C15: a store cannot acquire.

use warpwire_device::abi::Global;
use warpwire_device::arch::{Acquire, Sys, store_u64};

fn main() {
    // SAFETY: never run.
    unsafe { store_u64::<Acquire, Sys>(Global::NULL, 1) };
}
