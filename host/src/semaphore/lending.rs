//! Slots that peers signal, and when they may be used again.
//!
//! A rank that drops its end of a semaphore does not know whether its peer's kernels still signal the slot. So the slot is
//! lent: it goes back to the pool once this end is dropped *and* the peer has said that its end is, or has left the job. Of a
//! peer that aborted or died nothing is known, and the slot is given up. Each end says that it is dropped by a message of the
//! bootstrap's, which this module looks for whenever a slot is lent or comes back; no thread serves it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use warpwire_device::abi::Rank;

use super::side::SemaphoreSide;
use crate::bootstrap::{Bootstrap, Tag};
use crate::error::{BootstrapError, Departure, Error, Result};
use crate::memory::{RegisteredMemory, TokenPool, Transports};

/// The messages' tag: the group is for them alone.
const LET_GO: Tag = Tag(0);
/// How long a drop tries to tell its peer. A message as short as these goes off at once, but to a peer that is stuck.
const PATIENCE: Duration = Duration::from_secs(2);

/// The slots that a rank has lent to its peers.
pub(crate) struct Lending {
    /// A group of the messages' own.
    bootstrap: Arc<dyn Bootstrap>,
    pool: TokenPool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    lent: HashMap<(Rank, u64), Lent>,
}

/// One slot, as long as either end has it.
#[derive(Debug)]
enum Lent {
    /// By both ends, as far as is known.
    Both,
    /// By this end alone.
    Here,
    /// By the peer alone.
    There(Arc<Slot>),
}

/// A side, and what the peer maps it by.
#[derive(Debug)]
struct Slot {
    side: SemaphoreSide,
    registered: RegisteredMemory,
}

/// A slot lent to one peer, until this is dropped.
pub(crate) struct Loan {
    lending: Arc<Lending>,
    peer: Rank,
    id: u64,
    /// The peer's number for its own slot, which this end signals.
    theirs: Option<u64>,
    slot: Arc<Slot>,
}

impl Lending {
    /// Of slots of `pool`; `bootstrap` is used by nobody else.
    pub(crate) fn new(bootstrap: Arc<dyn Bootstrap>, pool: TokenPool) -> Arc<Self> {
        Arc::new(Self { bootstrap, pool, state: Mutex::default() })
    }

    /// Lends a side to `peer`, to be reached by `transports`.
    pub(crate) fn lend(self: &Arc<Self>, peer: Rank, transports: Transports) -> Result<Loan> {
        self.sweep(peer);
        let side = SemaphoreSide::in_pool(&self.pool)?;
        let registered = side.register_token(transports)?;
        let id = {
            let mut state = self.lock();
            state.last += 1;
            let id = state.last;
            state.lent.insert((peer, id), Lent::Both);
            id
        };
        let slot = Arc::new(Slot { side, registered });
        Ok(Loan { lending: Arc::clone(self), peer, id, theirs: None, slot })
    }

    /// Slots that some end still has.
    pub(crate) fn lent(&self) -> usize {
        let peers: Vec<Rank> = self.lock().lent.keys().map(|(peer, _)| *peer).collect();
        peers.into_iter().for_each(|peer| self.sweep(peer));
        self.lock().lent.len()
    }

    /// This end is done with it.
    fn take_back(&self, peer: Rank, id: u64, slot: &Arc<Slot>) {
        self.sweep(peer);
        let mut state = self.lock();
        match state.lent.remove(&(peer, id)) {
            // The peer let go before: nobody has it any more.
            Some(Lent::Here) | None => {}
            Some(_) => _ = state.lent.insert((peer, id), Lent::There(Arc::clone(slot))),
        }
    }

    /// Reads what `peer` has let go of.
    fn sweep(&self, peer: Rank) {
        loop {
            match self.bootstrap.recv_within(peer, LET_GO, Duration::ZERO) {
                Ok(message) => match <[u8; 8]>::try_from(message.as_slice()) {
                    Ok(id) => self.returned(peer, u64::from_le_bytes(id)),
                    Err(_) => tracing::warn!(peer = peer.0, "a message of another form was passed over"),
                },
                Err(Error::Bootstrap(BootstrapError::PeerLost { departure, .. })) => {
                    return self.departed(peer, departure);
                }
                // None has come.
                Err(_) => return,
            }
        }
    }

    fn returned(&self, peer: Rank, id: u64) {
        let mut state = self.lock();
        match state.lent.remove(&(peer, id)) {
            Some(Lent::Both) => _ = state.lent.insert((peer, id), Lent::Here),
            Some(Lent::There(slot)) => {
                drop(state);
                drop(slot);
            }
            Some(Lent::Here) | None => {
                tracing::warn!(peer = peer.0, id, "a slot was let go of that the peer did not have");
            }
        }
    }

    /// A peer that has left has dropped all its ends. One that aborted may still have kernels that run, and of one that died
    /// the device may not know it yet: their slots are given up.
    fn departed(&self, peer: Rank, departure: Departure) {
        let mut state = self.lock();
        let slots: Vec<(Rank, u64)> = state.lent.keys().filter(|(rank, _)| *rank == peer).copied().collect();
        let mut ended = Vec::new();
        for key in slots {
            match state.lent.remove(&key) {
                Some(Lent::There(slot)) => ended.push(slot),
                Some(_) if departure == Departure::Left => _ = state.lent.insert(key, Lent::Here),
                Some(other) => _ = state.lent.insert(key, other),
                None => {}
            }
        }
        drop(state);
        match departure {
            Departure::Left => drop(ended),
            _ => ended.iter().for_each(|slot| slot.side.retire()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is of one entry: a panic elsewhere leaves the table whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lending {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Their peers still have them, and nobody will learn when they let go.
        for lent in state.lent.drain() {
            if let (_, Lent::There(slot)) = lent {
                slot.side.retire();
            }
        }
    }
}

impl Loan {
    /// The number by which the peer lets go of it.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The rank that it is lent to.
    pub(crate) fn peer(&self) -> Rank {
        self.peer
    }

    /// The token, for the peer.
    pub(crate) fn registered(&self) -> &RegisteredMemory {
        &self.slot.registered
    }

    /// The side.
    pub(super) fn side(&self) -> &SemaphoreSide {
        &self.slot.side
    }

    /// Notes the number of the slot that the peer has lent in turn.
    pub(crate) fn paired_with(&mut self, theirs: u64) {
        self.theirs = Some(theirs);
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(theirs) = self.theirs {
            let told = self.lending.bootstrap.send_within(self.peer, LET_GO, &theirs.to_le_bytes(), PATIENCE);
            if let Err(error) = told {
                // It is gone, or will find out when this rank is.
                tracing::debug!(peer = self.peer.0, %error, "a peer could not be told of a dropped semaphore");
            }
        }
        self.lending.take_back(self.peer, self.id, &self.slot);
    }
}

impl fmt::Debug for Lending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lending").field("lent", &self.lock().lent.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").field("peer", &self.peer).field("id", &self.id).finish_non_exhaustive()
    }
}
