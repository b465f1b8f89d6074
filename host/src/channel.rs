//! Memory channels between ranks of one process.

use std::sync::Arc;

use warpwire_device::abi::{ChannelId, Global, MemoryChannelBaseHandle, MemoryChannelHandle, Rank};

use crate::device::Device;
use crate::error::Result;
use crate::semaphore::SemaphoreSide;

/// One rank's end of a memory channel. The other end, and so the peer's token, lives as long as either.
#[derive(Clone, Debug)]
pub struct MemoryChannel {
    own: Arc<SemaphoreSide>,
    peer: Arc<SemaphoreSide>,
    peer_rank: Rank,
    id: ChannelId,
}

/// The buffers that an end binds: addresses that the end's own device reaches, live as long as kernels use the handle.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChannelBuffers {
    /// This rank's buffer: where `put` reads and `get` writes.
    pub local: Global<u8>,
    /// The peer's buffer: where `put` writes and `get` reads.
    pub remote: Global<u8>,
    /// Where the peer's packets arrive here; null for a channel that carries none.
    pub packets: Global<u8>,
}

impl MemoryChannel {
    /// A channel `id` between two ranks of this process, each on its device: the first rank's end and the second's. The two
    /// may be one device, or one rank. Any number of channels may lie between two ranks.
    ///
    /// # Errors
    ///
    /// The allocations'.
    pub fn between(a: (&Device, Rank), b: (&Device, Rank), id: ChannelId) -> Result<[Self; 2]> {
        let (of_a, of_b) = (Arc::new(SemaphoreSide::new(a.0)?), Arc::new(SemaphoreSide::new(b.0)?));
        Ok([
            Self { own: Arc::clone(&of_a), peer: Arc::clone(&of_b), peer_rank: b.1, id },
            Self { own: of_b, peer: of_a, peer_rank: a.1, id },
        ])
    }

    /// This end's handle without buffers.
    #[must_use]
    pub fn base_handle(&self) -> MemoryChannelBaseHandle {
        MemoryChannelBaseHandle { semaphore: self.own.handle(self.peer.token(), self.peer_rank, self.id) }
    }

    /// This end's handle with `buffers` bound.
    #[must_use]
    pub fn handle(&self, buffers: ChannelBuffers) -> MemoryChannelHandle {
        let ChannelBuffers { local, remote, packets } = buffers;
        MemoryChannelHandle { base: self.base_handle(), remote, local, packets }
    }

    /// Forgets this end's signals and waits, after a failed round. See [`SemaphoreSide::reset`]: both ends have to.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn reset(&self) -> Result<()> {
        self.own.reset()
    }
}
