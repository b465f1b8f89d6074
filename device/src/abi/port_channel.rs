//! What a kernel is given of a port channel.

use super::{FifoHandle, Global, InboundHandle, MemoryId, PortId};

/// A port channel without bound memories.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PortChannelBaseHandle {
    /// The FIFO to the proxy.
    pub fifo: FifoHandle,
    /// For waits: what the peer signals.
    pub inbound: InboundHandle,
    /// The position behind the port's last flush that is complete: the host's memory, mapped.
    pub flushed: Global<u64>,
    /// The port.
    pub port: PortId,
    /// Padding, 0.
    pub reserved: u32,
}

/// A port channel with its two memories bound.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PortChannelHandle {
    /// The channel.
    pub base: PortChannelBaseHandle,
    /// The peer's memory: where `put` writes.
    pub destination: MemoryId,
    /// This rank's memory: where `put` reads.
    pub source: MemoryId,
}
