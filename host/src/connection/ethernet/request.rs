//! What is asked of a connection, and what comes of it.

use std::sync::Arc;

use super::frame::{Objection, PIECE_BYTES, Target};
use crate::memory::Region;

/// Something that was asked for.
#[derive(Debug)]
pub(super) enum Request {
    Write { target: Target, source: Arc<Region>, offset: u64, bytes: u64 },
    Update { target: Target, value: u64 },
}

impl Request {
    /// How many frames it takes.
    pub(super) fn frames(&self) -> u64 {
        match self {
            Self::Write { bytes, .. } => bytes.div_ceil(PIECE_BYTES as u64),
            Self::Update { .. } => 1,
        }
    }
}

/// How a connection ended. The first end counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By this end.
    Closed,
    /// By the peer, which said so: nothing is wrong, as long as nothing was on its way.
    Left,
    Failed(String),
}

/// Why a request was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Ended(End),
    /// There was no room before the deadline. Nothing was queued.
    Full,
}

/// What the sending thread does next.
#[derive(Debug)]
pub(super) enum Turn {
    /// Send what there is: this, if anything, and the acknowledgement that is due, if any.
    Send(Option<Request>),
    /// Tell the peer why the connection ends.
    Object(Objection),
    /// Tell the peer that this end closes, now that everything else has been said.
    Close,
    /// There is nothing to be said any more.
    End,
}
