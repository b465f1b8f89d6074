//! How the ranks of a job find each other and exchange what they need before any channel is there.
//!
//! A [`Bootstrap`] is a group of ranks that send each other bytes, matched by (peer, tag) and in order, and that make
//! collective calls. It is for set-up: handles, addresses, a few barriers. Data goes through channels.
//!
//! - [`TcpBootstrap`] joins processes, on one host or many, by a [`UniqueId`] or a [`RootAddress`].
//! - [`from_env`] does so with what a launcher such as torchrun or mpirun says.
//! - [`LocalBootstrap`] joins threads of one process.
//!
//! # Deadlines
//!
//! Every call ends: with its result, or by its deadline with an error that names the rank that was waited for. The death
//! of a rank ends what waits for it at once, and what waits for others on its account soon after.
//!
//! # Layers
//!
//! Each module imports only from those before it: `domain`, `receipt` < `mailbox` < `transport` < `topology`, `group`
//! (its collectives and its split) < `local`, `tcp` < `launcher`.

mod domain;
mod group;
mod launcher;
mod local;
mod mailbox;
mod receipt;
mod tcp;
mod topology;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use warpwire_device::abi::Rank;

pub use crate::env::{Family, HostId};
pub use domain::DomainId;
pub use group::Group;
pub use launcher::{from_env, variables};
pub use local::LocalBootstrap;
pub use receipt::{PendingRecv, Receipt};
pub use tcp::{MAX_WORLD, RootAddress, TcpBootstrap, TcpOptions, TcpRoot, UniqueId};
pub use topology::Topology;

use crate::error::Result;

/// The most bytes of a message.
pub const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// How long a step may take where nobody says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Tells apart the messages between two ranks. Every tag is the user's: collective calls have numbers of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// Which part of a group a rank goes to when the group is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Colour(pub u32);

/// A group of ranks that can talk to each other.
///
/// # Threads
///
/// Any thread may make any call. Two collective calls of one group, in two threads of a rank, run one after the other; which
/// is first is not said, so let one thread make them, or split the group.
pub trait Bootstrap: Send + Sync + fmt::Debug {
    /// This rank's number in the group.
    fn rank(&self) -> Rank;

    /// How many ranks the group has.
    fn size(&self) -> usize;

    /// This rank's host.
    fn host_id(&self) -> HostId;

    /// Who shares a host, and who can share memory.
    fn topology(&self) -> &Topology;

    /// How long the calls that take no time of their own may take.
    fn timeout(&self) -> Duration;

    /// Sends `bytes`. Returns once they are on their way: the peer may not have asked for them yet. Where it leaves much
    /// unreceived, waits for it.
    ///
    /// # Ordering
    ///
    /// Messages of one (sender, receiver, tag) arrive in the order of the calls.
    ///
    /// # Errors
    ///
    /// [`PeerLost`](crate::error::BootstrapError::PeerLost), [`Timeout`](crate::error::BootstrapError::Timeout),
    /// [`Aborted`](crate::error::BootstrapError::Aborted), a rank that is not in the group, a message that is too long.
    /// After a timeout nothing was sent.
    fn send_within(&self, to: Rank, tag: Tag, bytes: &[u8], timeout: Duration) -> Result<()>;

    /// The next message of (`from`, `tag`). One that comes after the time has passed goes to the next call.
    ///
    /// # Errors
    ///
    /// As for [`send_within`](Self::send_within). What a rank sent before it went can still be received.
    fn recv_within(&self, from: Rank, tag: Tag, timeout: Duration) -> Result<Vec<u8>>;

    /// A claim on the next message of (`from`, `tag`) that nobody has a claim on yet.
    ///
    /// # Errors
    ///
    /// A rank that is not in the group.
    fn post_recv(&self, from: Rank, tag: Tag) -> Result<PendingRecv>;

    /// Everybody's `bytes`, by rank; the lengths may differ. Collective.
    ///
    /// # Errors
    ///
    /// As for [`send_within`](Self::send_within), and [`Mismatch`](crate::error::BootstrapError::Mismatch) where another rank
    /// is in another call. After a failure every later collective call of the group fails.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// The bytes that `root` gives, on every rank; what the others give does not matter. Collective.
    ///
    /// # Errors
    ///
    /// As for [`all_gather`](Self::all_gather).
    fn broadcast(&self, root: Rank, bytes: &[u8]) -> Result<Vec<u8>>;

    /// Returns once every rank has called it. Collective.
    ///
    /// # Errors
    ///
    /// As for [`all_gather`](Self::all_gather).
    fn barrier(&self) -> Result<()>;

    /// Returns once each of `ranks` has called it with the same ranks, in any order; this rank has to be among them.
    ///
    /// # Errors
    ///
    /// As for [`all_gather`](Self::all_gather), and a list that is no group.
    fn group_barrier(&self, ranks: &[Rank]) -> Result<()>;

    /// The ranks of this one's colour as a group of their own, ordered by `key` and then by their rank here. Without a
    /// colour a rank takes part and gets no group. Collective.
    ///
    /// # Errors
    ///
    /// As for [`all_gather`](Self::all_gather).
    fn split(&self, colour: Option<Colour>, key: i64) -> Result<Option<Arc<dyn Bootstrap>>>;

    /// Fails where it is known that `rank` has gone, as a call that waits for it would; asks nobody. A bootstrap that cannot tell
    /// says nothing.
    ///
    /// # Errors
    ///
    /// [`PeerLost`](crate::error::BootstrapError::PeerLost), [`Aborted`](crate::error::BootstrapError::Aborted), a rank that is
    /// not in the group.
    fn expect_present(&self, _rank: Rank) -> Result<()> {
        Ok(())
    }

    /// Takes this rank out of the whole job, not only out of this group: ends its pending and later calls, and those of
    /// other ranks that wait for it.
    fn abort(&self);

    /// [`send_within`](Self::send_within) the group's time.
    ///
    /// # Errors
    ///
    /// As there.
    fn send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.send_within(to, tag, bytes, self.timeout())
    }

    /// [`recv_within`](Self::recv_within) the group's time.
    ///
    /// # Errors
    ///
    /// As there.
    fn recv(&self, from: Rank, tag: Tag) -> Result<Vec<u8>> {
        self.recv_within(from, tag, self.timeout())
    }

    /// How many of the group's ranks are on this rank's host.
    fn ranks_per_node(&self) -> usize {
        self.topology().node_of(self.rank()).len()
    }

    /// This rank's place among those of the group on its host, from 0.
    fn local_rank(&self) -> usize {
        let before = |rank: &&Rank| **rank < self.rank();
        self.topology().node_of(self.rank()).iter().filter(before).count()
    }

    /// How many of the group's ranks can share memory with this one.
    fn ranks_per_ipc_domain(&self) -> usize {
        self.topology().domain_of(self.rank()).len()
    }
}
