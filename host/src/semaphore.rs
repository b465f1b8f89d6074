//! The memory behind semaphores, and the side that the host signals.

use std::sync::atomic::{AtomicU64, Ordering};

use warpwire_device::abi::{
    ChannelId, Global, HostSemaphoreHandle, InboundHandle, OutboundHandle, Rank, SemaphoreHandle,
};

use crate::device::{Buffer, Device, HostBuffer};
use crate::error::Result;
use crate::memory::{RegisteredMemory, Token, TokenPool, Transports};

/// Where in a buffer of its own a side's words lie, in 8-byte words: the token, which peers write, and the count of waits,
/// which the side itself writes, each on a cache line (128 bytes) of its own.
const TOKEN: u64 = 0;
const EXPECTED: u64 = 16;
const WORDS: usize = 32;

/// One rank's side of a semaphore between devices: the token that the peer signals, and this side's count of waits.
#[derive(Debug)]
pub struct SemaphoreSide {
    words: Words,
}

#[derive(Debug)]
enum Words {
    /// A buffer of the side's own, in this process alone.
    Own(Buffer<u64>),
    /// Slots of a pool, which peers in other processes can map.
    Pooled { token: Token, expected: Token },
}

impl SemaphoreSide {
    /// A side in `device`'s memory that no signal has reached, for peers in this process.
    ///
    /// # Errors
    ///
    /// The allocation's.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { words: Words::Own(device.allocate(WORDS)?) })
    }

    /// A side in slots of `pool` that no signal has reached, for peers in other processes too. Its slots go back to the pool
    /// when it is dropped: by then nobody may signal it.
    ///
    /// # Errors
    ///
    /// As for [`TokenPool::take`].
    pub fn in_pool(pool: &TokenPool) -> Result<Self> {
        Ok(Self { words: Words::Pooled { token: pool.take()?, expected: pool.take()? } })
    }

    /// The token: what a peer's outbound side adds to.
    #[must_use]
    pub fn token(&self) -> Global<u64> {
        match &self.words {
            Words::Own(words) => words.address().add(TOKEN),
            Words::Pooled { token, .. } => token.address(),
        }
    }

    /// The token as memory that a peer in another process can be told of.
    ///
    /// # Errors
    ///
    /// As for [`RegisteredMemory::of`]; the token of a side that is in no pool cannot be mapped by others.
    pub fn register_token(&self, transports: Transports) -> Result<RegisteredMemory> {
        match &self.words {
            Words::Own(words) => RegisteredMemory::of(&words.part(TOKEN as usize, 1)?, transports),
            Words::Pooled { token, .. } => token.register(transports),
        }
    }

    /// What a kernel waits through for signals of `peer`.
    #[must_use]
    pub fn inbound(&self, peer: Rank, channel: ChannelId) -> InboundHandle {
        let expected = match &self.words {
            Words::Own(words) => words.address().add(EXPECTED),
            Words::Pooled { expected, .. } => expected.address(),
        };
        InboundHandle { token: self.token(), expected, peer, channel }
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
        match &self.words {
            Words::Own(words) => words.fill_bytes(0),
            Words::Pooled { token, expected } => token.reset().and_then(|()| expected.reset()),
        }
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
