//! The semaphore that this process' host signals.

use std::sync::atomic::{AtomicU64, Ordering};

use warpwire_device::abi::{ChannelId, HostSemaphoreHandle, InboundHandle, Rank};

use crate::device::{Buffer, Device, HostBuffer};
use crate::error::Result;

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
