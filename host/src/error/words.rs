//! Words of the errors' texts.

use std::fmt;

use warpwire_device::abi::{WaitError, WaitKind};

/// Who limits a block's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadLimit {
    /// The bounds that the kernel was compiled for.
    Kernel,
    /// The device.
    Device,
}

impl fmt::Display for ThreadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "the kernel, as it was compiled,",
            Self::Device => "the device",
        })
    }
}

pub(super) fn outcome_words(outcome: WaitError) -> &'static str {
    match outcome {
        WaitError::Timeout => "timed out",
        WaitError::Aborted => "was aborted",
    }
}

pub(super) fn kind_words(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Semaphore => "a signal",
        WaitKind::Packet => "a packet",
        WaitKind::Barrier => "the grid barrier",
        WaitKind::Fifo => "the consumer of a FIFO",
        WaitKind::Flush => "a flush of a port channel",
    }
}

/// Beside what the blocks of a launch have to find places.
pub(super) fn room_words(threads: u32) -> String {
    match threads {
        0 => String::new(),
        _ => format!(" beside the {threads} threads that copies through ports between its ranks need"),
    }
}

pub(super) fn architectures(present: &[u32]) -> String {
    if present.is_empty() {
        return "none".to_owned();
    }
    present.iter().map(|number| format!("sm_{number}")).collect::<Vec<_>>().join(", ")
}
