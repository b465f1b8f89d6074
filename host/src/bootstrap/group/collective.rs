//! Collective calls: messages up and down a tree.
//!
//! Each message says which call it belongs to, so that ranks in different calls find out. A rank whose call fails tells its
//! neighbours in the tree why, and they tell theirs: everybody's call ends, each with the rank that was the reason.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use warpwire_device::abi::Rank;

use super::super::deadline::Deadline;
use super::super::mailbox::{Address, Failure, Loss};
use super::super::transport::Transport;
use super::members::Members;
use super::tree::Node;
use crate::error::Departure;

/// Before each gathered entry: its length.
pub(super) const ENTRY_BYTES: usize = 4;
/// Before each message: what it is (a result or a failure, and of which call), and the call's root.
pub(super) const HEADER_BYTES: usize = 5;

const FAILED: u8 = 0;
const BARRIER: u8 = 1;
const ALL_GATHER: u8 = 2;
const BROADCAST: u8 = 3;
const SPLIT: u8 = 4;

/// How much longer a wait is for each level of the tree below the rank that is waited for, which waits itself: whoever waits
/// for the rank that stands still is then the first to give up, and tells the others whom for.
const LEVEL: Duration = Duration::from_millis(500);
/// For telling a neighbour of a failure: the call is over, and so is the neighbour, perhaps.
const FAREWELL: Duration = Duration::from_millis(200);

/// A collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Barrier,
    AllGather,
    Broadcast { root: Rank },
    Split,
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::AllGather => "all_gather",
            Self::Broadcast { .. } => "broadcast",
            Self::Split => "split",
        }
    }

    fn root(self) -> Rank {
        match self {
            Self::Broadcast { root } => root,
            _ => Rank(0),
        }
    }

    fn header(self) -> [u8; HEADER_BYTES] {
        let code = match self {
            Self::Barrier => BARRIER,
            Self::AllGather => ALL_GATHER,
            Self::Broadcast { .. } => BROADCAST,
            Self::Split => SPLIT,
        };
        let [a, b, c, d] = self.root().0.to_le_bytes();
        [code, a, b, c, d]
    }

    /// What a header says, in words.
    fn describe(header: [u8; HEADER_BYTES]) -> String {
        let [code, root @ ..] = header;
        match code {
            BARRIER => Self::Barrier.name().to_owned(),
            ALL_GATHER => Self::AllGather.name().to_owned(),
            BROADCAST => format!("broadcast from rank {}", u32::from_le_bytes(root)),
            SPLIT => Self::Split.name().to_owned(),
            unknown => format!("a call of number {unknown}"),
        }
    }
}

/// Why a neighbour's call failed, as it travels. New reasons are added at the end.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Reason {
    Lost { rank: u32, departure: Departure, detail: String },
    Timeout { rank: u32 },
    Mismatch { rank: u32, ours: String, theirs: String },
}

/// One rank's part in a collective call among `set`.
pub(super) struct Call<'a> {
    transport: &'a dyn Transport,
    set: &'a Members,
    watched: Arc<[Rank]>,
    address: Address,
    deadline: Deadline,
    operation: Operation,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        transport: &'a dyn Transport,
        set: &'a Members,
        address: Address,
        deadline: Deadline,
        operation: Operation,
    ) -> Self {
        Self { transport, set, watched: Arc::from(set.all()), address, deadline, operation }
    }

    /// Runs the call, and tells the neighbours where it fails.
    pub(super) fn make<T>(&self, body: impl FnOnce(&Self) -> Result<T, Failure>) -> Result<T, Failure> {
        body(self).inspect_err(|failure| self.spread(failure))
    }

    pub(super) fn barrier(&self) -> Result<(), Failure> {
        for child in self.node().children() {
            self.receive(child)?;
        }
        if let Some(parent) = self.node().parent() {
            self.send(parent, &[])?;
        }
        self.hand_down(&[]).map(drop)
    }

    pub(super) fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        self.hand_down(bytes)
    }

    pub(super) fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let mut gathered = Vec::with_capacity(ENTRY_BYTES + bytes.len());
        gathered.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        gathered.extend_from_slice(bytes);
        for child in self.node().children() {
            gathered.extend(self.receive(child)?);
        }
        if let Some(parent) = self.node().parent() {
            self.send(parent, &gathered)?;
        }
        let all = self.hand_down(&gathered)?;
        entries(&all, self.set.len())
            .ok_or_else(|| self.mismatch(Rank(0), "one with another number of ranks"))
    }

    /// The root's bytes, down the tree to everybody.
    fn hand_down(&self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let bytes = match self.node().parent() {
            Some(parent) => self.receive(parent)?,
            None => bytes.to_vec(),
        };
        // The child with the most ranks below it first.
        for child in self.node().children().rev() {
            self.send(child, &bytes)?;
        }
        Ok(bytes)
    }

    fn node(&self) -> Node {
        let (size, root) = (self.set.len(), self.operation.root().0 as usize);
        Node::new((self.set.own().0 as usize + size - root) % size, size)
    }

    /// The rank, in the job, at a place of the tree.
    fn at(&self, place: usize) -> Rank {
        self.set.all()[(place + self.operation.root().0 as usize) % self.set.len()]
    }

    fn send(&self, place: usize, bytes: &[u8]) -> Result<(), Failure> {
        let (to, parts) = (self.at(place), [&self.operation.header()[..], bytes]);
        let sent = self.transport.send(to, self.address, &parts, self.deadline);
        // One that has failed and left has said why before.
        sent.map_err(|failure| self.last_words_of(to).unwrap_or(failure))
    }

    /// The failure that a rank has told of, if it has.
    fn last_words_of(&self, rank: Rank) -> Option<Failure> {
        let slot = self.transport.mailbox().claim(rank, self.address, &self.watched);
        match slot.wait(Instant::now()) {
            Some(Ok(message)) => self.open(rank, message).err(),
            _ => {
                slot.abandon();
                None
            }
        }
    }

    fn receive(&self, place: usize) -> Result<Vec<u8>, Failure> {
        let from = self.at(place);
        let mailbox = self.transport.mailbox();
        let slot = mailbox.claim(from, self.address, &self.watched);
        let levels = if self.node().parent() == Some(place) {
            Node::new(0, self.set.len()).height() + 1
        } else {
            Node::new(place, self.set.len()).height()
        };
        let Some(outcome) = slot.wait(self.deadline.extended(LEVEL * levels).end()) else {
            // Later calls of this set fail before they receive: a message that comes late is for nobody.
            slot.abandon();
            return Err(Failure::Timeout { rank: from });
        };
        self.open(from, outcome.inspect_err(|_| slot.abandon())?)
    }

    /// Takes a message apart.
    fn open(&self, from: Rank, mut message: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let Some(header) = message.first_chunk::<HEADER_BYTES>().copied() else {
            return Err(self.mismatch(from, "a call that sends less than a header"));
        };
        if header[0] == FAILED {
            return Err(match postcard::from_bytes::<Reason>(&message[HEADER_BYTES..]) {
                Ok(reason) => Failure::from(reason),
                Err(_) => self.mismatch(from, "a call that failed without a readable reason"),
            });
        }
        if header != self.operation.header() {
            return Err(self.mismatch(from, &Operation::describe(header)));
        }
        message.drain(..HEADER_BYTES);
        Ok(message)
    }

    fn mismatch(&self, rank: Rank, theirs: &str) -> Failure {
        let ours = Operation::describe(self.operation.header());
        Failure::Mismatch { rank, ours, theirs: theirs.to_owned() }
    }

    fn spread(&self, failure: &Failure) {
        let own = self.set.own_world();
        let reason = match failure {
            Failure::Lost(Loss { rank, departure, detail }) => {
                Reason::Lost { rank: rank.0, departure: *departure, detail: detail.clone() }
            }
            Failure::Timeout { rank } => Reason::Timeout { rank: rank.0 },
            Failure::Mismatch { rank, ours, theirs } => {
                Reason::Mismatch { rank: rank.0, ours: ours.clone(), theirs: theirs.clone() }
            }
            Failure::Aborted => return,
            Failure::Other(error) => {
                Reason::Lost { rank: own.0, departure: Departure::Aborted, detail: error.to_string() }
            }
        };
        // Only a text that is out of all bounds cannot be packed; then the neighbours' deadlines have to do.
        let Ok(packed) = postcard::to_stdvec(&reason) else { return };
        let header = [FAILED, 0, 0, 0, 0];
        let node = self.node();
        for place in node.parent().into_iter().chain(node.children()) {
            // A neighbour that cannot be told has a deadline of its own.
            _ = self.transport.send(
                self.at(place),
                self.address,
                &[&header, &packed],
                Deadline::after(FAREWELL),
            );
        }
    }
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Lost { rank, departure, detail } => {
                Self::Lost(Loss { rank: Rank(rank), departure, detail })
            }
            Reason::Timeout { rank } => Self::Timeout { rank: Rank(rank) },
            Reason::Mismatch { rank, ours, theirs } => Self::Mismatch { rank: Rank(rank), ours, theirs },
        }
    }
}

/// What was gathered from `count` ranks; nothing if it is not that.
fn entries(mut bytes: &[u8], count: usize) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, rest) = bytes.split_first_chunk::<ENTRY_BYTES>()?;
        let (entry, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        found.push(entry.to_vec());
        bytes = rest;
    }
    bytes.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_and_reasons_are_packed_as_ever() {
        assert_eq!(Operation::Barrier.header(), [1, 0, 0, 0, 0]);
        assert_eq!(Operation::AllGather.header(), [2, 0, 0, 0, 0]);
        assert_eq!(Operation::Broadcast { root: Rank(0x0102) }.header(), [3, 2, 1, 0, 0]);
        assert_eq!(Operation::Split.header(), [4, 0, 0, 0, 0]);
        let lost = Reason::Lost { rank: 3, departure: Departure::Lost, detail: "x".to_owned() };
        assert_eq!(postcard::to_stdvec(&lost).unwrap(), [0, 3, 2, 1, b'x']);
        assert_eq!(postcard::to_stdvec(&Reason::Timeout { rank: 3 }).unwrap(), [1, 3]);
    }

    #[test]
    fn entries_may_have_different_lengths() {
        let bytes = [1, 0, 0, 0, 7, 0, 0, 0, 0, 2, 0, 0, 0, 8, 9];
        assert_eq!(entries(&bytes, 3), Some(vec![vec![7], vec![], vec![8, 9]]));
        assert_eq!(entries(&bytes, 2), None, "something is left");
        assert_eq!(entries(&bytes, 4), None, "something is missing");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64), count in 0usize..8) {
            if let Some(found) = entries(&bytes, count) {
                let total: usize = found.iter().map(|entry| entry.len() + ENTRY_BYTES).sum();
                prop_assert_eq!(total, bytes.len());
            }
        }
    }
}
