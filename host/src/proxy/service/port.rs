//! A port: what channels of one connection share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use warpwire_device::abi::{
    ChannelId, Global, MAX_MEMORIES, MAX_PORTS, MemoryId, PortChannelBaseHandle, PortChannelHandle, PortId,
    Position, Rank,
};

use super::lanes::Lanes;
use super::table::Table;
use crate::device::{Device, HostBuffer, Room};
use crate::error::Result;
use crate::fifo::Fifo;
use crate::memory::RegisteredMemory;
use crate::semaphore::Semaphore;

/// 8-byte words from one port's count of flushes to the next: a line of the processor's.
const LINE: usize = 8;

/// How long a port that goes away waits for what was asked of it.
const PATIENCE: Duration = Duration::from_secs(1);

/// A way to a peer, and the semaphore that is signalled by it.
#[derive(Debug)]
pub(super) struct Port {
    semaphore: Semaphore,
    id: ChannelId,
    /// What its copies need, left by every launch that waits.
    _room: Option<Room>,
}

impl Port {
    /// The port over this semaphore, whose connection is used once for it, for kernels of `device`.
    pub(super) fn new(device: &Device, semaphore: Semaphore, id: ChannelId) -> Result<Self> {
        semaphore.prepare()?;
        let threads = semaphore.connection().room();
        let room = (threads > 0).then(|| Room::on(device, threads));
        Ok(Self { semaphore, id, _room: room })
    }

    pub(super) fn semaphore(&self) -> &Semaphore {
        &self.semaphore
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // The peer is about to be told that nobody signals its token any more.
        if let Err(error) = self.semaphore.connection().flush(PATIENCE) {
            tracing::debug!(%error, "a port was dropped with work under way: its connection is closed");
            self.semaphore.connection().close();
        }
    }
}

/// What the proxy knows, shared with its thread and with the channels.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) rank: Rank,
    pub(super) device: Device,
    pub(super) fifo: Arc<Fifo>,
    pub(super) memories: Table<RegisteredMemory>,
    pub(super) ports: Table<Port>,
    pub(super) lanes: Lanes,
    /// Of each port, the position behind its last flush that is complete, each on a line of its own.
    flushed: HostBuffer<u64>,
}

impl Tables {
    pub(super) fn new(device: &Device, rank: Rank, fifo: Fifo) -> Result<Self> {
        Ok(Self {
            rank,
            device: device.clone(),
            fifo: Arc::new(fifo),
            memories: Table::new(rank, ["memory", "memories"], MAX_MEMORIES),
            ports: Table::new(rank, ["port", "ports"], MAX_PORTS),
            lanes: Lanes::of(device.properties(), rank),
            flushed: device.allocate_host(MAX_PORTS as usize * LINE)?,
        })
    }

    /// Says that the port's flush at `position`, and all before, are complete.
    pub(super) fn publish_flush(&self, port: PortId, position: Position) {
        let index = port.number() as usize * LINE;
        // SAFETY: a word of the buffer, which has a line for every number that a `PortId` can have; kernels only read it, and
        // the host touches it by atomics.
        let word = unsafe { AtomicU64::from_ptr(self.flushed.as_ptr().add(index)) };
        word.store(position.behind(), Ordering::Release);
    }

    /// Forgets all flushes, while nobody waits for one.
    pub(super) fn forget_flushes(&self) -> Result<()> {
        self.flushed.fill_bytes(0)
    }

    fn flushed(&self, port: PortId) -> Global<u64> {
        self.flushed.address().add(u64::from(port.number()) * LINE as u64)
    }
}

/// One rank's end of a port channel: what its kernels are given. A cheap clone; what it names lives as long as the service or
/// any channel of it.
#[derive(Clone, Debug)]
pub struct PortChannel {
    tables: Arc<Tables>,
    base: PortChannelBaseHandle,
}

impl PortChannel {
    /// A channel through a port of the table.
    pub(super) fn through(tables: &Arc<Tables>, port: PortId) -> Result<Self> {
        let Port { semaphore, id, .. } = tables.ports.get(port.number())?;
        let base = PortChannelBaseHandle {
            fifo: tables.fifo.handle(tables.rank, *id),
            inbound: semaphore.inbound(*id),
            flushed: tables.flushed(port),
            port,
            reserved: 0,
        };
        Ok(Self { tables: Arc::clone(tables), base })
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> PortId {
        self.base.port
    }

    /// The rank at the other end.
    #[must_use]
    pub fn peer(&self) -> Rank {
        self.base.inbound.peer
    }

    /// The handle without memories.
    #[must_use]
    pub fn base_handle(&self) -> PortChannelBaseHandle {
        self.base
    }

    /// The handle with two of the proxy's memories bound: the peer's `destination` and this rank's `source`.
    ///
    /// # Errors
    ///
    /// [`ProxyError::UnknownId`](crate::error::ProxyError::UnknownId) for a memory that the proxy was not given.
    pub fn handle(&self, destination: MemoryId, source: MemoryId) -> Result<PortChannelHandle> {
        for memory in [destination, source] {
            self.tables.memories.get(memory.number())?;
        }
        Ok(PortChannelHandle { base: self.base, destination, source })
    }
}
