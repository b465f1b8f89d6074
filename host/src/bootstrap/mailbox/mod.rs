//! What has arrived at a rank and who waits for it.

mod slot;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Waker;

use warpwire_device::abi::Rank;

use crate::error::{BootstrapError, Departure, Error};
use crate::monitor::Monitor;
use crate::net::Deadline;

pub(super) use slot::{Outcome, Slot};

/// What a message is counted for beside its bytes, so that empty ones have a bound too.
const OVERHEAD_BYTES: usize = 64;

/// Tells apart the messages between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) lane: Lane,
    /// The group.
    pub(super) context: u64,
    pub(super) tag: u64,
}

/// Who sends: the user, or a collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    Direct,
    Collective,
}

/// That a rank is gone; ranks are those of the whole job.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    pub(super) rank: Rank,
    pub(super) departure: Departure,
    pub(super) detail: String,
}

/// Why nothing comes of a call; ranks are those of the whole job.
#[derive(Debug)]
pub(super) enum Failure {
    Lost(Loss),
    Timeout { rank: Rank },
    Mismatch { rank: Rank, ours: String, theirs: String },
    Aborted,
    Other(Error),
}

impl From<BootstrapError> for Failure {
    fn from(error: BootstrapError) -> Self {
        Self::Other(error.into())
    }
}

/// How much may lie unreceived from one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// While nobody waits for anything from that rank.
    pub(super) idle_bytes: usize,
    /// While somebody does: what is waited for may come behind all that nobody asks for.
    pub(super) waiting_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { idle_bytes: 16 << 20, waiting_bytes: 512 << 20 }
    }
}

type OnRoom = Box<dyn Fn(Rank) + Send + Sync>;

/// A rank's arrived messages and claims.
pub(super) struct Mailbox {
    limits: Limits,
    state: Monitor<State>,
    /// Called when a rank whose messages had no room can send again.
    on_room: OnRoom,
}

#[derive(Debug)]
struct State {
    streams: HashMap<(Rank, Address), Stream>,
    peers: Vec<Peer>,
    aborted: bool,
    /// Of the claims served, to be called without the lock: a waker may run what makes the next claim.
    wakers: Vec<Waker>,
}

/// The messages of one (sender, address): of the two queues at least one is empty, and a stream with both empty is removed.
#[derive(Debug, Default)]
struct Stream {
    claims: VecDeque<Arc<Slot>>,
    arrived: VecDeque<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Peer {
    unreceived_bytes: usize,
    claims: usize,
    /// Somebody was told that there is no room.
    full: bool,
    loss: Option<Loss>,
}

impl Peer {
    fn has_room(&self, limits: &Limits) -> bool {
        let limit = if self.claims > 0 { limits.waiting_bytes } else { limits.idle_bytes };
        self.unreceived_bytes < limit
    }
}

impl Mailbox {
    /// Of a rank in a job of `size`.
    pub(super) fn new(size: usize, limits: Limits, on_room: OnRoom) -> Self {
        let peers = (0..size).map(|_| Peer::default()).collect();
        let state = State { streams: HashMap::new(), peers, aborted: false, wakers: Vec::new() };
        Self { limits, state: Monitor::new(state), on_room }
    }

    /// Takes a message. Whether there is room for more of that rank; if not, `on_room` tells when there is.
    pub(super) fn deliver(&self, from: Rank, address: Address, bytes: Vec<u8>) -> bool {
        self.update(|state| {
            state.accept(from, address, bytes);
            let peer = &mut state.peers[from.0 as usize];
            peer.full = !peer.has_room(&self.limits);
            !peer.full
        })
    }

    /// Takes a message as soon as there is room for it. Nothing where the deadline passes first.
    pub(super) fn deliver_within(
        &self,
        from: Rank,
        address: Address,
        bytes: &[u8],
        deadline: Deadline,
    ) -> Option<()> {
        let wakers = self.state.wait_until(|state| {
            // Once this rank is aborted nobody will receive anything, and everything has room.
            if state.aborted || state.peers[from.0 as usize].has_room(&self.limits) {
                state.accept(from, address, bytes.to_vec());
                return ControlFlow::Break(Some(mem::take(&mut state.wakers)));
            }
            match deadline.left() {
                Some(_) => ControlFlow::Continue(deadline.end()),
                None => ControlFlow::Break(None),
            }
        });
        wakers.map(|wakers| wakers.into_iter().for_each(Waker::wake))
    }

    /// A claim on the next message that has none. The loss of any rank in `watched` ends it too.
    pub(super) fn claim(&self, from: Rank, address: Address, watched: &Arc<[Rank]>) -> Arc<Slot> {
        let slot = Arc::new(Slot::new(from, Arc::clone(watched)));
        let room = self.update(|state| {
            state.claim(address, &slot);
            state.take_room(from, &self.limits)
        });
        if room {
            (self.on_room)(from);
        }
        slot
    }

    /// Takes an unserved claim back as if it had never been made. Whether it was unserved.
    pub(super) fn withdraw(&self, address: Address, slot: &Arc<Slot>) -> bool {
        self.state.with(|state| {
            let key = (slot.from(), address);
            let Some(stream) = state.streams.get_mut(&key) else { return false };
            let Some(index) = stream.claims.iter().position(|claim| Arc::ptr_eq(claim, slot)) else {
                return false;
            };
            stream.claims.remove(index);
            state.peers[key.0.0 as usize].claims -= 1;
            state.tidy(&key);
            true
        })
    }

    /// Ends every claim on a rank that is gone, now and later; what it had sent can still be received.
    pub(super) fn depart(&self, loss: &Loss) {
        self.update(|state| {
            let peer = &mut state.peers[loss.rank.0 as usize];
            if peer.loss.is_some() {
                return;
            }
            peer.loss = Some(loss.clone());
            peer.claims = 0;
            let wakers = &mut state.wakers;
            state.streams.retain(|(from, _), stream| {
                if *from == loss.rank {
                    let lost = || Err(Failure::Lost(loss.clone()));
                    wakers.extend(stream.claims.drain(..).filter_map(|slot| slot.complete(lost())));
                } else if loss.departure != Departure::Left {
                    stream.claims.iter().for_each(|slot| slot.lose(loss));
                }
                !stream.is_empty()
            });
        });
    }

    /// Ends every claim, now and later.
    pub(super) fn abort(&self) {
        self.update(|state| {
            state.aborted = true;
            let claims = state.streams.drain().flat_map(|(_, stream)| stream.claims);
            state.wakers.extend(claims.filter_map(|slot| slot.complete(Err(Failure::Aborted))));
            state.peers.iter_mut().for_each(|peer| (peer.claims, peer.unreceived_bytes) = (0, 0));
        });
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.state.with(|state| state.aborted)
    }

    /// Whether and how a rank is gone.
    pub(super) fn loss(&self, rank: Rank) -> Option<Loss> {
        self.state.with(|state| state.peers[rank.0 as usize].loss.clone())
    }

    /// Changes the state, then wakes whom the change served.
    fn update<R>(&self, once: impl FnOnce(&mut State) -> R) -> R {
        let (result, wakers) = self.state.change(|state| (once(state), mem::take(&mut state.wakers)));
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

impl Stream {
    fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.arrived.is_empty()
    }
}

impl State {
    fn accept(&mut self, from: Rank, address: Address, bytes: Vec<u8>) {
        if self.aborted {
            return;
        }
        let peer = &mut self.peers[from.0 as usize];
        let key = (from, address);
        let stream = self.streams.entry(key).or_default();
        match stream.claims.pop_front() {
            Some(slot) => {
                peer.claims = peer.claims.saturating_sub(1);
                self.wakers.extend(slot.complete(Ok(bytes)));
                self.tidy(&key);
            }
            None => {
                peer.unreceived_bytes += bytes.len() + OVERHEAD_BYTES;
                stream.arrived.push_back(bytes);
            }
        }
    }

    fn claim(&mut self, address: Address, slot: &Arc<Slot>) {
        if self.aborted {
            return self.wakers.extend(slot.complete(Err(Failure::Aborted)));
        }
        let key = (slot.from(), address);
        let peer = &mut self.peers[key.0.0 as usize];
        if let Some(stream) = self.streams.get_mut(&key)
            && let Some(bytes) = stream.arrived.pop_front()
        {
            peer.unreceived_bytes -= bytes.len() + OVERHEAD_BYTES;
            self.wakers.extend(slot.complete(Ok(bytes)));
            return self.tidy(&key);
        }
        if let Some(loss) = &peer.loss {
            return self.wakers.extend(slot.complete(Err(Failure::Lost(loss.clone()))));
        }
        peer.claims += 1;
        self.streams.entry(key).or_default().claims.push_back(Arc::clone(slot));
        for loss in self.peers.iter().filter_map(|peer| peer.loss.as_ref()) {
            if loss.departure != Departure::Left {
                slot.lose(loss);
            }
        }
    }

    fn tidy(&mut self, key: &(Rank, Address)) {
        if self.streams.get(key).is_some_and(Stream::is_empty) {
            self.streams.remove(key);
        }
    }

    /// Whether a rank that had no room has some now; true once.
    fn take_room(&mut self, from: Rank, limits: &Limits) -> bool {
        let peer = &mut self.peers[from.0 as usize];
        let room = peer.full && peer.has_room(limits);
        if room {
            peer.full = false;
        }
        room
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.with(|state| {
            f.debug_struct("Mailbox").field("streams", &state.streams.len()).finish_non_exhaustive()
        })
    }
}

#[cfg(test)]
mod tests;
