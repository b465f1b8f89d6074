//! The host's side of a stream's wait board.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use warpwire_device::abi::{BoardState, ChannelId, Global, Rank, WaitBoard, WaitError, WaitKind};

use super::{Device, HostBuffer};
use crate::error::{Error, Result};

/// A wait board in host memory, zeroed at first: no abort, no report.
#[derive(Debug)]
pub(super) struct Board {
    /// One [`WaitBoard`]. Words, since the kernels write it while the host reads it.
    memory: HostBuffer<u64>,
}

macro_rules! word {
    ($board:ident . $field:ident) => {
        $board.word(offset_of!(WaitBoard, $field))
    };
}

impl Board {
    pub(super) fn new(device: &Device) -> Result<Self> {
        Ok(Self { memory: device.allocate_host(size_of::<WaitBoard>() / size_of::<u64>())? })
    }

    /// Where the kernels find it.
    pub(super) fn address(&self) -> Global<WaitBoard> {
        self.memory.address().cast()
    }

    pub(super) fn abort(&self) {
        word!(self.abort).store(1, Ordering::Release);
    }

    /// Takes back the abort and the report. The stream has no kernel in flight.
    pub(super) fn clear(&self) {
        word!(self.state).store(BoardState::Clear as u32, Ordering::Relaxed);
        word!(self.abort).store(0, Ordering::Release);
    }

    /// Fails with the report, where there is one.
    pub(super) fn check(&self) -> Result<()> {
        let state = word!(self.state).load(Ordering::Acquire);
        if state == BoardState::Clear as u32 {
            return Ok(());
        }
        // The acquire above makes the fields visible that a release of `Reported` published.
        let (error, kind) =
            (word!(self.error).load(Ordering::Relaxed), word!(self.kind).load(Ordering::Relaxed));
        let outcome = match error {
            error if error == WaitError::Timeout as u32 => Some(WaitError::Timeout),
            error if error == WaitError::Aborted as u32 => Some(WaitError::Aborted),
            _ => None,
        };
        let (Some(outcome), Some(wait), true) =
            (outcome, WaitKind::from_number(kind), state == BoardState::Reported as u32)
        else {
            return Err(Error::CorruptReport { state, error, kind });
        };
        Err(Error::WaitFailed {
            outcome,
            kind: wait,
            rank: Rank(word!(self.rank).load(Ordering::Relaxed)),
            peer: Rank(word!(self.peer).load(Ordering::Relaxed)),
            channel: ChannelId(word!(self.channel).load(Ordering::Relaxed)),
            block: word!(self.block).load(Ordering::Relaxed),
            thread: word!(self.thread).load(Ordering::Relaxed),
            expected: self.double_word(offset_of!(WaitBoard, expected)).load(Ordering::Relaxed),
            seen: self.double_word(offset_of!(WaitBoard, seen)).load(Ordering::Relaxed),
        })
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: an aligned field (`WaitBoard`'s layout is asserted) of this live allocation, which the host touches through
        // atomics alone.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().byte_add(offset).cast()) }
    }

    fn double_word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().byte_add(offset)) }
    }
}
