//! What can go wrong while ranks find each other and talk.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use warpwire_device::abi::Rank;

use super::ErrorKind;

/// A failure of the bootstrap. Where it names a rank, `rank` counts in the group that the call was made on and `world` in
/// the whole job; the two differ after a split.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// A text that is no root address.
    #[error(
        "{text:?} is no root address: {reason}; give \"ip:port\", \"name:port\", \"[ipv6]:port\" or one of them \
         after \"interface:\""
    )]
    InvalidAddress {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A name that no address was found for.
    #[error("no {family} address was found for {host:?}: {reason}; check the name, or give an address")]
    Unresolvable {
        /// The name.
        host: String,
        /// Which addresses were looked for.
        family: &'static str,
        /// What the resolver said.
        reason: String,
    },

    /// A text that is no list of interfaces.
    #[error(
        "{text:?} is no list of interfaces: {reason}; give prefixes with commas between them, after \"=\" for exact names, \
         after \"^\" for those to leave out"
    )]
    InvalidInterfaces {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },

    /// No interface that was asked for is here with an address.
    #[error(
        "no network interface {asked} with an {family} address is on this machine; it has {}: \
         set WARPWIRE_SOCKET_IFNAME or WARPWIRE_SOCKET_FAMILY to one of them, or unset both",
        listed(present)
    )]
    NoInterface {
        /// What was asked for.
        asked: String,
        /// The family of addresses asked for.
        family: &'static str,
        /// The interfaces there are.
        present: Vec<String>,
    },

    /// A text or a run of bytes that is no unique id.
    #[error("this is no unique id: {reason}; hand it on as the root made it")]
    InvalidId {
        /// What is wrong with it.
        reason: String,
    },

    /// A variable that says where this process stands is missing.
    #[error("{missing} is not set: start the ranks with a launcher, or set {needed}")]
    MissingVariable {
        /// The variable.
        missing: &'static str,
        /// What has to be set.
        needed: &'static str,
    },

    /// Nobody can listen at an address.
    #[error("cannot listen on {address}: {source}; {hint}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },

    /// The root, rank 0, was not reached.
    #[error(
        "rank 0 was not reached at {address} within {waited:?} ({attempts} attempts, the last: {last}): \
         check that it is running and that the address is one that this machine reaches"
    )]
    RootUnreachable {
        /// Where it was looked for.
        address: SocketAddr,
        /// How long.
        waited: Duration,
        /// How often.
        attempts: u32,
        /// How the last attempt ended.
        last: String,
    },

    /// The other end is not one of ours.
    #[error("{address} does not speak warpwire's bootstrap: {reason}; check the address and the port")]
    Stranger {
        /// The other end.
        address: SocketAddr,
        /// What it did.
        reason: String,
    },

    /// The other end turned this rank away.
    #[error("{address} turned this rank away: {refusal}")]
    Refused {
        /// The other end.
        address: SocketAddr,
        /// Why.
        refusal: Refusal,
    },

    /// A rank of this job checked in that cannot be one of it: no rank can start.
    #[error("the job cannot start, since of the rank that checked in from {address} {refusal}")]
    CheckIn {
        /// Where it came from.
        address: String,
        /// What is wrong with it.
        refusal: Refusal,
    },

    /// Some ranks did not come.
    #[error(
        "{} of {size} did not check in within {waited:?}{strangers}: check that every rank was started, with this size and \
         this root",
        named(missing)
    )]
    Missing {
        /// Those who did not.
        missing: Vec<Rank>,
        /// Ranks of the job.
        size: usize,
        /// How long the root waited.
        waited: Duration,
        /// Whom the root turned away meanwhile; begins with its own separator, or is empty.
        strangers: String,
    },

    /// A rank is gone.
    #[error("{operation}: {} {departure} ({detail})", worded(*rank, *world))]
    PeerLost {
        /// What was tried.
        operation: &'static str,
        /// The rank in the group.
        rank: Rank,
        /// The rank in the whole job.
        world: Rank,
        /// How it went.
        departure: Departure,
        /// How that was seen.
        detail: String,
    },

    /// The time for a call passed.
    #[error(
        "{operation}: {} did not answer within {waited:?}: it may be slow, stuck, or in another call; \
         WARPWIRE_BOOTSTRAP_TIMEOUT sets the time",
        worded(*rank, *world)
    )]
    Timeout {
        /// What was tried.
        operation: &'static str,
        /// The rank that was waited for.
        rank: Rank,
        /// The same rank in the whole job.
        world: Rank,
        /// How long.
        waited: Duration,
    },

    /// This rank's own bootstrap was aborted.
    #[error("{operation}: this rank's bootstrap was aborted")]
    Aborted {
        /// What was tried.
        operation: &'static str,
    },

    /// A message of more bytes than one may have.
    #[error("a message of {bytes} bytes was given; one has at most {limit}: send it in pieces")]
    MessageTooLong {
        /// Its bytes.
        bytes: usize,
        /// The most there may be.
        limit: usize,
    },

    /// Two ranks of a group are in different collective calls.
    #[error(
        "{} is in {theirs} while this rank is in {ours}: every rank of a group has to make the same collective calls in \
         the same order",
        worded(*rank, *world)
    )]
    Mismatch {
        /// The other rank in the group.
        rank: Rank,
        /// The same rank in the whole job.
        world: Rank,
        /// This rank's call.
        ours: String,
        /// The other's.
        theirs: String,
    },

    /// A collective call on a group one of whose earlier calls failed.
    #[error(
        "{operation}: an earlier collective call of this group failed ({first}), so its ranks no longer agree on where they \
         are: make a new group"
    )]
    Broken {
        /// What was tried.
        operation: &'static str,
        /// The first failure.
        first: String,
    },

    /// A list of ranks that is no group.
    #[error("the ranks {ranks:?} are no group: {reason}")]
    InvalidGroup {
        /// The list.
        ranks: Vec<u32>,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl BootstrapError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidAddress { .. }
            | Self::InvalidInterfaces { .. }
            | Self::InvalidId { .. }
            | Self::MissingVariable { .. }
            | Self::MessageTooLong { .. }
            | Self::InvalidGroup { .. } => ErrorKind::InvalidArgument,
            Self::Unresolvable { .. } | Self::NoInterface { .. } => ErrorKind::NotFound,
            Self::Listen { .. } => ErrorKind::Unavailable,
            Self::Stranger { .. } | Self::Refused { .. } | Self::CheckIn { .. } => ErrorKind::Refused,
            Self::RootUnreachable { .. } | Self::Missing { .. } | Self::Timeout { .. } => ErrorKind::Timeout,
            Self::PeerLost { .. } => ErrorKind::PeerLost,
            Self::Aborted { .. } => ErrorKind::Aborted,
            Self::Mismatch { .. } | Self::Broken { .. } => ErrorKind::State,
        }
    }
}

/// Why a rank was turned away. Travels between ranks: new reasons are added at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It does not know the job's secret.
    #[error("it does not know this job's secret: it was started with the id or the secret of another job")]
    Secret,
    /// It is of another version.
    #[error(
        "it speaks version {joiner} of the bootstrap and the other end version {root}: \
         build all ranks from one version"
    )]
    Version {
        /// The version of the rank that came.
        joiner: u16,
        /// The version of the one it came to.
        root: u16,
    },
    /// Its rank is not in the job.
    #[error("it calls itself rank {rank}, and the ranks of a job of {size} are 0 to {}", size.saturating_sub(1))]
    RankBeyond {
        /// Its rank.
        rank: u32,
        /// The job's size.
        size: u32,
    },
    /// Its rank is taken.
    #[error("it calls itself rank {rank}, as another process does: every process has its own rank")]
    DuplicateRank {
        /// Its rank.
        rank: u32,
    },
    /// It was started for a job of another size.
    #[error(
        "it was started for a job of {joiner} ranks, and rank 0 for one of {root}: give every rank the same size"
    )]
    OtherSize {
        /// The size that it knows.
        joiner: u32,
        /// The size that the root knows.
        root: u32,
    },
    /// The job is complete already.
    #[error("it came after the job had started: every rank of it is there")]
    Complete,
    /// It looked for another rank here.
    #[error("it looked for rank {asked} where rank {here} is")]
    OtherRank {
        /// Whom it looked for.
        asked: u32,
        /// Who is here.
        here: u32,
    },
    /// It spoke out of turn.
    #[error("it broke the protocol: {0}")]
    Protocol(String),
}

/// How a rank went. Travels between ranks: new ways are added at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Departure {
    /// It dropped its bootstrap, and had no more to say.
    Left,
    /// It was aborted, or panicked.
    Aborted,
    /// It died, or cannot be reached any more.
    Lost,
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "has left the job",
            Self::Aborted => "was aborted",
            Self::Lost => "is lost",
        })
    }
}

fn worded(rank: Rank, world: Rank) -> String {
    if rank == world {
        format!("rank {}", rank.0)
    } else {
        format!("rank {} ({} of the job)", rank.0, world.0)
    }
}

fn named(ranks: &[Rank]) -> String {
    /// More than these tell nobody anything.
    const SHOWN: usize = 16;
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(|rank| rank.0.to_string()).collect();
    let rest = match ranks.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} {}{rest}", if ranks.len() == 1 { "rank" } else { "ranks" }, shown.join(", "))
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none that is up".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_ranks() {
        let lost = |rank, world| BootstrapError::PeerLost {
            operation: "barrier",
            rank: Rank(rank),
            world: Rank(world),
            departure: Departure::Lost,
            detail: "its connection closed".to_owned(),
        };
        assert_eq!(lost(2, 2).to_string(), "barrier: rank 2 is lost (its connection closed)");
        assert_eq!(lost(2, 5).to_string(), "barrier: rank 2 (5 of the job) is lost (its connection closed)");
        assert_eq!(named(&[Rank(3)]), "rank 3");
        let many: Vec<Rank> = (0..20).map(Rank).collect();
        assert!(named(&many).ends_with("14, 15 and 4 more"), "{}", named(&many));
        assert_eq!(lost(0, 0).kind(), ErrorKind::PeerLost);
    }
}
