//! The instructions, and the only module with `asm!`.
//!
//! `nvptx` has one file for each instruction family; `cpu` has the same names on core atomics and the CPU device's lanes.
//! Memory order and scope are types, so a pair that the instruction does not have does not compile:
//!
//! ```compile_fail
//! use warpwire_device::abi::Global;
//! use warpwire_device::arch::{Release, Sys, load_u64};
//! // A load cannot release.
//! let value = unsafe { load_u64::<Release, Sys>(Global::NULL) };
//! ```
//!
//! Why not `core::sync::atomic`: compiled to PTX, its operations lose their order and their scope (a release `fetch_add`
//! comes out as `atom.global.add.u64`, which is relaxed and of `.gpu` scope).

mod order;
mod params;
#[cfg(not(warpwire_sm90))]
mod soft;

#[cfg(not(target_arch = "nvptx64"))]
mod cpu;
#[cfg(target_arch = "nvptx64")]
mod nvptx;

#[cfg(not(target_arch = "nvptx64"))]
pub use cpu::*;
#[cfg(target_arch = "nvptx64")]
pub use nvptx::*;

pub use order::{
    AcqRel, Acquire, Cta, FenceKind, FenceOrder, Gpu, LoadKind, LoadOrder, Relaxed, Release, RmwKind,
    RmwOrder, Scope, ScopeKind, SeqCst, StoreKind, StoreOrder, Sys,
};
pub use params::Params;

/// Threads of a warp.
pub const WARP_SIZE: u32 = 32;
