//! Barriers, votes and shuffles: the convergent operations.
//!
//! They go through LLVM's intrinsics, which are marked convergent. An `asm!` block is not: the compiler may move a
//! `bar.sync` in one into a branch, or duplicate it.
//!
//! Source: "Parallel Synchronization and Communication Instructions: bar", ": vote.sync", ": activemask", "Data
//! Movement and Conversion Instructions: shfl.sync", PTX ISA 8.7.

use core::arch::{asm, nvptx};

use super::sreg::{block_size, thread_index};
use crate::arch::WARP_SIZE;

#[allow(improper_ctypes, reason = "LLVM intrinsics, not C functions: `bool` is their i1")]
unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier.cta.red.or.aligned.all"]
    fn barrier_red_or(barrier: i32, flag: bool) -> bool;
    #[link_name = "llvm.nvvm.activemask"]
    fn active_mask() -> i32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: i32);
    #[link_name = "llvm.nvvm.vote.any.sync"]
    fn vote_any_sync(mask: i32, flag: bool) -> bool;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shfl_sync_idx(mask: i32, value: i32, lane: i32, clamp: i32) -> i32;
}

/// `bar.sync 0`: waits for every thread of the block, whose accesses before it are then visible in the block. Called by
/// the block, convergently.
#[inline(always)]
pub fn block_sync() {
    // SAFETY: the caller's contract: every thread of the block comes here.
    unsafe { nvptx::_syncthreads() }
}

/// `bar.red.or`: as [`block_sync`], and true in every thread where `flag` was true in any. Called by the block.
#[inline(always)]
pub fn block_sync_or(flag: bool) -> bool {
    // SAFETY: as above.
    unsafe { barrier_red_or(0, flag) }
}

/// The lanes that the calling thread's warp has: fewer than 32 in the last warp of a block of another size.
#[inline(always)]
fn warp_members() -> i32 {
    let first = thread_index() & !(WARP_SIZE - 1);
    let lanes = block_size() - first;
    if lanes >= WARP_SIZE { -1 } else { ((1_u32 << lanes) - 1) as i32 }
}

/// `bar.warp.sync`: waits for every lane of the warp. Called by the warp.
#[inline(always)]
pub fn warp_sync() {
    // SAFETY: the caller's contract: every lane of the warp comes here, and the mask names just those that exist.
    unsafe { bar_warp_sync(warp_members()) }
}

/// `vote.sync.any`: true in every lane where `flag` was true in any. Called by the warp.
#[inline(always)]
pub fn warp_any(flag: bool) -> bool {
    // SAFETY: as above.
    unsafe { vote_any_sync(warp_members(), flag) }
}

/// Lanes of a warp that have come to one place together.
#[derive(Clone, Copy, Debug)]
pub struct Lanes(i32);

/// `activemask`: the lanes that are here with the calling one; at least itself, and others that come here may be missing. Called
/// by a thread.
#[inline(always)]
pub fn lanes_here() -> Lanes {
    // SAFETY: reads which lanes execute it, and waits for none.
    Lanes(unsafe { active_mask() })
}

/// `vote.sync.any`: true in each of `lanes` where `flag` was true in any. Called by all of them, each with the value that
/// [`lanes_here`] gave them together.
#[inline(always)]
pub fn any_of(lanes: Lanes, flag: bool) -> bool {
    // SAFETY: the caller's contract: the mask names the lanes that come here, the calling one among them.
    unsafe { vote_any_sync(lanes.0, flag) }
}

/// `shfl.sync.idx`: the value that lane `lane` gave. Called by the warp; `lane` is below the warp's number of lanes.
#[inline(always)]
pub fn warp_shuffle(value: u32, lane: u32) -> u32 {
    // SAFETY: as above; 0x1f: no segment, lanes clamp at 31.
    unsafe { shfl_sync_idx(warp_members(), value as i32, lane as i32, 0x1f) as u32 }
}

/// `nanosleep`: suspends the thread for about so long, at most twice as long. Called by a thread.
///
/// Source: "Miscellaneous Instructions: nanosleep", PTX ISA 8.7 (sm_70).
#[inline(always)]
pub fn sleep_ns(duration: u32) {
    // SAFETY: waits, and touches nothing.
    unsafe { asm!("nanosleep.u32 {};", in(reg32) duration, options(nomem, nostack)) };
}

/// Lets others run between two looks at a word. A GPU schedules its warps by itself: nothing to do.
#[inline(always)]
pub fn pause() {}
