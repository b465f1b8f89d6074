//! A proxy that serves port channels.
//!
//! Layers: `table`, `lanes` < `port` < `dispatch` < this.

mod dispatch;
mod lanes;
mod port;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use warpwire_device::abi::{ChannelId, MemoryId, PortId, Rank};

use super::Proxy;
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::fifo::Fifo;
use crate::memory::RegisteredMemory;
use crate::semaphore::Semaphore;
use dispatch::Dispatcher;
use port::{Port, Tables};

pub use port::PortChannel;

/// How a service is made.
#[derive(Clone, Copy, Debug)]
pub struct ProxyOptions {
    /// Slots of its FIFO: a power of two. Fewer than the threads that push at once make some of them wait.
    pub fifo_capacity: usize,
}

impl Default for ProxyOptions {
    /// 512 slots.
    fn default() -> Self {
        Self { fifo_capacity: 512 }
    }
}

/// One rank's port channels, and the proxy that serves them: memories, connections and semaphores by number.
///
/// Memories and ports may be added while it runs. What a request names that does not exist, or does not lie in its memory, is
/// a failure of the proxy: see [`Proxy::health`].
///
/// A request of one port that its connection has no room for holds up those behind it; a flush does not.
pub struct ProxyService {
    // Dropped in this order: the thread ends before what it uses.
    proxy: Proxy,
    dispatcher: Dispatcher,
    tables: Arc<Tables>,
}

impl ProxyService {
    /// A service for the kernels of `rank` on `device`, which has to be started.
    ///
    /// # Errors
    ///
    /// As for [`Fifo::new`].
    pub fn new(device: &Device, rank: Rank, options: ProxyOptions) -> Result<Self> {
        let fifo = Fifo::new(device, options.fifo_capacity)?;
        let tables = Arc::new(Tables::new(device, rank, fifo)?);
        let dispatcher = Dispatcher::new(Arc::clone(&tables));
        let proxy = Proxy::new(device, Arc::clone(&tables.fifo), dispatcher.clone());
        Ok(Self { proxy, dispatcher, tables })
    }

    /// Adds a memory, this rank's or a peer's, and gives the number by which requests name it. It stays registered as long as
    /// the service.
    ///
    /// # Errors
    ///
    /// [`ProxyError::TableFull`](crate::error::ProxyError::TableFull) from the 513th on.
    pub fn add_memory(&self, memory: &RegisteredMemory) -> Result<MemoryId> {
        let number = self.tables.memories.add(|| Ok(memory.clone()))?;
        MemoryId::new(number).ok_or_else(|| self.tables.memories.full())
    }

    /// Adds a port over a semaphore, and gives the channel through it, whose number in reports is `id`. The proxy signals the
    /// peer by the semaphore's connection. That is used once for it now, since what a transport makes at its first use may
    /// wait for the device's kernels; so ports are added before kernels run that wait for each other.
    ///
    /// Several ports may go over one connection: what is asked of them is then ordered with each other.
    ///
    /// Where the peer shares this rank's GPU, copies between the two are made by threads of the GPU, and a kernel that fills it
    /// would wait for ever for one. So as long as the service, launches that wait
    /// ([`LaunchConfig::concurrent`](crate::device::LaunchConfig#structfield.concurrent)) are refused where they leave no room for
    /// such a copy: [`LaunchError::TooManyBlocks`](crate::error::LaunchError).
    ///
    /// # Errors
    ///
    /// [`ProxyError::TableFull`](crate::error::ProxyError::TableFull) from the 1,025th on;
    /// [`ProxyError::TooManyConnections`](crate::error::ProxyError::TooManyConnections) where copies could come to stand behind
    /// the kernels that wait for them; the connection's.
    pub fn add_port(&self, semaphore: Semaphore, id: ChannelId) -> Result<PortChannel> {
        let number = self.tables.ports.add(|| {
            self.tables.lanes.take(semaphore.connection())?;
            Port::new(&self.tables.device, semaphore, id)
        })?;
        let port = PortId::new(number).ok_or_else(|| self.tables.ports.full())?;
        PortChannel::through(&self.tables, port)
    }

    /// See [`Proxy::start`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn start(&self) -> Result<()> {
        self.proxy.start()
    }

    /// See [`Proxy::start_in_background`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn start_in_background(&self) -> Result<()> {
        self.proxy.start_in_background()
    }

    /// See [`Proxy::stop`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn stop(&self, drain: Duration) -> Result<()> {
        self.proxy.stop(drain)
    }

    /// See [`Proxy::health`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn health(&self) -> Result<()> {
        self.proxy.health()
    }

    /// See [`Proxy::is_running`].
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.proxy.is_running()
    }

    /// See [`Proxy::watch`].
    pub fn watch(&self, stream: &Stream) {
        self.proxy.watch(stream);
    }

    /// Forgets every request and flush, after a kernel's push has failed. The service is stopped, and no kernel that uses it
    /// runs. Signals that were sent stay sent.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Consumed`](crate::error::ProxyError::Consumed) while it runs; the driver's.
    pub fn reset(&self) -> Result<()> {
        self.tables.fifo.reset()?;
        self.dispatcher.reset();
        self.tables.forget_flushes()
    }
}

impl fmt::Debug for ProxyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyService").field("proxy", &self.proxy).finish_non_exhaustive()
    }
}
