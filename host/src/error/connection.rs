//! What can go wrong on the way to one peer.

use std::time::Duration;

use warpwire_device::abi::Rank;

use super::ErrorKind;

/// A failed operation of a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// What was asked for was not complete in time.
    #[error("the {transport} connection to rank {} had not completed what was asked for after {timeout:?}", peer.0)]
    Timeout {
        /// The rank at the other end.
        peer: Rank,
        /// What carries the connection.
        transport: &'static str,
        /// How long it was waited for.
        timeout: Duration,
    },

    /// The connection has failed, and stays failed.
    #[error("the {transport} connection to rank {} has failed: {reason}", peer.0)]
    Failed {
        /// The rank at the other end.
        peer: Rank,
        /// What carries the connection.
        transport: &'static str,
        /// What was seen.
        reason: String,
    },

    /// The connection was closed on this side.
    #[error("the {transport} connection to rank {} was closed by this rank", peer.0)]
    Closed {
        /// The rank at the other end.
        peer: Rank,
        /// What carries the connection.
        transport: &'static str,
    },

    /// Memory that the connection does not reach.
    #[error(
        "the {transport} connection to rank {} does not reach memory that is not mapped here: register it for {transport}",
        peer.0
    )]
    NotMapped {
        /// The rank at the other end.
        peer: Rank,
        /// What carries the connection.
        transport: &'static str,
    },

    /// The transport does not reach the peer from here.
    #[error("{transport} does not connect this rank to rank {}: {reason}", peer.0)]
    Unreachable {
        /// The rank at the other end.
        peer: Rank,
        /// What was to carry the connection.
        transport: &'static str,
        /// Why not, and what to do.
        reason: String,
    },

    /// The two ends were asked for different connections.
    #[error(
        "the connection to rank {} was asked for with {what} {ours} here and {theirs} there: give both ends the same",
        peer.0
    )]
    Mismatch {
        /// The rank at the other end.
        peer: Rank,
        /// What differs.
        what: String,
        /// This end's value.
        ours: String,
        /// The other's.
        theirs: String,
    },
}

impl ConnectionError {
    /// See [`Error::kind`](super::Error::kind).
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Failed { .. } => ErrorKind::PeerLost,
            Self::Closed { .. } => ErrorKind::Aborted,
            Self::NotMapped { .. } | Self::Mismatch { .. } => ErrorKind::InvalidArgument,
            Self::Unreachable { .. } => ErrorKind::Unsupported,
        }
    }
}
