//! How a wait that did not end well tells the host.

use super::{ChannelId, Rank};

/// Why a wait ended without what it waited for.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The policy's time limit passed.
    Timeout = 1,
    /// The host (or a sibling that had failed) raised the abort word.
    Aborted = 2,
}

/// What kind of word was waited for.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// A semaphore's inbound token.
    Semaphore = 1,
    /// A packet's flag.
    Packet = 2,
    /// The grid barrier's word.
    Barrier = 3,
    /// A FIFO's tail: room in a full one, or that its consumer has taken a trigger.
    Fifo = 4,
    /// A port channel's count of flushes that are complete.
    Flush = 5,
}

impl WaitKind {
    /// The kind with this number, where there is one.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Semaphore),
            2 => Some(Self::Packet),
            3 => Some(Self::Barrier),
            4 => Some(Self::Fifo),
            5 => Some(Self::Flush),
            _ => None,
        }
    }
}

/// Where a wait stands: what it waits for, from whom.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitSite {
    /// The kind of word.
    pub kind: WaitKind,
    /// The rank that was to write it.
    pub peer: Rank,
    /// The channel that it belongs to.
    pub channel: ChannelId,
}

/// The states of [`WaitBoard::state`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardState {
    /// No wait has failed.
    Clear = 0,
    /// One has claimed the board and is writing its report.
    Claimed = 1,
    /// The report is whole.
    Reported = 2,
}

/// A block of host memory, mapped to one device, where its kernels look for an abort and report a failed wait.
///
/// The host writes only the first 64 bytes, the device only the second, so neither takes the other's cache line. Of
/// several waits that fail, the first to claim the board reports.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitBoard {
    /// 1: every wait on this device ends with [`WaitError::Aborted`]; else 0. So it is what that error's number is above
    /// [`WaitError::Timeout`]'s.
    pub abort: u32,
    /// Keeps what follows on a line of its own.
    pub reserved: [u32; 15],
    /// A [`WaitError`].
    pub error: u32,
    /// A [`WaitKind`].
    pub kind: u32,
    /// The rank that was to write the word.
    pub peer: u32,
    /// The channel.
    pub channel: u32,
    /// The block that waited.
    pub block: u32,
    /// Its thread that waited.
    pub thread: u32,
    /// The value that would have ended the wait (for a semaphore: that or any greater).
    pub expected: u64,
    /// The value last seen.
    pub seen: u64,
    /// The rank that waited.
    pub rank: u32,
    /// A [`BoardState`]; `Reported` is stored with release order at system scope after every field above.
    pub state: u32,
    /// Room to the end of the line.
    pub unused: [u32; 4],
}
