//! Fences.
//!
//! ```text
//! fence.sem.scope;    .sem: acq_rel, sc    .scope: cta, gpu, sys    PTX 6.0, sm_70
//! ```
//!
//! Source: "Parallel Synchronization and Communication Instructions: membar / fence", PTX ISA 8.7.

use core::arch::asm;

use super::by_order_and_scope;
use crate::arch::{FenceKind, FenceOrder, Scope};

macro_rules! emit_fence {
    ($order:literal, $scope:literal, ()) => {
        // SAFETY: a fence has no operand and touches no memory itself.
        unsafe { asm!(concat!("fence.", $order, ".", $scope, ";"), options(nostack)) }
    };
}

/// `fence.O.S`: orders the calling thread's accesses before it with those after it. Called by a thread.
#[inline(always)]
pub fn fence<O: FenceOrder, S: Scope>() {
    by_order_and_scope!(O: FenceKind [AcqRel "acq_rel", SeqCst "sc"], S, emit_fence!());
}
