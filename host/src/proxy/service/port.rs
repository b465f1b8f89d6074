//! A port: what channels of one connection share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warpwire_device::abi::{
    ChannelId, Global, MAX_MEMORIES, MAX_PORTS, MemoryId, PortChannelBaseHandle, PortChannelHandle, PortId,
    Position, Rank,
};

use super::table::Table;
use crate::connection::Connection;
use crate::device::{Device, HostBuffer};
use crate::error::Result;
use crate::fifo::Fifo;
use crate::memory::RegisteredMemory;
use crate::semaphore::SemaphoreSide;

/// 8-byte words from one port's count of flushes to the next: a line of the processor's.
const LINE: usize = 8;

/// One rank's end of a port, given to the proxy.
#[derive(Clone, Debug)]
pub struct PortEnd {
    /// The way to the peer. Several ports may go over one; what is asked of them is then ordered with each other.
    pub connection: Connection,
    /// This end's side of the semaphore: what the peer signals.
    pub own: Arc<SemaphoreSide>,
    /// The token of the peer's side, which the port signals. It stands at 0, and nobody else signals it.
    pub peer_token: RegisteredMemory,
    /// The channel's number, for reports.
    pub id: ChannelId,
}

/// What the proxy knows, shared with its thread and with the channels.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) rank: Rank,
    pub(super) fifo: Arc<Fifo>,
    pub(super) memories: Table<RegisteredMemory>,
    pub(super) ports: Table<PortEnd>,
    /// Of each port, the position behind its last flush that is complete, each on a line of its own.
    flushed: HostBuffer<u64>,
}

impl Tables {
    pub(super) fn new(device: &Device, rank: Rank, fifo: Fifo) -> Result<Self> {
        Ok(Self {
            rank,
            fifo: Arc::new(fifo),
            memories: Table::new(rank, ["memory", "memories"], MAX_MEMORIES),
            ports: Table::new(rank, ["port", "ports"], MAX_PORTS),
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

/// One rank's end of a port channel: what its kernels are given. A cheap clone; the proxy's tables live as long as it does.
#[derive(Clone, Debug)]
pub struct PortChannel {
    tables: Arc<Tables>,
    port: PortId,
}

impl PortChannel {
    pub(super) fn new(tables: Arc<Tables>, port: PortId) -> Self {
        Self { tables, port }
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> PortId {
        self.port
    }

    /// The handle without memories.
    ///
    /// # Errors
    ///
    /// None that is known: the port is in its table.
    pub fn base_handle(&self) -> Result<PortChannelBaseHandle> {
        let end = self.tables.ports.get(self.port.number())?;
        Ok(PortChannelBaseHandle {
            fifo: self.tables.fifo.handle(self.tables.rank, end.id),
            inbound: end.own.inbound(end.connection.peer(), end.id),
            flushed: self.tables.flushed(self.port),
            port: self.port,
            reserved: 0,
        })
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
        Ok(PortChannelHandle { base: self.base_handle()?, destination, source })
    }
}
