//! Bulk asynchronous copies between global and shared memory, and the barriers that they complete on.
//!
//! ```text
//! mbarrier.init.shared.b64                                  [addr], count;                        PTX 7.0, sm_80
//! mbarrier.arrive.expect_tx.shared.b64                      state, [addr], tx_count;              PTX 8.0, sm_90
//! mbarrier.try_wait.parity.shared.b64                       done, [addr], parity;                 PTX 7.8, sm_90
//! cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [dst], [src], size, [mbar];   PTX 8.0, sm_90
//! cp.async.bulk.global.shared::cta.bulk_group               [dst], [src], size;                   PTX 8.0, sm_90
//! cp.async.bulk.commit_group;  cp.async.bulk.wait_group{.read} N;                                 PTX 8.0, sm_90
//! fence.mbarrier_init.release.cluster;                                                            PTX 8.0, sm_90
//! ```
//!
//! Sources: "Data Movement and Conversion Instructions: cp.async.bulk" and its completion mechanisms, "Parallel
//! Synchronization and Communication Instructions: mbarrier", PTX ISA 8.7. A block that is no cluster is one of its own, so
//! its `.shared::cluster` addresses are its `.shared` ones.

use core::arch::asm;

use super::Shared;
use crate::abi::Global;

/// Makes the 8 bytes at `at` a barrier whose phase ends with one arrival and the bytes announced. Called by one thread, before
/// any other use; that thread's own uses may follow at once.
///
/// # Safety
///
/// 8 aligned bytes of the block's shared memory, used for nothing else.
#[inline(always)]
pub unsafe fn mbarrier_init(at: Shared) {
    // SAFETY: the caller's contract. The fence shows the barrier to the copy engine.
    unsafe {
        asm!("mbarrier.init.shared.b64 [{}], 1; fence.mbarrier_init.release.cluster;", in(reg32) at.0, options(nostack))
    };
}

/// Arrives at the barrier and announces `bytes` bytes that copies will bring. Called by one thread.
///
/// # Safety
///
/// A barrier lies there, and its phase before this one has been waited for.
#[inline(always)]
pub unsafe fn mbarrier_arrive_expect_tx(at: Shared, bytes: u32) {
    // SAFETY: the caller's contract.
    unsafe {
        asm!("{{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [{}], {}; }}",
             in(reg32) at.0, in(reg32) bytes, options(nostack))
    };
}

/// Whether the phase of this parity has ended; the hardware lets the thread sleep for a while before it says no. What the
/// copies brought is then visible to the thread. Called by a thread.
///
/// # Safety
///
/// A barrier lies there.
#[inline(always)]
pub unsafe fn mbarrier_try_wait_parity(at: Shared, parity: u32) -> bool {
    let done: u32;
    // SAFETY: the caller's contract.
    unsafe {
        asm!("{{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [{1}], {2}; selp.u32 {0}, 1, 0, p; }}",
             out(reg32) done, in(reg32) at.0, in(reg32) parity, options(nostack))
    };
    done != 0
}

/// Begins to copy `bytes` bytes to shared memory; the barrier counts them when they are there. Called by one thread.
///
/// # Safety
///
/// Both addresses and `bytes` are multiples of 16; the source is mapped and live, its writers ordered before; nobody touches
/// the destination until the barrier's phase has ended.
#[inline(always)]
pub unsafe fn bulk_load(dst: Shared, src: Global<u8>, bytes: u32, mbarrier: Shared) {
    // SAFETY: the caller's contract.
    unsafe {
        asm!("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{}], [{}], {}, [{}];",
             in(reg32) dst.0, in(reg64) src.address(), in(reg32) bytes, in(reg32) mbarrier.0, options(nostack))
    };
}

/// Begins to copy `bytes` bytes from shared memory, and closes the group of this one copy. Called by one thread.
///
/// # Safety
///
/// Both addresses and `bytes` are multiples of 16; the destination is mapped and live; nobody writes the source until
/// [`bulk_wait_read`] says that the group has read it.
#[inline(always)]
pub unsafe fn bulk_store(dst: Global<u8>, src: Shared, bytes: u32) {
    // SAFETY: the caller's contract.
    unsafe {
        asm!("cp.async.bulk.global.shared::cta.bulk_group [{}], [{}], {}; cp.async.bulk.commit_group;",
             in(reg64) dst.address(), in(reg32) src.0, in(reg32) bytes, options(nostack))
    };
}

/// Waits until at most `N` of the calling thread's latest groups have still to read their source. Called by a thread.
#[inline(always)]
pub fn bulk_wait_read<const N: u32>() {
    // SAFETY: waits, and touches nothing itself.
    unsafe { asm!("cp.async.bulk.wait_group.read {};", const N, options(nostack)) };
}

/// Waits until all of the calling thread's groups are written and visible to it. Called by a thread.
#[inline(always)]
pub fn bulk_wait_all() {
    // SAFETY: as above.
    unsafe { asm!("cp.async.bulk.wait_group 0;", options(nostack)) };
}
