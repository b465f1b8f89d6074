//! The transport by TCP: for machines without InfiniBand, and for any device.
//!
//! A connection is one socket and two threads an end. One sends what was asked for, in order, and reads the sources as their
//! turn comes; so a source may be written again once what was asked for is complete, and not before. The other places what
//! comes: data is staged in pinned host memory, copied to the device, and there before the next frame is looked at; a word is set
//! by a release store at system scope, or by a stream of the device, behind everything placed before it. Then it is
//! acknowledged, by a count that goes back over the same socket: that is what marks are.
//!
//! # Limits
//!
//! 1,024 requests may be unacknowledged; a caller that has more waits for room, for a minute at least. Writes of any length are
//! cut into frames of 256 KiB.
//!
//! # Ends
//!
//! An end whose peer has yet to come waits for the communicator's time, and no longer than the peer lives: the bootstrap tells of
//! its death. Then a peer that dies is noticed by its socket, at once; a host that goes without a word by keep-alive probes, within half a
//! minute; one that stands still, by the deadline of whoever waits for it, and by leaving what is sent to it untaken for half a
//! minute. An end that closes tells the other, which fails only where something was still on its way. What this end has asked for
//! and not flushed by then may not arrive.
//!
//! # Layers
//!
//! Each module imports only from those before it: `frame`, `staging`, `words`, `greeting` < `request` < `queue` < `sender`,
//! `receiver` < `service` < this < `endpoint`, which makes links.

mod endpoint;
mod frame;
mod greeting;
mod queue;
mod receiver;
mod request;
mod sender;
mod service;
mod staging;
mod words;

use std::net::Shutdown;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use warpwire_device::abi::Rank;

use super::link::{Link, Mark, Place, Transport};
use crate::device::Device;
use crate::error::{ConnectionError, Error, Result};
use crate::memory::ProcessId;
use crate::net::Deadline;
use frame::Target;
use queue::Queue;
use request::{End, Refused, Request};
use service::{Meeting, Service, Socket};

pub(super) use endpoint::EthernetEndpoint;

/// How long an end that closes waits for its last words to go out.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// One end of a connection.
#[derive(Debug)]
struct EthernetLink {
    peer: Rank,
    /// Whose memory it writes.
    process: ProcessId,
    queue: Arc<Queue>,
    socket: Socket,
    /// How long a caller waits for room.
    timeout: Duration,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl EthernetLink {
    /// The end of a connection that is about to stand. A caller waits for room as long as `timeout`.
    fn start(
        device: &Device,
        peer: Rank,
        process: ProcessId,
        meeting: Meeting,
        timeout: Duration,
    ) -> Result<Self> {
        let (queue, socket) = (Arc::<Queue>::default(), Socket::default());
        let service = Service::new(&queue, &socket, device, peer)?;
        let name = format!("warpwire-eth-recv-{}", peer.0);
        let thread = thread::Builder::new().name(name).spawn(move || service.run(meeting));
        let thread = thread.map_err(|error| Error::system("starting a connection's thread", error))?;
        Ok(Self { peer, process, queue, socket, timeout, thread: Mutex::new(Some(thread)) })
    }

    /// Where a place is for the peer.
    fn target(&self, place: &Place<'_>) -> Result<Target> {
        let key = place.memory.region_key().ok_or_else(|| {
            self.unfit("destination", "its owner has not registered it for Ethernet (Transports::ETHERNET)")
        })?;
        if key.process != self.process {
            return Err(self.unfit("destination", "it is not the memory of that rank's process"));
        }
        Ok(Target { slot: key.slot, generation: key.generation, offset: place.offset })
    }

    fn unfit(&self, which: &'static str, reason: &'static str) -> Error {
        let transport = Transport::Ethernet.name();
        ConnectionError::UnfitMemory { peer: self.peer, transport, which, reason }.into()
    }

    fn push(&self, request: Request) -> Result<()> {
        self.queue.push(request, Deadline::after(self.timeout)).map_err(|refused| match refused {
            Refused::Ended(end) => self.ended(end),
            Refused::Full => {
                let (transport, timeout) = (Transport::Ethernet.name(), self.timeout);
                ConnectionError::Timeout { peer: self.peer, transport, timeout }.into()
            }
        })
    }

    fn ended(&self, end: End) -> Error {
        let (peer, transport) = (self.peer, Transport::Ethernet.name());
        let failed = |reason| ConnectionError::Failed { peer, transport, reason };
        match end {
            End::Closed => ConnectionError::Closed { peer, transport },
            End::Left => failed("it has closed its end".to_owned()),
            End::Failed(reason) => failed(reason),
        }
        .into()
    }
}

impl Link for EthernetLink {
    fn transport(&self) -> Transport {
        Transport::Ethernet
    }

    fn peer(&self) -> Rank {
        self.peer
    }

    fn write(&self, destination: Place<'_>, source: Place<'_>, bytes: u64) -> Result<()> {
        let target = self.target(&destination)?;
        let region = source.memory.region().ok_or_else(|| {
            self.unfit(
                "source",
                "it is not this process' own, registered for Ethernet (Transports::ETHERNET)",
            )
        })?;
        self.push(Request::Write { target, source: Arc::clone(region), offset: source.offset, bytes })
    }

    fn update(&self, word: Place<'_>, value: u64) -> Result<()> {
        let target = self.target(&word)?;
        self.push(Request::Update { target, value })
    }

    fn mark(&self) -> Result<Mark> {
        self.queue.queued().map(Mark).map_err(|end| self.ended(end))
    }

    fn completed(&self) -> Result<Mark> {
        self.queue.acknowledged().map(Mark).map_err(|end| self.ended(end))
    }

    fn close(&self) {
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        // These fail only on a connection that is closed already. The first ends the receiving thread's wait; then the other
        // says its last words.
        let shut = |how| self.socket.get().map(|socket| socket.shutdown(how));
        if self.queue.has_met() {
            _ = shut(Shutdown::Read);
        }
        self.queue.wait_for_threads(Instant::now() + LAST_WORDS);
        self.queue.silence();
        _ = shut(Shutdown::Both);
        if thread.join().is_err() {
            tracing::error!(peer = self.peer.0, "a connection's thread panicked");
        }
        self.queue.release();
    }
}

impl Drop for EthernetLink {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
