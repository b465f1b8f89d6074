//! Messages that differ in every word and from round to round, so that a word that is missed shows.

use warpwire_device::abi::Global;
use warpwire_device::arch;
use warpwire_device::coop::{Block, Group};

/// What word `index` of a message holds in `round`.
#[inline(always)]
const fn message_word(index: u64, round: u32) -> u32 {
    (index as u32).wrapping_mul(0x9E37_79B9).wrapping_add(round)
}

/// Fills a message of `words` words. Called by the block.
///
/// # Safety
///
/// The words are mapped and live, and nobody else touches them meanwhile.
#[inline(always)]
pub(crate) unsafe fn fill(at: Global<u32>, words: u64, round: u32) {
    let mut i = u64::from(Block.rank());
    while i < words {
        // SAFETY: the caller's contract.
        unsafe { arch::store_weak_u32(at.add(i), message_word(i, round)) };
        i += u64::from(Block.size());
    }
}

/// How many of the calling thread's words of a message are not as [`fill`] makes them. Called by the block.
///
/// # Safety
///
/// The words are mapped and live, and their writers ordered before.
#[inline(always)]
pub(crate) unsafe fn count_wrong(at: Global<u32>, words: u64, round: u32) -> u32 {
    let (mut i, mut wrong) = (u64::from(Block.rank()), 0);
    while i < words {
        // SAFETY: the caller's contract.
        let seen = unsafe { arch::load_weak_u32(at.add(i)) };
        wrong += u32::from(seen != message_word(i, round));
        i += u64::from(Block.size());
    }
    wrong
}
