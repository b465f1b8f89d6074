//! The grid barrier, many times over.

use static_assertions::const_assert_eq;
use warpwire_device::abi::{BarrierHandle, Global, PolicyHandle};
use warpwire_device::barrier::GridBarrier;
use warpwire_device::coop::{Block, Group};
use warpwire_device::spin::Policy;
use warpwire_device::{arch, kernel};

/// Arguments of [`BarrierRounds`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BarrierRoundsArgs {
    /// The barrier.
    pub barrier: BarrierHandle,
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// One word a block: the round that the block has come to. 0 at first.
    pub progress: Global<u32>,
    /// One word a block: how often it saw a neighbour that had not come to its own round. Null: nothing is checked, only
    /// the barriers are run.
    pub late: Global<u32>,
    /// Barriers to pass.
    pub rounds: u32,
    /// Padding, 0.
    pub reserved: u32,
}
const_assert_eq!(size_of::<BarrierRoundsArgs>(), 56);

kernel! {
    /// Passes the grid barrier `rounds` times. Where it checks, each block writes its round before each barrier and, behind
    /// it, looks at its neighbour's.
    pub struct BarrierRounds = "warpwire_barrier_rounds", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: BarrierRoundsArgs) {
        // SAFETY: the launch's contract: the word and the board are mapped and live, the word this grid's alone.
        let (mut barrier, policy) = unsafe { (GridBarrier::new(args.barrier), Policy::new(args.policy)) };
        let (block, blocks) = (arch::block_index(), arch::grid_size());
        let neighbour = if block + 1 == blocks { 0 } else { block + 1 };
        let (mine, other) = (args.progress.add(u64::from(block)), args.progress.add(u64::from(neighbour)));
        let checks = !args.late.is_null();
        let mut late = 0;
        for round in 1..=args.rounds {
            if checks && Block.is_leader() {
                // SAFETY: the launch's contract: one word a block. Weak: the barrier publishes it.
                unsafe { arch::store_weak_u32(mine, round) };
            }
            if barrier.sync(&policy).is_err() {
                return;
            }
            if checks {
                // The last thread looks: what the leader acquired has to reach the whole block.
                // SAFETY: as above; the neighbour's store is ordered before by the barrier, its next one after the
                // barrier below.
                if Block.rank() + 1 == Block.size() && unsafe { arch::load_weak_u32(other) } != round {
                    late += 1;
                }
                if barrier.sync(&policy).is_err() {
                    return;
                }
            }
        }
        if checks && Block.rank() + 1 == Block.size() {
            // SAFETY: as above.
            unsafe { arch::store_weak_u32(args.late.add(u64::from(block)), late) };
        }
    }
}
