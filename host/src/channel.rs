//! Memory channels: a semaphore between two ranks whose kernels reach each other's memory.

use std::sync::Arc;

use warpwire_device::abi::{
    ChannelId, Global, MemoryChannelBaseHandle, MemoryChannelHandle, Rank, SemaphoreHandle,
};

use crate::device::Device;
use crate::error::{CommunicatorError, ConnectionError, Result};
use crate::memory::RegisteredMemory;
use crate::semaphore::{Semaphore, SemaphoreSide};

/// One rank's end of a memory channel. A cheap clone.
///
/// Between ranks of one process the other end, and so the peer's token, lives as long as either. Across processes it is as
/// for [`Semaphore`]: the ends may go in any order, once no kernel of this rank's uses this one.
#[derive(Clone, Debug)]
pub struct MemoryChannel {
    end: End,
    handle: SemaphoreHandle,
}

/// What keeps the words that the handle names.
#[derive(Clone, Debug)]
enum End {
    Here { own: Arc<SemaphoreSide>, _peer: Arc<SemaphoreSide> },
    Across(Arc<Semaphore>),
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
        let end = |own: &Arc<SemaphoreSide>, peer: &Arc<SemaphoreSide>, rank| Self {
            handle: own.handle(peer.token(), rank, id),
            end: End::Here { own: Arc::clone(own), _peer: Arc::clone(peer) },
        };
        Ok([end(&of_a, &of_b, b.1), end(&of_b, &of_a, a.1)])
    }

    /// This rank's end of channel `id` with a rank of any process, over a semaphore that the two have built; the peer does
    /// the same with its end. The number is for reports, and the peer's should be the same. Any number of channels may lie
    /// between two ranks, each over a semaphore of its own.
    ///
    /// # Errors
    ///
    /// [`ConnectionError::NotMapped`] where the semaphore was built over a connection that maps nothing: a kernel cannot
    /// signal through that.
    pub fn new(semaphore: Semaphore, id: ChannelId) -> Result<Self> {
        let handle = semaphore.handle(id)?;
        Ok(Self { handle, end: End::Across(Arc::new(semaphore)) })
    }

    /// The rank at the other end.
    #[must_use]
    pub fn peer(&self) -> Rank {
        self.handle.inbound.peer
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> ChannelId {
        self.handle.inbound.channel
    }

    /// This end's handle without buffers.
    #[must_use]
    pub fn base_handle(&self) -> MemoryChannelBaseHandle {
        MemoryChannelBaseHandle { semaphore: self.handle }
    }

    /// This end's handle with `buffers` bound.
    #[must_use]
    pub fn handle(&self, buffers: ChannelBuffers) -> MemoryChannelHandle {
        let ChannelBuffers { local, remote, packets } = buffers;
        MemoryChannelHandle { base: self.base_handle(), remote, local, packets }
    }

    /// This end bound to memories, which it keeps: `local`, this rank's, and `remote`, as the peer has sent it, of one
    /// length; packets of the peer's arrive at `packets`, this rank's.
    ///
    /// # Errors
    ///
    /// [`CommunicatorError::UnequalMemories`], with both lengths; [`ConnectionError::NotMapped`].
    pub fn bind(
        &self,
        local: &RegisteredMemory,
        remote: &RegisteredMemory,
        packets: Option<&RegisteredMemory>,
    ) -> Result<BoundMemoryChannel> {
        let (channel, peer) = (self.id(), self.peer());
        if local.bytes() != remote.bytes() {
            let (local, remote) = (local.bytes(), remote.bytes());
            return Err(CommunicatorError::UnequalMemories { channel, peer, local, remote }.into());
        }
        let address = |memory: &RegisteredMemory| {
            memory.address().ok_or(ConnectionError::NotMapped { peer, transport: "CudaIpc" })
        };
        let buffers = ChannelBuffers {
            local: address(local)?,
            remote: address(remote)?,
            packets: packets.map_or(Ok(Global::default()), address)?,
        };
        let kept = [local, remote].into_iter().chain(packets).cloned().collect();
        Ok(BoundMemoryChannel { handle: self.handle(buffers), channel: self.clone(), _kept: kept })
    }

    /// Forgets this end's signals and waits, after a failed round. See [`SemaphoreSide::reset`]: both ends have to.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn reset(&self) -> Result<()> {
        match &self.end {
            End::Here { own, .. } => own.reset(),
            End::Across(semaphore) => semaphore.reset(),
        }
    }
}

/// One rank's end of a memory channel with its memories, which stay registered and mapped as long as it lives. A cheap clone.
#[derive(Clone, Debug)]
pub struct BoundMemoryChannel {
    handle: MemoryChannelHandle,
    channel: MemoryChannel,
    _kept: Arc<[RegisteredMemory]>,
}

impl BoundMemoryChannel {
    /// The handle for kernels.
    #[must_use]
    pub fn handle(&self) -> MemoryChannelHandle {
        self.handle
    }

    /// The channel without its memories.
    #[must_use]
    pub fn channel(&self) -> &MemoryChannel {
        &self.channel
    }
}
