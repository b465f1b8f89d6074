//! The group of threads that makes a call together.

use crate::abi::WaitError;
use crate::arch;

/// Some threads that call a primitive together: each knows its number and how many they are.
///
/// A primitive that takes a group is called by all of its threads, convergently, with the same arguments.
pub trait Group: Copy {
    /// The calling thread's number in the group, from 0.
    fn rank(&self) -> u32;

    /// Threads of the group.
    fn size(&self) -> u32;

    /// The group as teams of neighbouring threads of one multiprocessor, to each of which a copy gives contiguous pieces:
    /// one team, but for a grid, whose blocks are its teams.
    #[inline(always)]
    fn team(&self) -> Team {
        Team { rank: self.rank(), size: self.size(), index: 0, teams: 1 }
    }

    /// Whether the calling thread is the group's first.
    #[inline(always)]
    fn is_leader(&self) -> bool {
        self.rank() == 0
    }
}

/// The calling thread's team; see [`Group::team`].
#[derive(Clone, Copy, Debug)]
pub struct Team {
    /// The thread's number in its team.
    pub rank: u32,
    /// Threads of each team.
    pub size: u32,
    /// The team's number in the group.
    pub index: u32,
    /// Teams of the group.
    pub teams: u32,
}

/// A group whose threads can wait for each other.
pub trait SyncGroup: Group {
    /// Waits for all of the group; what its threads wrote before is then visible in the group.
    fn sync(&self);

    /// As [`SyncGroup::sync`], and true in every thread where `flag` was true in any.
    fn any(&self, flag: bool) -> bool;

    /// Waits for all of the group, and fails in every thread where `mine` failed in any: how a group learns of a wait that
    /// one of its threads made for all.
    ///
    /// # Errors
    ///
    /// The calling thread's own error; [`WaitError::Aborted`] where only another's failed.
    #[inline(always)]
    fn agree(&self, mine: Result<(), WaitError>) -> Result<(), WaitError> {
        if self.any(mine.is_err()) { Err(mine.err().unwrap_or(WaitError::Aborted)) } else { Ok(()) }
    }
}

/// One thread by itself.
#[derive(Clone, Copy, Debug)]
pub struct Thread;

/// The calling thread's warp: 32 lanes, fewer in the last warp of a block of another size.
#[derive(Clone, Copy, Debug)]
pub struct Warp;

/// The calling thread's block.
#[derive(Clone, Copy, Debug)]
pub struct Block;

/// The whole grid. Its threads cannot wait for each other by themselves: that is [`crate::barrier::GridBarrier`], which
/// may fail.
#[derive(Clone, Copy, Debug)]
pub struct Grid;

impl Group for Thread {
    #[inline(always)]
    fn rank(&self) -> u32 {
        0
    }

    #[inline(always)]
    fn size(&self) -> u32 {
        1
    }
}

impl SyncGroup for Thread {
    #[inline(always)]
    fn sync(&self) {}

    #[inline(always)]
    fn any(&self, flag: bool) -> bool {
        flag
    }
}

impl Group for Warp {
    #[inline(always)]
    fn rank(&self) -> u32 {
        arch::thread_index() % arch::WARP_SIZE
    }

    #[inline(always)]
    fn size(&self) -> u32 {
        let first = arch::thread_index() - self.rank();
        (arch::block_size() - first).min(arch::WARP_SIZE)
    }
}

impl SyncGroup for Warp {
    #[inline(always)]
    fn sync(&self) {
        arch::warp_sync();
    }

    #[inline(always)]
    fn any(&self, flag: bool) -> bool {
        arch::warp_any(flag)
    }
}

impl Group for Block {
    #[inline(always)]
    fn rank(&self) -> u32 {
        arch::thread_index()
    }

    #[inline(always)]
    fn size(&self) -> u32 {
        arch::block_size()
    }
}

impl SyncGroup for Block {
    #[inline(always)]
    fn sync(&self) {
        arch::block_sync();
    }

    #[inline(always)]
    fn any(&self, flag: bool) -> bool {
        arch::block_sync_or(flag)
    }
}

impl Group for Grid {
    #[inline(always)]
    fn rank(&self) -> u32 {
        arch::block_index() * arch::block_size() + arch::thread_index()
    }

    #[inline(always)]
    fn size(&self) -> u32 {
        arch::grid_size() * arch::block_size()
    }

    #[inline(always)]
    fn team(&self) -> Team {
        Team { teams: arch::grid_size(), index: arch::block_index(), ..Block.team() }
    }
}
