//! Calls that two ranks make with each other.

use std::sync::Arc;

use warpwire_device::abi::{Pod, Rank};

use super::message::{self, Content, Memory, Offer, SemaphoreOffer};
use super::pending::{Pending, Request};
use super::{Communicator, Shared};
use crate::bootstrap::Tag;
use crate::connection::{Connection, EndpointConfig, Life, Peer, Site, Transport};
use crate::device::Buffer;
use crate::error::{ConnectionError, Error, Result};
use crate::memory::{RegisteredMemory, Transports};
use crate::semaphore::Semaphore;

impl Communicator {
    /// Registers a buffer of the communicator's device, for peers that reach it by `transports`.
    ///
    /// # Errors
    ///
    /// As for [`RegisteredMemory::of`]; [`Error::ForeignObject`] for a buffer of another device.
    pub fn register_memory<T: Pod>(
        &self,
        buffer: &Buffer<T>,
        transports: Transports,
    ) -> Result<RegisteredMemory> {
        self.device().expect_own(buffer.device(), "buffer")?;
        RegisteredMemory::of(buffer, transports)
    }

    /// Tells `to` of this rank's memory, and does not wait for it: `to` gets it from
    /// [`recv_memory`](Communicator::recv_memory) with the same tag. Keep the memory registered until it has.
    ///
    /// # Errors
    ///
    /// [`CommunicatorError::Exchange`](crate::error::CommunicatorError::Exchange) with the bootstrap's.
    pub fn send_memory(&self, memory: &RegisteredMemory, to: Rank, tag: Tag) -> Result<()> {
        let request = self.request("sending memory", to, tag);
        let told = memory.serialize().and_then(|bytes| self.tell(request, &Memory(bytes)));
        told.map_err(|error| request.failed(error))
    }

    /// The next memory that `from` sends with this tag, mapped here where it was registered for that.
    ///
    /// # Errors
    ///
    /// [`CommunicatorError::Exchange`](crate::error::CommunicatorError::Exchange) for a rank that is not in the group. From
    /// the result: what [`Pending::wait`] says, and as for [`RegisteredMemory::deserialize`].
    pub fn recv_memory(&self, from: Rank, tag: Tag) -> Result<Pending<RegisteredMemory>> {
        let request = self.request("receiving memory", from, tag);
        let shared = Arc::clone(&self.shared);
        self.pending(request, move |message, _| {
            let Memory(bytes) = message::open(from, &message)?;
            RegisteredMemory::deserialize(shared.context.device(), &bytes)
        })
    }

    /// A connection to `remote`, which has to ask for one of the same configuration to this rank with the same tag.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::recv_memory`]; the transport's, where this end cannot be made. From the result:
    /// [`ConnectionError::Mismatch`] on both ranks where they ask for different ones, [`ConnectionError::Unreachable`] where
    /// the transport does not reach from one to the other, and the transport's own.
    pub fn connect(&self, config: EndpointConfig, remote: Rank, tag: Tag) -> Result<Pending<Connection>> {
        let request = self.request("connecting", remote, tag);
        let here = self.shared.own_site().map_err(|error| request.failed(error))?;
        let prepared = config.prepare(self.device(), here).and_then(|endpoint| {
            let (transport, terms, site) = (config.transport(), endpoint.terms(), here.clone());
            let description = endpoint.description()?;
            Ok((endpoint, Offer { transport, terms, site, description }))
        });
        let (endpoint, ours) = prepared.map_err(|error| request.failed(error))?;
        let message = message::seal(&ours)?;
        let (context, job) = (self.context().clone(), Arc::downgrade(self.bootstrap()));
        let pending = self.pending(request, move |message, timeout| {
            let theirs: Offer = message::open(remote, &message)?;
            compare(remote, &ours, &theirs)?;
            let peer = Peer {
                rank: remote,
                site: &theirs.site,
                description: &theirs.description,
                life: Life::new(job, remote),
                patience: request.timeout,
            };
            let connection = Connection::over(endpoint.join(peer, timeout)?);
            context.serve(&connection);
            Ok(connection)
        })?;
        self.send(request, &message)?;
        Ok(pending)
    }

    /// A semaphore with the rank at the other end of `connection`, which has to build one over its end with the same tag.
    ///
    /// A request that is dropped before it is ready leaves this rank's slot to the peer until that drops its end, and the
    /// peer's to this rank until it leaves.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::recv_memory`], and those of the slot's allocation. From the result: as there, and
    /// [`ConnectionError::Mismatch`] where the peer builds it over another transport.
    pub fn build_semaphore(&self, connection: &Connection, tag: Tag) -> Result<Pending<Semaphore>> {
        let (peer, transport) = (connection.peer(), connection.transport());
        let request = self.request("building a semaphore", peer, tag);
        let lent = self.shared.lending.lend(peer, transport.registration());
        let mut loan = lent.map_err(|error| request.failed(error))?;
        let token = loan.registered().serialize().map_err(|error| request.failed(error))?;
        let message = message::seal(&SemaphoreOffer { transport, id: loan.id(), token })?;
        let (shared, connection) = (Arc::clone(&self.shared), connection.clone());
        let pending = self.pending(request, move |message, _| {
            let theirs: SemaphoreOffer = message::open(peer, &message)?;
            loan.paired_with(theirs.id);
            same_transport(peer, transport, theirs.transport)?;
            let token = RegisteredMemory::deserialize(shared.context.device(), &theirs.token)?;
            Ok(Semaphore::new(connection, token, loan))
        })?;
        self.send(request, &message)?;
        Ok(pending)
    }

    fn request(&self, operation: &'static str, peer: Rank, tag: Tag) -> Request {
        Request { operation, peer, tag, timeout: self.timeout() }
    }

    fn tell<C: Content>(&self, request: Request, content: &C) -> Result<()> {
        self.bootstrap().send(request.peer, request.tag, &message::seal(content)?)
    }

    fn send(&self, request: Request, message: &[u8]) -> Result<()> {
        let sent = self.bootstrap().send(request.peer, request.tag, message);
        sent.map_err(|error| request.failed(error))
    }

    fn pending<T>(
        &self,
        request: Request,
        finish: impl FnOnce(Vec<u8>, std::time::Duration) -> Result<T> + Send + 'static,
    ) -> Result<Pending<T>> {
        let receipt = self.bootstrap().post_recv(request.peer, request.tag);
        Ok(Pending::new(request, receipt.map_err(|error| request.failed(error))?, finish))
    }
}

impl Shared {
    fn own_site(&self) -> Result<&Site> {
        let (rank, ranks) = (self.bootstrap.rank(), self.sites.len());
        self.sites.get(rank.0 as usize).ok_or(Error::NoSuchRank { rank, ranks })
    }
}

/// Fails where the two ends are not of one connection.
fn compare(peer: Rank, ours: &Offer, theirs: &Offer) -> Result<()> {
    same_transport(peer, ours.transport, theirs.transport)?;
    let value = |terms: &[(String, String)], name: &String| {
        let found = terms.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "none".to_owned(), |(_, value)| value.clone())
    };
    for (name, _) in ours.terms.iter().chain(&theirs.terms) {
        let (here, there) = (value(&ours.terms, name), value(&theirs.terms, name));
        if here != there {
            let what = name.clone();
            return Err(ConnectionError::Mismatch { peer, what, ours: here, theirs: there }.into());
        }
    }
    Ok(())
}

fn same_transport(peer: Rank, ours: Transport, theirs: Transport) -> Result<()> {
    if ours == theirs {
        return Ok(());
    }
    let (what, ours, theirs) = ("the transport".to_owned(), ours.to_string(), theirs.to_string());
    Err(ConnectionError::Mismatch { peer, what, ours, theirs }.into())
}

#[cfg(test)]
mod tests;
