//! The link over a line.

use std::sync::Arc;

use warpwire_device::abi::Rank;

use super::config::SignalMode;
use super::inbox::WordName;
use super::line::{Line, Room, State};
use super::receiver::Receiver;
use super::split::pieces;
use super::token::{self, Told};
use crate::connection::link::{Link, Mark, Place, Transport};
use crate::error::{Result, VerbsError};
use crate::verbs::{Local, Remote, Work};

/// A connection over one queue pair. Marks are numbers of requests.
#[derive(Debug)]
pub(super) struct InfiniBandLink {
    line: Arc<Line>,
    /// Stores the peer's signals, in the mode that needs that.
    receiver: Option<Receiver>,
}

impl InfiniBandLink {
    pub(super) fn new(line: Arc<Line>, receiver: Option<Receiver>) -> Self {
        Self { line, receiver }
    }

    fn remote(&self, place: &Place<'_>) -> Result<Remote> {
        let adapter = self.line.far.adapter;
        let key = place.memory.remote_key(adapter).ok_or_else(|| VerbsError::NotRegistered {
            what: "the peer's memory",
            adapter: format!("{adapter:#018x} of the peer's"),
        })?;
        Ok(Remote { address: place.memory.owner_address() + place.offset, key })
    }
}

impl Link for InfiniBandLink {
    fn transport(&self) -> Transport {
        Transport::InfiniBand
    }

    fn peer(&self) -> Rank {
        self.line.peer
    }

    fn write(&self, destination: Place<'_>, source: Place<'_>, bytes: u64) -> Result<()> {
        let to = self.remote(&destination)?;
        let region = source.memory.regions().of(self.line.adapter.domain()).ok_or_else(|| {
            let adapter = self.line.adapter.name().to_owned();
            VerbsError::NotRegistered { what: "this rank's memory", adapter }
        })?;
        let from = source.memory.owner_address() + source.offset;
        let piece = |(offset, bytes): (u64, u32)| Work::Write {
            from: Local { address: from + offset, bytes, key: region.local_key() },
            to: Remote { address: to.address + offset, key: to.key },
        };
        let mut works = pieces(bytes, self.line.piece()).map(piece).peekable();
        // As many at once as there may be under way.
        while works.peek().is_some() {
            let batch: Vec<Work> = works.by_ref().take(self.line.batch()).collect();
            let room = Room { requests: batch.len(), receives: 0 };
            self.line.submit(room, Some(region), |_| batch.clone())?;
        }
        Ok(())
    }

    fn update(&self, word: Place<'_>, value: u64) -> Result<()> {
        let to = self.remote(&word)?;
        let old = self.line.scratch.old();
        let set = |state: &mut State| {
            let known = state.counts.find(word.memory, word.offset);
            let works = match self.line.mode {
                SignalMode::Host if value > known.value => {
                    vec![Work::FetchAdd { add: value - known.value, to, old }]
                }
                // A word that does not rise has been reset by its owner.
                SignalMode::Host => vec![Work::WriteWord { value, to }],
                SignalMode::HostNoAtomic => match token::tell(known.is_last.then_some(known.value), value) {
                    Told::Low(low) => vec![Work::WriteImmediate { value: low }],
                    Told::Named { before, low } => {
                        let name = WordName { key: to.key, address: to.address };
                        vec![Work::Send { words: name.message(before) }, Work::WriteImmediate { value: low }]
                    }
                },
            };
            state.counts.set(known, value);
            works
        };
        let receives = if self.line.mode == SignalMode::HostNoAtomic { 2 } else { 0 };
        self.line.submit(Room { requests: 2, receives }, None, set)
    }

    fn mark(&self) -> Result<Mark> {
        self.line.check()?;
        Ok(Mark(self.line.lock().flight.last()))
    }

    fn completed(&self) -> Result<Mark> {
        let mut state = self.line.lock();
        self.line.advance(&mut state)?;
        Ok(Mark(state.flight.completed()))
    }

    fn close(&self) {
        self.line.close();
        if let Some(receiver) = &self.receiver {
            receiver.end();
        }
    }
}

impl Drop for InfiniBandLink {
    fn drop(&mut self) {
        self.close();
    }
}
