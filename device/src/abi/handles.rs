//! What the host hands to a kernel: addresses and ids, filled once at set-up.

use super::{ChannelId, Global, Rank, WaitBoard};

/// How long this launch's waits last, and where they report. Built by the host for each launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PolicyHandle {
    /// The board of the device that the kernel runs on, in mapped host memory.
    pub board: Global<WaitBoard>,
    /// The limit of each single wait, in nanoseconds of the device's global timer; `u64::MAX`: until an abort.
    pub timeout_ns: u64,
    /// The rank that the kernel runs for.
    pub rank: Rank,
    /// Padding, 0.
    pub reserved: u32,
}

/// The waiting side of a semaphore.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InboundHandle {
    /// The token that signals arrive on: this device's memory (or the host's, mapped), written by one signaller's `add`s.
    pub token: Global<u64>,
    /// How many signals this side has waited for: this device's memory, touched by nobody else.
    pub expected: Global<u64>,
    /// Whose signals arrive here.
    pub peer: Rank,
    /// The channel, for reports.
    pub channel: ChannelId,
}

/// The signalling side of a semaphore.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OutboundHandle {
    /// The *peer's* inbound token, mapped here.
    pub token: Global<u64>,
}

/// A semaphore between two devices: each side signals the other's token and waits on its own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SemaphoreHandle {
    /// For `wait` and `poll`.
    pub inbound: InboundHandle,
    /// For `signal`.
    pub outbound: OutboundHandle,
}

/// A semaphore that the host signals and a device waits on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostSemaphoreHandle {
    /// For `wait` and `poll`.
    pub inbound: InboundHandle,
}

/// The grid barrier's word.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BarrierHandle {
    /// One 32-bit word of the device's memory, 0 at first; used by one running grid at a time.
    pub word: Global<u32>,
}

/// A memory channel without bound buffers: a semaphore, and addresses given at each call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryChannelBaseHandle {
    /// The semaphore between the two ends.
    pub semaphore: SemaphoreHandle,
}

/// A memory channel with its two buffers bound.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryChannelHandle {
    /// The semaphore between the two ends.
    pub base: MemoryChannelBaseHandle,
    /// The peer's buffer, mapped here: where `put` writes and `get` reads.
    pub remote: Global<u8>,
    /// This side's buffer: where `put` reads and `get` writes.
    pub local: Global<u8>,
    /// Where the peer's packets arrive: this device's memory. Null where the channel carries no packets.
    pub packets: Global<u8>,
}
