//! Fences.

use core::sync::atomic::{self, Ordering};

use crate::arch::{FenceKind, FenceOrder, Scope};

/// Orders the calling thread's accesses before it with those after it.
pub fn fence<O: FenceOrder, S: Scope>() {
    atomic::fence(match O::KIND {
        FenceKind::AcqRel => Ordering::AcqRel,
        FenceKind::SeqCst => Ordering::SeqCst,
    });
}
