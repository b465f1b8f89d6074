//! A group of ranks over a transport: the one implementation of [`Bootstrap`].

mod collective;
mod members;
mod split;
mod tree;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use warpwire_device::abi::Rank;

use super::mailbox::{Address, Failure, Lane, Outcome, Slot};
use super::receipt::{PendingRecv, Receipt};
use super::topology::{Place, Topology};
use super::transport::Transport;
use super::{Bootstrap, Colour, MAX_MESSAGE_BYTES, Tag};
use crate::env::HostId;
use crate::error::{BootstrapError, Error, Result};
use crate::monitor::Monitor;
use crate::net::Deadline;
use collective::{Call, Operation};
use members::Members;

/// The context of the whole job. Others come from hashes.
const WORLD: u64 = 0;

/// A group of ranks: a whole job, as [`TcpBootstrap`](super::TcpBootstrap) or [`LocalBootstrap`](super::LocalBootstrap)
/// made it, or a part of one after a [`split`](Bootstrap::split).
///
/// The last group of a job to be dropped takes this rank out of it: what it had sent still arrives. Dropped while its thread
/// panics it is aborted instead.
pub struct Group {
    transport: Arc<dyn Transport>,
    members: Arc<Members>,
    context: u64,
    places: Vec<Place>,
    topology: Topology,
    calls: Monitor<Calls>,
}

/// The collective calls of a group; each set of ranks that makes some has a number.
#[derive(Debug, Default)]
struct Calls {
    /// Sets with a call under way.
    active: HashSet<u64>,
    /// Sets one of whose calls failed, and how.
    broken: HashMap<u64, String>,
    /// How often the group was split.
    splits: u64,
}

impl Group {
    /// The whole job.
    pub(super) fn world(transport: Arc<dyn Transport>, rank: Rank, places: Vec<Place>) -> Self {
        let all = (0..places.len() as u32).map(Rank).collect();
        Self::new(transport, Members::new(all, rank.0 as usize), WORLD, places)
    }

    fn new(transport: Arc<dyn Transport>, members: Members, context: u64, places: Vec<Place>) -> Self {
        let topology = Topology::new(&places);
        Self { transport, members: Arc::new(members), context, places, topology, calls: Monitor::default() }
    }

    fn address(&self, lane: Lane, tag: u64) -> Address {
        Address { lane, context: self.context, tag }
    }

    /// Makes a collective call among all ranks.
    fn collective<T>(
        &self,
        operation: Operation,
        body: impl FnOnce(&Call<'_>) -> Result<T, Failure>,
    ) -> Result<T> {
        self.collective_among(Arc::clone(&self.members), operation, body)
    }

    /// Makes a collective call among some ranks, given as members of their own.
    fn collective_among<T>(
        &self,
        set: Arc<Members>,
        operation: Operation,
        body: impl FnOnce(&Call<'_>) -> Result<T, Failure>,
    ) -> Result<T> {
        let deadline = Deadline::after(self.timeout());
        let name = operation.name();
        let tag = set.tag();
        self.enter(tag, name, deadline)?;
        let call =
            Call::new(&*self.transport, &set, self.address(Lane::Collective, tag), deadline, operation);
        let outcome = call.make(body).map_err(|failure| self.members.error(name, deadline.given(), failure));
        self.calls.change(|calls| {
            calls.active.remove(&tag);
            if let Err(error) = &outcome {
                calls.broken.insert(tag, error.to_string());
            }
        });
        outcome
    }

    /// Waits for the turn of a call among the set of that number.
    fn enter(&self, tag: u64, operation: &'static str, deadline: Deadline) -> Result<()> {
        self.calls.wait_until(|calls| {
            if let Some(first) = calls.broken.get(&tag) {
                let error = BootstrapError::Broken { operation, first: first.clone() };
                return ControlFlow::Break(Err(error.into()));
            }
            if calls.active.insert(tag) {
                return ControlFlow::Break(Ok(()));
            }
            match deadline.left() {
                Some(_) => ControlFlow::Continue(deadline.end()),
                None => {
                    let failure = Failure::Timeout { rank: self.members.own_world() };
                    ControlFlow::Break(Err(self.members.error(operation, deadline.given(), failure)))
                }
            }
        })
    }

    /// The members among `ranks`, of which this rank has to be one.
    fn subset(&self, ranks: &[Rank]) -> Result<Members> {
        let invalid = |reason| {
            let ranks = ranks.iter().map(|rank| rank.0).collect();
            Error::from(BootstrapError::InvalidGroup { ranks, reason })
        };
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != ranks.len() {
            return Err(invalid("a rank stands in it twice"));
        }
        let own = sorted.binary_search(&self.rank()).map_err(|_| invalid("this rank is not in it"))?;
        let world = sorted.iter().map(|rank| self.members.world(*rank)).collect::<Result<_>>()?;
        Ok(Members::new(world, own))
    }
}

impl Bootstrap for Group {
    fn rank(&self) -> Rank {
        self.members.own()
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn host_id(&self) -> HostId {
        self.places[self.members.own().0 as usize].host
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn timeout(&self) -> Duration {
        self.transport.timeout()
    }

    fn send_within(&self, to: Rank, tag: Tag, bytes: &[u8], timeout: Duration) -> Result<()> {
        let world = self.members.world(to)?;
        if bytes.len() > MAX_MESSAGE_BYTES {
            let (bytes, limit) = (bytes.len(), MAX_MESSAGE_BYTES);
            return Err(BootstrapError::MessageTooLong { bytes, limit }.into());
        }
        let sent =
            self.transport.send(world, self.address(Lane::Direct, tag.0), &[bytes], Deadline::after(timeout));
        sent.map_err(|failure| self.members.error("send", timeout, failure))
    }

    fn recv_within(&self, from: Rank, tag: Tag, timeout: Duration) -> Result<Vec<u8>> {
        let world = self.members.world(from)?;
        let deadline = Deadline::after(timeout);
        let address = self.address(Lane::Direct, tag.0);
        let slot = self.transport.mailbox().claim(world, address, &Arc::from([]));
        let outcome = slot.wait(deadline.end()).unwrap_or_else(|| {
            if self.transport.mailbox().withdraw(address, &slot) {
                return Err(Failure::Timeout { rank: world });
            }
            // It was served between the deadline and the withdrawal.
            slot.wait(deadline.end()).unwrap_or(Err(Failure::Timeout { rank: world }))
        });
        outcome.map_err(|failure| self.members.error("recv", timeout, failure))
    }

    fn post_recv(&self, from: Rank, tag: Tag) -> Result<PendingRecv> {
        let world = self.members.world(from)?;
        let slot = self.transport.mailbox().claim(world, self.address(Lane::Direct, tag.0), &Arc::from([]));
        let members = Arc::clone(&self.members);
        Ok(PendingRecv::new(Box::new(Claim { slot, members })))
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let limit = MAX_MESSAGE_BYTES / self.size() - collective::ENTRY_BYTES;
        if bytes.len() > limit {
            return Err(BootstrapError::MessageTooLong { bytes: bytes.len(), limit }.into());
        }
        self.collective(Operation::AllGather, |call| call.all_gather(bytes))
    }

    fn broadcast(&self, root: Rank, bytes: &[u8]) -> Result<Vec<u8>> {
        self.members.world(root)?;
        let limit = MAX_MESSAGE_BYTES - collective::HEADER_BYTES;
        if root == self.rank() && bytes.len() > limit {
            return Err(BootstrapError::MessageTooLong { bytes: bytes.len(), limit }.into());
        }
        self.collective(Operation::Broadcast { root }, |call| call.broadcast(bytes))
    }

    fn barrier(&self) -> Result<()> {
        self.collective(Operation::Barrier, |call| call.barrier())
    }

    fn group_barrier(&self, ranks: &[Rank]) -> Result<()> {
        let set = Arc::new(self.subset(ranks)?);
        self.collective_among(set, Operation::Barrier, |call| call.barrier())
    }

    fn split(&self, colour: Option<Colour>, key: i64) -> Result<Option<Arc<dyn Bootstrap>>> {
        let wishes = self.collective(Operation::Split, |call| {
            let count = self.calls.with(|calls| {
                calls.splits += 1;
                calls.splits
            });
            let wishes = call.all_gather(&split::Wish { colour, key }.pack())?;
            Ok((count, wishes))
        });
        let (count, wishes) = wishes?;
        let Some(part) = split::part(&wishes, self.rank()) else { return Ok(None) };
        let context = split::context(self.context, count, part.colour);
        let world = part.ranks.iter().map(|rank| self.members.world(*rank)).collect::<Result<_>>()?;
        let places = part.ranks.iter().map(|rank| self.places[rank.0 as usize]).collect();
        let transport = Arc::clone(&self.transport);
        Ok(Some(Arc::new(Self::new(transport, Members::new(world, part.own), context, places))))
    }

    fn expect_present(&self, rank: Rank) -> Result<()> {
        let (world, mailbox) = (self.members.world(rank)?, self.transport.mailbox());
        let loss = mailbox.loss(world).map(Failure::Lost);
        let failure = loss.or_else(|| mailbox.is_aborted().then_some(Failure::Aborted));
        failure
            .map_or(Ok(()), |failure| Err(self.members.error("looking for a rank", Duration::ZERO, failure)))
    }

    fn abort(&self) {
        self.transport.abort();
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("members", &self.members)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

/// A claim of the user's on a message.
struct Claim {
    slot: Arc<Slot>,
    members: Arc<Members>,
}

impl Claim {
    fn result(&self, outcome: Outcome, waited: Duration) -> Result<Vec<u8>> {
        outcome.map_err(|failure| self.members.error("recv", waited, failure))
    }
}

impl Receipt for Claim {
    fn wait(&mut self, timeout: Duration) -> Result<Option<Vec<u8>>> {
        let outcome = self.slot.wait(Deadline::after(timeout).end());
        outcome.map(|outcome| self.result(outcome, timeout)).transpose()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<u8>>> {
        self.slot.poll(context).map(|outcome| self.result(outcome, Duration::ZERO))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.slot.abandon();
    }
}
