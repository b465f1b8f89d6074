//! Kernels that the tests check warpwire's arithmetic and its primitives' promises with, on every device. They are no part of
//! the library, whose module a driver compiles as a whole.
//!
//! Their PTX is built by
//! `cargo xtask build-ptx --manifest-path tests/kernels/Cargo.toml --arch sm_90 --out target/check-ptx`; the tests on a GPU
//! look for it as `WARPWIRE_CHECK_PTX` says.
#![no_std]

pub mod convert;
pub mod late_warp;
pub mod reduce;
pub mod section;

use warpwire_device::module;

module! {
    /// The kernels of this crate, for the CPU device.
    pub static MODULE =
        [convert::Convert, late_warp::LateWarp, reduce::ReduceRows, section::BoundedSection];
}
