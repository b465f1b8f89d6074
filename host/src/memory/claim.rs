//! The importer's side of a hand-over.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::geteuid;

use super::handle::Ticket;
use super::message::{Operation, REPLY_BYTES, Request, Status};
use super::socket;
use crate::error::{Error, MemoryError, Result};

/// How long the exporter may take for an answer. Its thread does nothing else, so this passes only where the process stands
/// still.
const LIMIT: Duration = Duration::from_secs(10);

/// A connection to an exporter, which keeps the exported object as long as this is not dropped.
#[derive(Debug)]
pub(super) struct Claim {
    socket: OwnedFd,
    ticket: Ticket,
    limit: Duration,
}

impl Claim {
    /// Claims what a ticket is for.
    pub(super) fn new(ticket: Ticket) -> Result<Self> {
        Self::within(ticket, LIMIT)
    }

    /// As [`Claim::new`], with another limit for each answer.
    pub(super) fn within(ticket: Ticket, limit: Duration) -> Result<Self> {
        let socket = match socket::dial(&ticket.service, limit) {
            Ok(socket) => socket,
            Err(Errno::CONNREFUSED) => {
                let detail =
                    "no process of this host, or of this container's network, has its socket".to_owned();
                return Err(MemoryError::ExporterGone { detail }.into());
            }
            Err(Errno::AGAIN | Errno::TIMEDOUT) => return Err(MemoryError::HandOverTimeout { limit }.into()),
            Err(error) => return Err(Error::system("connecting to the memory's owner", error)),
        };
        // Once the owner has gone, another user's process may take its name and hand over whatever it likes.
        let user =
            socket::peer_user(socket.as_fd()).map_err(|e| Error::system("asking for the owner's user", e))?;
        if user != geteuid().as_raw() {
            let reason = "the process at its address runs as another user";
            return Err(MemoryError::HandOverRefused { reason }.into());
        }
        let claim = Self { socket, ticket, limit };
        claim.ask(Operation::Hold)?;
        Ok(claim)
    }

    /// The export's descriptor.
    pub(super) fn descriptor(&self) -> Result<OwnedFd> {
        let descriptor = self.ask(Operation::Descriptor)?;
        descriptor.ok_or_else(|| MemoryError::HandOverRefused { reason: "it sent no descriptor" }.into())
    }

    fn ask(&self, operation: Operation) -> Result<Option<OwnedFd>> {
        let Ticket { export, token, .. } = self.ticket;
        let request = Request { operation, export, token };
        let gone = || MemoryError::ExporterGone { detail: "it ended during the hand-over".to_owned() };
        let failed = |error| match error {
            Errno::AGAIN | Errno::TIMEDOUT => MemoryError::HandOverTimeout { limit: self.limit }.into(),
            Errno::PIPE | Errno::CONNRESET => gone().into(),
            _ => Error::system("talking to the memory's owner", error),
        };
        // Where that fails, an answer may be there already that says why: that to another user. A service that closes without
        // reading the request resets the connection, but what it has said before is there behind the reset.
        let sent = socket::send(self.socket.as_fd(), &request.pack(), None);
        let received = match socket::receive::<REPLY_BYTES>(self.socket.as_fd()) {
            Err(Errno::CONNRESET) => socket::receive(self.socket.as_fd()),
            received => received,
        };
        let received = received.map_err(|error| failed(sent.err().unwrap_or(error)))?;
        if received.message().is_empty() {
            return Err(gone().into());
        }
        let Some(status) = Status::unpack(received.message()) else {
            return Err(MemoryError::HandOverRefused { reason: "its answer is no answer" }.into());
        };
        status.check()?;
        if received.no_room {
            let operation = "receiving a descriptor of shared memory".to_owned();
            return Err(MemoryError::DescriptorLimit { operation }.into());
        }
        Ok(received.descriptor)
    }
}
