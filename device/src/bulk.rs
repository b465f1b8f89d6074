//! Copies by the bulk asynchronous copy engine (sm_90 and newer): one thread moves what a whole block of loads and stores
//! does, and the others are free.
//!
//! A ring of stages in shared memory: each is filled by a bulk load that completes on the stage's mbarrier, emptied by a bulk
//! store, and filled again once that store has read it. Several loads and stores are in flight at all times.
//!
//! A wait on an mbarrier here is for the hardware alone, never for a peer, so it takes no policy.

use crate::abi::Global;
use crate::arch::{self, Shared};
use crate::coop::{Block, Grid, Group, SyncGroup, Thread};
use crate::copy;

/// Bytes of a stage.
const STAGE: u32 = 16 << 10;

/// Stages of the ring.
const STAGES: u32 = 12;

/// Stores that may still be reading their stage when the next one begins.
const READING: u32 = 2;

/// Bytes before the first stage: an mbarrier for each, rounded up.
const BARRIERS: u32 = 128;

/// The dynamic shared memory that a block's ring takes, in bytes: the launch has to ask for it.
pub const RING_BYTES: u32 = BARRIERS + STAGES * STAGE;

/// Copies `bytes` bytes from `src` to `dst`, any length and alignment. Called by every block of a grid, once in a kernel; the
/// blocks share the work. Where the two addresses differ modulo 16 the copy engine cannot serve, and the threads copy.
///
/// # Ordering
///
/// When the calling block's first thread returns, the block's share is written and visible to that thread; a signal of its
/// publishes it. The source's writers are ordered before the call.
///
/// # Safety
///
/// As for [`copy::copy`], and the launch has [`RING_BYTES`] of dynamic shared memory, used for nothing else.
#[inline(always)]
pub unsafe fn copy(dst: Global<u8>, src: Global<u8>, bytes: u64) {
    let head = (dst.address().wrapping_neg() % 16).min(bytes);
    let body = (bytes - head) / 16 * 16;
    if !(dst.address() ^ src.address()).is_multiple_of(16) || body == 0 {
        // SAFETY: the caller's contract. The block's leader has to be behind all of it before it signals.
        unsafe { copy::copy(Grid, dst, src, bytes) };
        Block.sync();
        return;
    }
    if !Block.is_leader() {
        return;
    }
    // SAFETY: the caller's contract; head, body and tail partition the range, and the body is aligned on both sides.
    unsafe {
        if arch::block_index() == 0 {
            copy::edges(Thread, dst, src, head, head + body, bytes);
        }
        ring(dst.byte_add(head), src.byte_add(head), body);
    }
}

/// Copies the calling block's stages' worth of `bytes` bytes. Called by one thread.
///
/// # Safety
///
/// As for [`copy`]; both addresses and `bytes` are multiples of 16.
#[inline(always)]
unsafe fn ring(dst: Global<u8>, src: Global<u8>, bytes: u64) {
    let base = arch::dynamic_shared();
    let barrier = |slot: u32| base.byte_add(8 * slot);
    let stage = |slot: u32| base.byte_add(BARRIERS + slot * STAGE);
    let mut slot = 0;
    while slot < STAGES {
        // SAFETY: the caller's contract: the ring's memory is this call's.
        unsafe { arch::mbarrier_init(barrier(slot)) };
        slot += 1;
    }

    // The blocks take pieces of a stage's length in turn.
    let step = u64::from(STAGE) * u64::from(arch::grid_size());
    let first = u64::from(STAGE) * u64::from(arch::block_index());
    let length = |at: u64| (bytes - at).min(u64::from(STAGE)) as u32;
    let fill = |at: u64, into: Shared, on: Shared| {
        // SAFETY: a piece of the source, into a stage that is free.
        unsafe {
            arch::mbarrier_arrive_expect_tx(on, length(at));
            arch::bulk_load(into, src.byte_add(at), length(at), on);
        }
    };

    let (mut load, mut filled) = (first, 0);
    while filled < STAGES && load < bytes {
        fill(load, stage(filled), barrier(filled));
        load += step;
        filled += 1;
    }
    // The stage that is emptied next, its phase, and how many stages before it a store may still be reading.
    let (mut store, mut slot, mut parity, mut refill, mut behind) = (first, 0, 0, 0, 0);
    while store < bytes {
        // SAFETY: a barrier of the ring.
        while !unsafe { arch::mbarrier_try_wait_parity(barrier(slot), parity) } {}
        // SAFETY: a piece of the destination, from a stage that is full.
        unsafe { arch::bulk_store(dst.byte_add(store), stage(slot), length(store)) };
        store += step;
        slot += 1;
        if slot == STAGES {
            (slot, parity) = (0, parity ^ 1);
        }
        if behind < READING {
            behind += 1;
            continue;
        }
        arch::bulk_wait_read::<READING>();
        if load < bytes {
            fill(load, stage(refill), barrier(refill));
            load += step;
            refill = if refill + 1 == STAGES { 0 } else { refill + 1 };
        }
    }
    arch::bulk_wait_all();
}
