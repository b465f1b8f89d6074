//! Messages over the connections that a service thread serves.

use std::net::TcpStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use warpwire_device::abi::Rank;

use super::super::mailbox::{Address, Failure, Mailbox};
use super::super::transport::Transport;
use super::commands::Command;
use super::message::{PAYLOAD_LIMIT, pack_envelope};
use super::outbox::{News, Outbox, Refused};
use super::payload::{Claim, Purpose};
use super::shared::{Shared, Way};
use crate::error::{BootstrapError, Departure};
use crate::net::Deadline;
use crate::net::dial::{DialFault, dial};
use crate::net::interface::system;
use crate::net::payload::encode;

/// A rank's side of the connections.
#[derive(Debug)]
pub(super) struct TcpTransport {
    shared: Arc<Shared>,
    timeout: Duration,
    service: Option<JoinHandle<()>>,
}

impl TcpTransport {
    pub(super) fn new(shared: Arc<Shared>, timeout: Duration, service: JoinHandle<()>) -> Self {
        Self { shared, timeout, service: Some(service) }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The connection that messages to a rank go over.
    fn outbox(&self, to: Rank, deadline: Deadline) -> Result<Arc<Outbox>, Failure> {
        match self.shared.way_to(to, deadline) {
            Way::Open(outbox) => Ok(outbox),
            Way::Late => Err(Failure::Timeout { rank: to }),
            Way::Dial => {
                let dialled = self.dial(to, deadline);
                // Whatever came of it, another thread may try.
                self.shared.dialled(to);
                dialled
            }
        }
    }

    fn dial(&self, to: Rank, deadline: Deadline) -> Result<Arc<Outbox>, Failure> {
        let Some(job) = self.shared.job.get() else { return Err(Failure::Aborted) };
        let Some(member) = job.members.get(to.0 as usize) else { return Err(Failure::Timeout { rank: to }) };
        let address = member.endpoint.seen_from(job.scope);
        let claim = encode(&Claim {
            rank: self.shared.rank.0,
            size: self.shared.size as u32,
            purpose: Purpose::Link { to: to.0 },
        });
        let stop = || self.shared.mailbox.is_aborted() || self.shared.mailbox.loss(to).is_some();
        let mut claim = |_: &TcpStream| Ok(claim.clone());
        match dial(&[address], &job.session, &mut claim, deadline, &stop) {
            Ok(mut connection) => {
                connection.reader.set_limit(PAYLOAD_LIMIT);
                // From here on nobody waits for this connection but the service, by its poller.
                let unblocked = connection.stream.set_nonblocking(true);
                unblocked.map_err(|error| Failure::Other(system("making a connection not wait")(error)))?;
                let outbox = self.shared.new_outbox(&connection.stream);
                self.shared.offer_route(to, &outbox);
                let command = Command::Adopt { peer: to, connection, outbox: Arc::clone(&outbox) };
                self.shared.commands.push(command);
                // The peer may have connected to here meanwhile: then that connection came first, and counts.
                match self.shared.way_to(to, deadline) {
                    Way::Open(first) => Ok(first),
                    Way::Dial | Way::Late => Ok(outbox),
                }
            }
            Err(DialFault::Late { .. }) => Err(Failure::Timeout { rank: to }),
            Err(DialFault::Stopped) => Err(self.shared.why_closed(to)),
            Err(DialFault::Refused { address, refusal }) => {
                Err(BootstrapError::Refused { address, refusal }.into())
            }
            Err(DialFault::Stranger { address, reason }) => {
                Err(BootstrapError::Stranger { address, reason }.into())
            }
            Err(DialFault::Other(error)) => Err(Failure::Other(error)),
        }
    }

    fn leave(&self, departure: Departure) {
        self.shared.mailbox.abort();
        self.shared.commands.push(Command::Close(departure));
    }
}

impl Transport for TcpTransport {
    fn mailbox(&self) -> &Mailbox {
        &self.shared.mailbox
    }

    fn send(&self, to: Rank, address: Address, parts: &[&[u8]], deadline: Deadline) -> Result<(), Failure> {
        let (mailbox, own) = (&self.shared.mailbox, self.shared.rank);
        if mailbox.is_aborted() {
            return Err(Failure::Aborted);
        }
        if to == own {
            let delivered = mailbox.deliver_within(own, address, &parts.concat(), deadline);
            return delivered.ok_or(Failure::Timeout { rank: to });
        }
        if let Some(loss) = mailbox.loss(to) {
            return Err(Failure::Lost(loss));
        }
        let envelope = pack_envelope(address, parts.iter().map(|part| part.len()).sum());
        let frame: Vec<&[u8]> = [&envelope[..]].into_iter().chain(parts.iter().copied()).collect();
        let outbox = self.outbox(to, deadline)?;
        match outbox.push(&frame, deadline) {
            Ok(News::Tell) => self.shared.commands.push(Command::Write(outbox.token())),
            Ok(News::Nothing) => {}
            Err(Refused::Full) => return Err(Failure::Timeout { rank: to }),
            Err(Refused::Closed) => return Err(self.shared.why_closed(to)),
        }
        Ok(())
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn abort(&self) {
        self.leave(Departure::Aborted);
    }
}

impl Drop for TcpTransport {
    fn drop(&mut self) {
        self.leave(if thread::panicking() { Departure::Aborted } else { Departure::Left });
        let Some(service) = self.service.take() else { return };
        // A waker may drop the last group on the service thread itself, which then ends by itself.
        if service.thread().id() != thread::current().id() && service.join().is_err() {
            tracing::error!(rank = self.shared.rank.0, "the bootstrap's service panicked");
        }
    }
}
