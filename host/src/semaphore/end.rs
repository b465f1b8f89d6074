//! One rank's end of a semaphore with another rank.

use std::sync::{Mutex, PoisonError};

use warpwire_device::abi::{ChannelId, Global, HostSemaphoreHandle, InboundHandle, Rank, SemaphoreHandle};

use super::lending::Loan;
use crate::connection::Connection;
use crate::error::{ConnectionError, Result};
use crate::memory::RegisteredMemory;

/// One rank's end of a semaphore with a rank of any process: a token in this device's memory, which the peer signals, and the
/// peer's token.
///
/// Either this rank's kernels signal the peer's token, where it is mapped here (a [`MemoryChannel`](crate::channel) over
/// it), or this rank's host does so, through the connection ([`Semaphore::signal`]). Each end chooses for itself: the
/// channel takes the semaphore, so both cannot be.
///
/// # Dropping
///
/// Once no kernel and no queued work uses it. The two ends may be dropped in any order and at any time: the peer's token
/// stays mapped as long as this end lives, and this end's slot is given out again only when the peer has dropped its end too,
/// or has left the job; one whose peer aborted or died is given up.
#[derive(Debug)]
pub struct Semaphore {
    connection: Connection,
    // Dropped in this order: the peer's token is unmapped before the peer is told so.
    peer_token: RegisteredMemory,
    loan: Loan,
    /// What the host has set the peer's token to.
    signals: Mutex<u64>,
}

impl Semaphore {
    /// The semaphore of this rank's slot and the peer's token.
    pub(crate) fn new(connection: Connection, peer_token: RegisteredMemory, loan: Loan) -> Self {
        Self { connection, peer_token, loan, signals: Mutex::new(0) }
    }

    /// The rank of the other end.
    #[must_use]
    pub fn peer(&self) -> Rank {
        self.loan.peer()
    }

    /// What it was built over.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What a kernel waits through for the peer's signals.
    #[must_use]
    pub fn inbound(&self, channel: ChannelId) -> InboundHandle {
        self.loan.side().inbound(self.peer(), channel)
    }

    /// The same as a semaphore that a host signals: the peer's.
    #[must_use]
    pub fn host_handle(&self, channel: ChannelId) -> HostSemaphoreHandle {
        HostSemaphoreHandle { inbound: self.inbound(channel) }
    }

    /// What a kernel signals and waits through. For the one channel that has taken it.
    pub(crate) fn handle(&self, channel: ChannelId) -> Result<SemaphoreHandle> {
        Ok(self.loan.side().handle(self.mapped_token()?, self.peer(), channel))
    }

    fn mapped_token(&self) -> Result<Global<u64>> {
        let address = self.peer_token.address().ok_or_else(|| ConnectionError::NotMapped {
            peer: self.peer(),
            transport: self.connection.transport().name(),
        })?;
        Ok(address.cast())
    }

    /// Signals the peer from the host, behind all that was asked of the connection before: whoever's wait it ends sees that.
    /// Any thread may call it. It waits for nothing; the connection's marks tell when the signal is there.
    ///
    /// # Errors
    ///
    /// As for [`Connection::update`]; then nothing was signalled.
    pub fn signal(&self) -> Result<()> {
        // Held over the call: numbers have to reach the connection in their order.
        let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        self.connection.update(&self.peer_token, 0, *signals + 1)?;
        *signals += 1;
        Ok(())
    }

    /// Writes `bytes` bytes from `source` to `destination`, each a memory and an offset, as [`Connection::write`] does, and signals
    /// the peer behind that, as [`Semaphore::signal`] does. Any thread may call it.
    ///
    /// # Errors
    ///
    /// As for [`Connection::write`]; then nothing was signalled.
    pub(crate) fn write_and_signal(
        &self,
        destination: (&RegisteredMemory, u64),
        source: (&RegisteredMemory, u64),
        bytes: u64,
    ) -> Result<()> {
        // As in `signal`.
        let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        let (places, token) = ([destination, source], (&self.peer_token, 0));
        self.connection.write_and_update(places, bytes, token, *signals + 1)?;
        *signals += 1;
        Ok(())
    }

    /// Uses the connection once, by setting the peer's token to what it stands at: what a transport makes at its first use
    /// (which may wait for the device's kernels) is made then, and a token that cannot be signalled is found out.
    pub(crate) fn prepare(&self) -> Result<()> {
        let signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        self.connection.update(&self.peer_token, 0, *signals)
    }

    /// Forgets all signals and waits. Both ranks have to do so, with no kernel and no connection's work under way, and
    /// neither may signal before the other has done it: a barrier before and one behind.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn reset(&self) -> Result<()> {
        let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        self.loan.side().reset()?;
        *signals = 0;
        Ok(())
    }
}
