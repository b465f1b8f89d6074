//! The transport by mapped memory: the device copies, in the order of a stream.
//!
//! The same on the CPU device, whose memory is mapped by file descriptor.
//!
//! # Room on the device
//!
//! Between two GPUs a copy engine copies, beside whatever runs. Within one GPU it is threads that copy, whether the driver's or
//! ours (`delivery`): a kernel that waits for a write has to leave room for a block of 256 threads, somewhere on the device, or
//! the write stands still until that wait has reached its limit.
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
        // The CPU device copies without threads of its own.
        let by_kernel = peer.site.shares_device(&self.here) && self.here.kind == DeviceKind::Cuda;
        let queue = if by_kernel { Queue::delivering(&self.device) } else { Queue::new(&self.device) };
        Ok(Arc::new(CudaIpcLink::over(queue?, peer.rank)))
    }
}

/// A connection over a stream of its own. It is made with the connection, since what a stream needs may not be had while
/// kernels run that wait for the connection's first word.
#[derive(Debug)]
struct CudaIpcLink {
    peer: Rank,
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
        Self { peer, state: Mutex::new(State::Open(Box::new(queue))) }
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
