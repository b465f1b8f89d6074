//! What other threads ask of the service thread.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use warpwire_device::abi::Rank;

use super::outbox::Outbox;
use crate::error::Departure;
use crate::monitor::Monitor;
use crate::net::dial::Established;

/// A request.
#[derive(Debug)]
pub(super) enum Command {
    /// There is something in the outbox of that connection.
    Write(u64),
    /// There is room for that rank's messages again.
    Resume(Rank),
    /// A connection to that rank stands.
    Adopt { peer: Rank, connection: Established, outbox: Arc<Outbox> },
    /// At the root: some ranks did not come within that time.
    GiveUp { waited: Duration },
    /// This rank goes.
    Close(Departure),
}

/// The requests that have not been looked at, and the bell that wakes the service thread.
#[derive(Debug)]
pub(super) struct Commands {
    waiting: Monitor<Vec<Command>>,
    bell: OwnedFd,
}

impl Commands {
    pub(super) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { waiting: Monitor::default(), bell })
    }

    pub(super) fn push(&self, command: Command) {
        let first = self.waiting.with(|waiting| {
            waiting.push(command);
            waiting.len() == 1
        });
        if first {
            // It fails only where the count would overflow: then the bell is ringing.
            _ = write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    /// Stills the bell, then takes what there is: what comes in between rings again.
    pub(super) fn take(&self) -> Vec<Command> {
        // It fails only where the bell was not rung.
        _ = read(&self.bell, &mut [0; 8]);
        self.waiting.with(mem::take)
    }
}

impl AsFd for Commands {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
