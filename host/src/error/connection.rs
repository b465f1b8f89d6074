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
}

impl ConnectionError {
    /// See [`Error::kind`](super::Error::kind).
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Failed { .. } => ErrorKind::PeerLost,
        }
    }
}
