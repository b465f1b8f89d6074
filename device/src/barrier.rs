//! A barrier over the blocks of a grid.
//!
//! The word's top bit is the barrier's phase. Of `n` blocks the first adds `2^31 - (n - 1)` and each other adds 1, so a
//! full round adds 2^31 and flips the phase, whatever `n` is, and no reset is ever needed. A block knows the phase from
//! before its own arrival, so arriving is one `red` that nobody waits for.
//!
//! Source of the algorithm: the grid barrier of CUDA's cooperative groups ("Cooperative Groups", CUDA C++ Programming
//! Guide 13.0).

use crate::abi::{BarrierHandle, ChannelId, Rank, WaitError, WaitKind, WaitSite};
use crate::arch::{self, Acquire, Gpu, Relaxed, Release};
use crate::coop::{Block, Group, SyncGroup};
use crate::mem::{Mapped, Word};
use crate::spin::{self, Patience, Policy};

const PHASE: u32 = 1 << 31;

/// How long a block leaves the word alone behind its arrival.
const QUIET_NS: u32 = 20;

/// One block's view of the barrier's word: arrive, then wait.
#[derive(Clone, Copy, Debug)]
pub struct PhaseWord<W> {
    word: W,
    phase: u32,
}

impl<W: Word<Value = u32>> PhaseWord<W> {
    /// Reads the phase. Called by one thread of the block, before the block's first arrival: the phase cannot flip until
    /// that, so all blocks read the same.
    #[inline(always)]
    pub fn new(word: W) -> Self {
        Self { word, phase: word.load::<Relaxed, Gpu>() & PHASE }
    }

    /// Says that block `block` of `blocks` has come, and publishes its writes to whoever's wait it ends. Called by that
    /// thread.
    #[inline(always)]
    pub fn arrive(&self, block: u32, blocks: u32) {
        let step = if block == 0 { PHASE - (blocks - 1) } else { 1 };
        self.word.add::<Release, Gpu>(step);
    }

    /// Waits until all blocks have arrived; their writes before are then visible to the thread. Called by that thread.
    ///
    /// # Errors
    ///
    /// [`WaitError`], with a report on the board; the barrier's word is then of no use until the host has zeroed it.
    #[inline(always)]
    pub fn wait(&mut self, rank: Rank, patience: impl Patience) -> Result<(), WaitError> {
        let (word, phase) = (self.word, self.phase);
        // No barrier is passed sooner, and until then looks would only stand in the way of the other blocks' arrivals.
        arch::sleep_ns(QUIET_NS);
        let site = WaitSite { kind: WaitKind::Barrier, peer: rank, channel: ChannelId(0) };
        let load = || word.load::<Acquire, Gpu>();
        let ready = |seen: u32| ((seen ^ phase) & PHASE != 0).then_some(());
        let missing = |seen| (u64::from(phase ^ PHASE), u64::from(seen));
        spin::wait::<3, _, _, _>(patience, site, load, ready, missing)?;
        self.phase ^= PHASE;
        Ok(())
    }
}

/// The barrier of a grid, as one of its threads sees it.
///
/// Every block of the grid has to be resident at once, which the host checks before a launch that says so.
#[derive(Clone, Copy, Debug)]
pub struct GridBarrier {
    word: PhaseWord<Mapped<u32>>,
}

impl GridBarrier {
    /// The barrier that `handle` describes. Called by every thread of the grid, before its first [`GridBarrier::sync`].
    ///
    /// # Safety
    ///
    /// The handle's word is this device's, live, and used by this one grid while it runs; it is as the last complete
    /// barrier left it, or 0.
    #[inline(always)]
    pub unsafe fn new(handle: BarrierHandle) -> Self {
        // SAFETY: the caller's contract.
        let word = unsafe { Mapped::new(handle.word) };
        // Only the block's leader looks at the phase.
        Self { word: if Block.is_leader() { PhaseWord::new(word) } else { PhaseWord { word, phase: 0 } } }
    }

    /// Waits for every thread of the grid; what they wrote before is then visible to all of them. Called by every thread of
    /// the grid.
    ///
    /// # Errors
    ///
    /// [`WaitError`] in every thread of a block whose wait failed, with a report on the board.
    #[inline(always)]
    pub fn sync(&mut self, policy: &Policy) -> Result<(), WaitError> {
        Block.sync();
        let mut waited = Ok(());
        if Block.is_leader() {
            self.word.arrive(arch::block_index(), arch::grid_size());
            waited = self.word.wait(policy.rank(), policy.patience());
        }
        Block.agree(waited)
    }
}
