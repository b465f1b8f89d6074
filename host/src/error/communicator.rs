//! What can go wrong while ranks set up what they share.

use std::time::Duration;

use warpwire_device::abi::{ChannelId, Rank};

use super::{Error, ErrorKind};

/// A failed exchange between ranks. Ranks count in the communicator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommunicatorError {
    /// An exchange with one rank failed.
    #[error("{operation} with rank {} on tag {tag}: {source}", peer.0)]
    Exchange {
        /// What was asked for.
        operation: &'static str,
        /// The other rank.
        peer: Rank,
        /// The tag.
        tag: u64,
        /// What went wrong.
        source: Box<Error>,
    },

    /// The other rank did not do its part in time.
    #[error(
        "{operation} with rank {} on tag {tag}: that rank has not made the same call within {waited:?}; the request stands",
        peer.0
    )]
    Timeout {
        /// What was asked for.
        operation: &'static str,
        /// The other rank.
        peer: Rank,
        /// The tag.
        tag: u64,
        /// How long it was waited for.
        waited: Duration,
    },

    /// A result that was taken before.
    #[error("{operation} with rank {} on tag {tag}: its result was taken before", peer.0)]
    Taken {
        /// What was asked for.
        operation: &'static str,
        /// The other rank.
        peer: Rank,
        /// The tag.
        tag: u64,
    },

    /// The other rank speaks another version.
    #[error(
        "rank {} speaks version {theirs} of the communicator's protocol and this rank version {ours}: build all ranks from \
         one version",
        peer.0
    )]
    Version {
        /// The other rank.
        peer: Rank,
        /// This rank's version.
        ours: u16,
        /// The other's.
        theirs: u16,
    },

    /// The other rank used the tag for something else.
    #[error(
        "rank {} sent {theirs} where this rank waits for {ours}: one tag was used for two things, or the two ranks' calls are \
         in another order",
        peer.0
    )]
    TagMisused {
        /// The other rank.
        peer: Rank,
        /// What this rank waits for.
        ours: &'static str,
        /// What has come.
        theirs: &'static str,
    },

    /// Bytes that are no message.
    #[error("rank {} sent {bytes} bytes that are not {expected}: {reason}", peer.0)]
    Malformed {
        /// The other rank.
        peer: Rank,
        /// How many bytes came.
        bytes: usize,
        /// What they should have been.
        expected: &'static str,
        /// What is wrong with them.
        reason: String,
    },

    /// Ranks that gave different values where all have to give the same.
    #[error(
        "{what} has to be the same on all ranks: rank {} gave {first_value} and rank {} gave {other_value}",
        first.0, other.0
    )]
    Disagreement {
        /// What differs.
        what: &'static str,
        /// A rank.
        first: Rank,
        /// Its value.
        first_value: u64,
        /// Another.
        other: Rank,
        /// Its value.
        other_value: u64,
    },

    /// Another rank failed in a call of all of them.
    #[error("{operation}: rank {} failed: {detail}", peer.0)]
    PeerFailed {
        /// What was tried.
        operation: &'static str,
        /// The rank that failed.
        peer: Rank,
        /// Its error.
        detail: String,
    },

    /// Memories of a channel that are not as long as each other.
    #[error(
        "channel {} with rank {} was given {local} bytes of this rank's memory and {remote} of the peer's: register as many on \
         both",
        channel.0, peer.0
    )]
    UnequalMemories {
        /// The channel.
        channel: ChannelId,
        /// The other rank.
        peer: Rank,
        /// Bytes of this rank's memory.
        local: u64,
        /// Bytes of the peer's.
        remote: u64,
    },

    /// A bootstrap that gave no group where it had to.
    #[error("the bootstrap did not split off a group of all its ranks, which the communicator needs")]
    NoGroup,
}

impl CommunicatorError {
    /// See [`Error::kind`].
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Exchange { source, .. } => source.kind(),
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Version { .. } | Self::Malformed { .. } => ErrorKind::Refused,
            Self::Disagreement { .. } | Self::UnequalMemories { .. } => ErrorKind::InvalidArgument,
            Self::Taken { .. } | Self::TagMisused { .. } | Self::PeerFailed { .. } | Self::NoGroup => {
                ErrorKind::State
            }
        }
    }
}
