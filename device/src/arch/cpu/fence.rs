//! Fences, and an addition with one.

use core::sync::atomic::{self, Ordering};

use super::ldst::atom_add_u64;
use crate::abi::Global;
use crate::arch::{FenceKind, FenceOrder, RmwOrder, Scope};

/// Orders the calling thread's accesses before it with those after it.
pub fn fence<O: FenceOrder, S: Scope>() {
    atomic::fence(match O::KIND {
        FenceKind::AcqRel => Ordering::AcqRel,
        FenceKind::SeqCst => Ordering::SeqCst,
    });
}

/// Adds and returns the value before; then a fence. Called by a thread.
///
/// # Safety
///
/// `at` is aligned, mapped and live.
#[inline]
pub unsafe fn atom_add_fence_u64<O: RmwOrder, S: Scope, F: FenceOrder, FS: Scope>(
    at: Global<u64>,
    value: u64,
) -> u64 {
    // SAFETY: the caller's contract.
    let before = unsafe { atom_add_u64::<O, S>(at, value) };
    fence::<F, FS>();
    before
}
