//! What a transport has to be able to do.

use std::fmt::{self, Debug};

use serde::{Deserialize, Serialize};
use warpwire_device::abi::Rank;

use crate::error::{Error, Result};
use crate::memory::{RegisteredMemory, Transports};

/// What carries a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Transport {
    /// The peer's memory is mapped here: copies by the device itself.
    CudaIpc,
    /// RDMA.
    InfiniBand,
    /// TCP.
    Ethernet,
}

impl Transport {
    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CudaIpc => "CudaIpc",
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
        }
    }

    /// What memory has to be registered for, so that it reaches it.
    #[must_use]
    pub fn registration(self) -> Transports {
        match self {
            Self::CudaIpc => Transports::CUDA_IPC,
            Self::InfiniBand => Transports::INFINIBAND,
            Self::Ethernet => Transports::ETHERNET,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How far a connection's work has come: marks of one connection rise in the order in which they were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub(crate) u64);

/// A place in registered memory, with the room that was asked for behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) memory: &'a RegisteredMemory,
    pub(crate) offset: u64,
}

impl<'a> Place<'a> {
    pub(crate) fn new(memory: &'a RegisteredMemory, offset: u64, bytes: u64) -> Result<Self> {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= memory.bytes());
        if !fits {
            return Err(Error::OutsideMemory { offset, bytes, length: memory.bytes() });
        }
        Ok(Self { memory, offset })
    }
}

/// One transport's connection to one peer. Ranges have been checked by the caller; `bytes` is not 0.
///
/// Any thread may call it. No call waits for the peer, but for room in its own queue. After a failure every call fails, with
/// an error that names the peer.
pub(crate) trait Link: Debug + Send + Sync {
    /// What carries it.
    fn transport(&self) -> Transport;

    /// The rank at its other end.
    fn peer(&self) -> Rank;

    /// Threads, of 32 registers each, that its writes need room for on this rank's device, beside kernels that wait for them. 0:
    /// none; they are made without the device's multiprocessors.
    fn room(&self) -> u32 {
        0
    }

    /// Queues a copy from this rank's memory to the peer's, of any length. Keeps both memories until it is complete.
    fn write(&self, destination: Place<'_>, source: Place<'_>, bytes: u64) -> Result<()>;

    /// Queues setting a 64-bit word of the peer's, behind everything queued before, at system scope with release order.
    fn update(&self, word: Place<'_>, value: u64) -> Result<()>;

    /// Queues a write and an update behind it: in one, where that is quicker.
    fn write_and_update(
        &self,
        destination: Place<'_>,
        source: Place<'_>,
        bytes: u64,
        word: Place<'_>,
        value: u64,
    ) -> Result<()> {
        self.write(destination, source, bytes)?;
        self.update(word, value)
    }

    /// A mark behind everything queued so far. Marks rise.
    fn mark(&self) -> Result<Mark>;

    /// Moves the work on without waiting, and gives the last mark that it has passed.
    fn completed(&self) -> Result<Mark>;

    /// Ends it: what is queued may or may not arrive, every later call fails with
    /// [`ConnectionError::Closed`](crate::error::ConnectionError::Closed), those that wait for room end, and so do threads
    /// that serve it. It may be called twice. A drop does the same once nothing refers to the link.
    fn close(&self);
}
