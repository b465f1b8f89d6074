//! The transport by mapped memory: the device copies, in the order of a stream.
//!
//! The same on the CPU device, whose memory is mapped by file descriptor.
//!
//! # Room on the device
//!
//! Between two GPUs a copy engine copies, beside whatever runs. Within one GPU threads do, be they the driver's or ours
//! (`delivery`), in blocks of 256: a kernel that waits for a write has to leave room for one, or the write stands still until the
//! wait has reached its limit. Ports see to that: [`Link::room`].
//!
//! Layers: `delivery` < `queue` < this.

mod delivery;
mod queue;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use warpwire_device::abi::{Global, Rank};

use super::endpoint::{Endpoint, Peer};
use super::link::{Link, Mark, Place, Transport};
use super::site::Site;
use crate::device::{Device, DeviceKind};
use crate::error::{ConnectionError, Error, Result};
use queue::Queue;

/// What a copy within one GPU needs room for: a block of 256 threads of up to 64 registers, counted by threads of 32. Measured on
/// an H200 (docs/performance.md): with 128 threads free on each multiprocessor the driver's copies of 4 B to 1 MiB stand still, with
/// 256 they complete; ours has 256.
const ROOM: u32 = 512;

/// An end that has yet to meet its peer.
#[derive(Debug)]
pub(super) struct CudaIpcEndpoint {
    device: Device,
    here: Site,
}

impl CudaIpcEndpoint {
    pub(super) fn new(device: &Device, here: &Site) -> Self {
        Self { device: device.clone(), here: here.clone() }
    }
}

impl Endpoint for CudaIpcEndpoint {
    fn terms(&self) -> Vec<(String, String)> {
        vec![("a device of kind".to_owned(), self.here.kind.to_string())]
    }

    fn join(self: Box<Self>, peer: Peer<'_>, _timeout: Duration) -> Result<Arc<dyn Link>> {
        if peer.site.domain != self.here.domain {
            let reason = format!(
                "it is on host {} and this rank on host {}, and neither can map the other's memory: choose Ethernet or \
                 InfiniBand",
                peer.site.host, self.here.host
            );
            let (peer, transport) = (peer.rank, Transport::CudaIpc.name());
            return Err(ConnectionError::Unreachable { peer, transport, reason }.into());
        }
        // The CPU device copies by the stream's own thread.
        let by_threads = peer.site.shares_device(&self.here) && self.here.kind == DeviceKind::Cuda;
        let link = if by_threads {
            CudaIpcLink { room: ROOM, ..CudaIpcLink::over(Queue::delivering(&self.device)?, peer.rank) }
        } else {
            CudaIpcLink::over(Queue::new(&self.device)?, peer.rank)
        };
        Ok(Arc::new(link))
    }
}

/// A connection over a stream of its own. It is made with the connection, since what a stream needs may not be had while
/// kernels run that wait for the connection's first word.
#[derive(Debug)]
struct CudaIpcLink {
    peer: Rank,
    room: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open(Box<Queue>),
    Failed(String),
    Closed,
}

impl CudaIpcLink {
    fn over(queue: Queue, peer: Rank) -> Self {
        Self { peer, room: 0, state: Mutex::new(State::Open(Box::new(queue))) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change of the state is one assignment: a panic elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the queue. Where that fails the connection has failed.
    fn with<R>(&self, once: impl FnOnce(&mut Queue) -> Result<R>) -> Result<R> {
        let mut state = self.lock();
        let queue = match &mut *state {
            State::Open(queue) => queue,
            other => return Err(self.refusal(other)),
        };
        once(queue).map_err(|error| {
            tracing::warn!(peer = self.peer.0, %error, "a connection has failed");
            *state = State::Failed(error.to_string());
            self.refusal(&state)
        })
    }

    fn refusal(&self, state: &State) -> Error {
        let (peer, transport) = (self.peer, Transport::CudaIpc.name());
        match state {
            State::Failed(reason) => {
                ConnectionError::Failed { peer, transport, reason: reason.clone() }.into()
            }
            _ => ConnectionError::Closed { peer, transport }.into(),
        }
    }

    fn address(&self, place: &Place<'_>) -> Result<Global<u8>> {
        let (peer, transport) = (self.peer, Transport::CudaIpc.name());
        let address = place.memory.address().ok_or(ConnectionError::NotMapped { peer, transport })?;
        Ok(address.add(place.offset))
    }
}

impl Link for CudaIpcLink {
    fn transport(&self) -> Transport {
        Transport::CudaIpc
    }

    fn peer(&self) -> Rank {
        self.peer
    }

    fn room(&self) -> u32 {
        self.room
    }

    fn write(&self, destination: Place<'_>, source: Place<'_>, bytes: u64) -> Result<()> {
        let (to, from) = (self.address(&destination)?, self.address(&source)?);
        self.with(|queue| {
            // SAFETY: both ranges lie in their memories (`Place`), which the queue keeps; `Connection::write`'s contract is
            // that nobody else touches them meanwhile.
            unsafe { queue.write(to, from, bytes, None) }?;
            queue.keep([destination.memory, source.memory])
        })
    }

    fn write_and_update(
        &self,
        destination: Place<'_>,
        source: Place<'_>,
        bytes: u64,
        word: Place<'_>,
        value: u64,
    ) -> Result<()> {
        let (to, from) = (self.address(&destination)?, self.address(&source)?);
        let at = self.address(&word)?.cast();
        self.with(|queue| {
            // SAFETY: as in `write` and `update`.
            unsafe { queue.write(to, from, bytes, Some((at, value))) }?;
            queue.keep([destination.memory, source.memory, word.memory])
        })
    }

    fn update(&self, word: Place<'_>, value: u64) -> Result<()> {
        let to = self.address(&word)?.cast();
        self.with(|queue| {
            // SAFETY: the word lies in its memory, which the queue keeps, and is aligned there; the connection is its only
            // writer.
            unsafe { queue.set(to, value) }?;
            queue.keep([word.memory])
        })
    }

    fn mark(&self) -> Result<Mark> {
        self.with(Queue::mark).map(Mark)
    }

    fn completed(&self) -> Result<Mark> {
        self.with(Queue::passed).map(Mark)
    }

    fn close(&self) {
        // Replaced under the lock and dropped without it: the drop waits for the copies that are under way.
        let last = std::mem::replace(&mut *self.lock(), State::Closed);
        drop(last);
    }
}

#[cfg(test)]
mod tests;
