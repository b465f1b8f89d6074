//! The memory behind semaphores, and the side that the host signals.

use std::sync::atomic::{AtomicU64, Ordering};

use warpwire_device::abi::{
    ChannelId, Global, HostSemaphoreHandle, InboundHandle, OutboundHandle, Rank, SemaphoreHandle,
};

use crate::device::{Buffer, Device, HostBuffer};
use crate::error::Result;

/// Where in a side's buffer its words lie, in 8-byte words: the token, which peers write, and the count of waits, which the
/// side itself writes, each on a cache line (128 bytes) of its own.
const TOKEN: u64 = 0;
const EXPECTED: u64 = 16;
const WORDS: usize = 32;

/// One rank's side of a semaphore between devices: the token that the peer signals, and this side's count of waits.
#[derive(Debug)]
pub struct SemaphoreSide {
    words: Buffer<u64>,
}

impl SemaphoreSide {
    /// A side in `device`'s memory that no signal has reached.
    ///
    /// # Errors
    ///
    /// The allocation's.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { words: device.allocate(WORDS)? })
    }

    /// The token: what a peer's outbound side adds to.
    #[must_use]
    pub fn token(&self) -> Global<u64> {
        self.words.address().add(TOKEN)
    }

    /// What a kernel waits through for signals of `peer`.
    #[must_use]
    pub fn inbound(&self, peer: Rank, channel: ChannelId) -> InboundHandle {
        InboundHandle { token: self.token(), expected: self.words.address().add(EXPECTED), peer, channel }
    }

    /// What a kernel of this side needs: waits on this side's token, signals the peer's at `peer_token`, mapped here.
    #[must_use]
    pub fn handle(&self, peer_token: Global<u64>, peer: Rank, channel: ChannelId) -> SemaphoreHandle {
        SemaphoreHandle {
            inbound: self.inbound(peer, channel),
            outbound: OutboundHandle { token: peer_token },
        }
    }

    /// Forgets all signals and waits. Both ranks have to do so, with no kernel running, or the two sides' counts part.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn reset(&self) -> Result<()> {
        self.words.fill_bytes(0)
    }
}

/// A semaphore that the host signals and a device waits on.
#[derive(Debug)]
pub struct HostSemaphore {
    token: HostBuffer<u64>,
    expected: Buffer<u64>,
}

impl HostSemaphore {
    /// A semaphore for `device`'s kernels that has not been signalled.
    ///
    /// # Errors
    ///
    /// The allocations'.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { token: device.allocate_host(1)?, expected: device.allocate(1)? })
    }

    /// Signals, and publishes the calling thread's writes before it (to memory that the device reaches) to the kernel whose
    /// wait it ends. Any thread may call it, also while kernels run.
    pub fn signal(&self) {
        // SAFETY: the host's view of the one word, aligned and live as long as `self`; the device only reads it.
        let token = unsafe { AtomicU64::from_ptr(self.token.as_ptr()) };
        token.fetch_add(1, Ordering::Release);
    }

    /// What a kernel waits through; reports name `peer` (the rank that the host speaks for) and `channel`.
    #[must_use]
    pub fn handle(&self, peer: Rank, channel: ChannelId) -> HostSemaphoreHandle {
        let (token, expected) = (self.token.address(), self.expected.address());
        HostSemaphoreHandle { inbound: InboundHandle { token, expected, peer, channel } }
    }
}
