//! Ways from this rank to one peer's memory, driven by the host.
//!
//! A [`Connection`] writes into memory that the peer has registered, updates the peer's 64-bit words, and says when what was
//! asked for is complete. Which transport carries it is behind `Link`; everything above is written once, over that.
//!
//! Each transport is a folder with two types: an `Endpoint`, which meets the other end's, and the `Link` that they make.
//!
//! Layers: `link`, `site` < `cuda_ipc`, `ethernet`, [`infiniband`], with `endpoint`, which names each of them once < this.
//!
//! # Ordering
//!
//! What is asked of one connection takes effect at the peer in the order of the calls: whoever sees an update (by an acquire
//! at system scope) sees the writes that were asked for before it. Two connections are not ordered with each other.

#[cfg(test)]
mod contract;
mod cuda_ipc;
mod endpoint;
mod ethernet;
pub mod infiniband;
mod link;
mod site;

use std::fmt;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use warpwire_device::abi::Rank;

use crate::error::{ConnectionError, Error, Result};
use crate::memory::RegisteredMemory;

pub use endpoint::EndpointConfig;
pub(crate) use endpoint::{Life, Peer};
pub(crate) use link::{Link, Place};
pub use link::{Mark, Transport};
pub use site::Site;

/// A way to one peer's memory. A cheap clone; any thread may call it, and calls of several threads are ordered as they come.
#[derive(Clone)]
pub struct Connection {
    link: Arc<dyn Link>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("transport", &self.transport())
            .field("peer", &self.peer())
            .finish_non_exhaustive()
    }
}

/// The 64-bit word at `offset` of a memory.
fn word(memory: &RegisteredMemory, offset: u64) -> Result<Place<'_>> {
    let (bytes, alignment) = (size_of::<u64>() as u64, align_of::<u64>() as u64);
    let word = Place::new(memory, offset, bytes)?;
    let address = memory.owner_address() + offset;
    if address.is_multiple_of(alignment) {
        Ok(word)
    } else {
        Err(Error::Misaligned { what: "word", address, alignment })
    }
}

impl Connection {
    pub(crate) fn over(link: Arc<dyn Link>) -> Self {
        Self { link }
    }

    /// What carries it.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.link.transport()
    }

    /// The rank at its other end.
    #[must_use]
    pub fn peer(&self) -> Rank {
        self.link.peer()
    }

    /// Ends it: what is queued may or may not arrive, and every later call fails, also by its clones. It is closed too when
    /// the last clone is dropped.
    pub fn close(&self) {
        self.link.close();
    }

    /// See [`Link::room`].
    pub(crate) fn room(&self) -> u32 {
        self.link.room()
    }

    /// What carries it, without keeping it.
    pub(crate) fn downgrade(&self) -> Weak<dyn Link> {
        Arc::downgrade(&self.link)
    }

    /// Queues a copy of `bytes` bytes from `source`, this rank's, to `destination`, the peer's, and does not wait for it.
    /// Both memories stay registered until it is complete.
    ///
    /// # Errors
    ///
    /// [`Error::OutsideMemory`] where a range does not lie in its memory, before anything is queued;
    /// [`ConnectionError`] where the connection has failed.
    pub fn write(
        &self,
        destination: &RegisteredMemory,
        destination_offset: u64,
        source: &RegisteredMemory,
        source_offset: u64,
        bytes: u64,
    ) -> Result<()> {
        let destination = Place::new(destination, destination_offset, bytes)?;
        let source = Place::new(source, source_offset, bytes)?;
        if bytes == 0 { Ok(()) } else { self.link.write(destination, source, bytes) }
    }

    /// Queues setting the peer's 64-bit word at `offset` of `destination` to `value`, behind every write asked for before.
    /// The connection has to be the word's only writer.
    ///
    /// # Errors
    ///
    /// As for [`Connection::write`]; [`Error::Misaligned`].
    pub fn update(&self, destination: &RegisteredMemory, offset: u64, value: u64) -> Result<()> {
        self.link.update(word(destination, offset)?, value)
    }

    /// As [`Connection::write`] and [`Connection::update`] of the word at `token_offset` of `token`, in one: no more is queued
    /// between them, and it may be quicker.
    ///
    /// # Errors
    ///
    /// As for the two; where it is not [`ConnectionError`], nothing is queued.
    pub(crate) fn write_and_update(
        &self,
        [destination, source]: [(&RegisteredMemory, u64); 2],
        bytes: u64,
        (token, token_offset): (&RegisteredMemory, u64),
        value: u64,
    ) -> Result<()> {
        let destination = Place::new(destination.0, destination.1, bytes)?;
        let source = Place::new(source.0, source.1, bytes)?;
        let word = word(token, token_offset)?;
        if bytes == 0 {
            self.link.update(word, value)
        } else {
            self.link.write_and_update(destination, source, bytes, word, value)
        }
    }

    /// A mark behind everything asked for so far.
    ///
    /// # Errors
    ///
    /// [`ConnectionError`] where the connection has failed.
    pub fn mark(&self) -> Result<Mark> {
        self.link.mark()
    }

    /// Moves the work on, without waiting, and says whether everything before `mark` is complete: it is in the peer's
    /// memory, and its sources may be written again.
    ///
    /// # Errors
    ///
    /// [`ConnectionError`] where the connection has failed.
    pub fn is_complete(&self, mark: Mark) -> Result<bool> {
        Ok(self.link.completed()? >= mark)
    }

    /// Waits until everything asked for so far is complete.
    ///
    /// # Errors
    ///
    /// [`ConnectionError::Timeout`], which names the peer; as for [`Connection::is_complete`].
    pub fn flush(&self, timeout: Duration) -> Result<()> {
        let mark = self.mark()?;
        let begun = Instant::now();
        while !self.is_complete(mark)? {
            if begun.elapsed() > timeout {
                let (peer, transport) = (self.peer(), self.transport().name());
                return Err(ConnectionError::Timeout { peer, transport, timeout }.into());
            }
            thread::yield_now();
        }
        Ok(())
    }
}
