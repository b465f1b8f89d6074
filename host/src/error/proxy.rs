//! What can go wrong with a FIFO and with the proxy that serves it.

use std::sync::Arc;
use std::time::Duration;

use warpwire_device::abi::{Position, Rank};

use super::{Error, ErrorKind};

/// A failed operation of a FIFO or of a proxy. A cheap clone: a proxy's failure is given to whoever asks.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// A ring that cannot have so many slots.
    #[error("a FIFO of {asked} slots was asked for: it has to be a power of two from 1 to {most}")]
    Capacity {
        /// How many were asked for.
        asked: usize,
        /// The most there can be.
        most: usize,
    },

    /// The FIFO has a consumer already.
    #[error("cannot {operation}: the FIFO has a consumer; stop its proxy first")]
    Consumed {
        /// What was tried.
        operation: &'static str,
    },

    /// A table of the proxy's is full.
    #[error("the proxy of rank {} holds {limit} {what} and has no room for another", rank.0)]
    TableFull {
        /// Whose proxy.
        rank: Rank,
        /// What the table has.
        what: &'static str,
        /// How many it can have.
        limit: u32,
    },

    /// More connections than can run beside a kernel: a copy could stand behind the kernel that waits for it.
    #[error(
        "the proxy of rank {} would drive {asked} connections by copies beside a kernel, and streams for {limit} are sure to \
         run beside each other: set CUDA_DEVICE_MAX_CONNECTIONS to 32 before the first CUDA call", rank.0
    )]
    TooManyConnections {
        /// Whose proxy.
        rank: Rank,
        /// The connections that there would be.
        asked: usize,
        /// How many can be driven.
        limit: usize,
    },

    /// An id that the proxy has not given out.
    #[error("the proxy of rank {} has no {what} {id}: it has given out {given}", rank.0)]
    UnknownId {
        /// Whose proxy.
        rank: Rank,
        /// What the id is of.
        what: &'static str,
        /// The id.
        id: u32,
        /// How many ids it has given out, from 0.
        given: u32,
    },

    /// A trigger that no port channel pushes.
    #[error("the proxy of rank {} was pushed a trigger that is no request: {words:#x?}", rank.0)]
    NoRequest {
        /// Whose proxy.
        rank: Rank,
        /// The trigger.
        words: [u64; 2],
    },

    /// The proxy runs already.
    #[error("the proxy runs already")]
    Running,

    /// The proxy's thread could not be set up.
    #[error("the proxy's thread could not be set up: {source}")]
    Setup {
        /// Why not.
        source: Arc<Error>,
    },

    /// The handler could not do what a trigger asked for, or move its work on.
    #[error("the proxy has stopped at position {}: {source}", position.0)]
    Handler {
        /// The trigger's position, or that of the next one where no trigger was being handled.
        position: Position,
        /// What the handler says.
        source: Arc<Error>,
    },

    /// The handler panicked.
    #[error("the proxy has stopped at position {}: its handler panicked: {message}", position.0)]
    HandlerPanicked {
        /// The trigger's position, or that of the next one where no trigger was being handled.
        position: Position,
        /// What it said.
        message: String,
    },

    /// The proxy was stopped with work left.
    #[error(
        "the proxy was stopped after {drain:?} with work left: {pending} flushes were not complete, {busy} streams had work \
         in flight (their waits were aborted){}", if *triggers { ", and the FIFO was not empty" } else { "" }
    )]
    Unfinished {
        /// How long it went on after it was told to stop.
        drain: Duration,
        /// What the handler had under way.
        pending: usize,
        /// Watched streams with work in flight.
        busy: usize,
        /// Whether there were triggers that had not been taken.
        triggers: bool,
    },
}

impl ProxyError {
    /// See [`Error::kind`](super::Error::kind).
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Capacity { .. } | Self::NoRequest { .. } => ErrorKind::InvalidArgument,
            Self::TableFull { .. } | Self::TooManyConnections { .. } => ErrorKind::Limit,
            Self::UnknownId { .. } => ErrorKind::NotFound,
            Self::Running | Self::Consumed { .. } => ErrorKind::State,
            Self::Setup { source } | Self::Handler { source, .. } => source.kind(),
            Self::HandlerPanicked { .. } | Self::Unfinished { .. } => ErrorKind::Aborted,
        }
    }
}
