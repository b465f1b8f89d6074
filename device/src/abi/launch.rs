//! What a launch and its argument block are made of.

use super::MAX_RANKS;

/// The bounds that a kernel is compiled for; the builder writes them into the PTX as `.maxntid` and `.minnctapersm`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchLimits {
    /// The most threads that a block may have.
    pub max_threads: u32,
    /// How many such blocks one multiprocessor has to be able to hold.
    pub min_blocks: u32,
}

/// One entry per rank, inside an argument block. Read it through [`rank_entry!`](crate::rank_entry!), which indexes the parameter space
/// itself: an index into a by-value copy would move the whole table to local memory.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct RankTable<T>(pub [T; MAX_RANKS]);

impl<T: Copy + Default> RankTable<T> {
    /// The table with `entries` at the front and defaults behind; `None` where there are more than [`MAX_RANKS`].
    #[must_use]
    pub fn new(entries: &[T]) -> Option<Self> {
        let mut table = [T::default(); MAX_RANKS];
        table.get_mut(..entries.len())?.copy_from_slice(entries);
        Some(Self(table))
    }
}
