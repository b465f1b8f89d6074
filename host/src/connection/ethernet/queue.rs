//! What is to be sent over one connection, what has been and is not acknowledged, and how the connection ends.
//!
//! The user's threads, the thread that sends and the thread that receives meet here alone. No socket and no device is touched
//! under its lock.

use std::collections::VecDeque;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use super::frame::Objection;
use super::request::{End, Refused, Request, Turn};
use crate::memory::Region;
use crate::monitor::Monitor;
use crate::net::Deadline;

/// Requests that have not been acknowledged; a caller that has more waits for room.
const CAPACITY: usize = 1024;

/// The state of one connection.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Monitor<State>,
}

/// Frames are counted from the connection's beginning, those of this end and those of the peer each for themselves. Writes and
/// updates alone count.
#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Request>,
    /// Requests on their way: each with the number of its last frame, and what is kept until that is acknowledged.
    sent: VecDeque<(u64, Option<Arc<Region>>)>,
    queued: u64,
    taken: u64,
    acknowledged: u64,
    /// The peer's: placed here, and told of.
    placed: u64,
    told: u64,
    objection: Option<Objection>,
    /// What the sending thread found when the socket took no more.
    broken: Option<String>,
    /// By the peer, or by a failure.
    end: Option<End>,
    /// By this end: what has been placed is still acknowledged.
    closing: bool,
    /// The other end has proved to be the peer.
    met: bool,
    /// After a close: the time for last words is over.
    silenced: bool,
    /// The threads that serve the connection.
    sending: bool,
    receiving: bool,
}

impl Queue {
    /// Takes a request as soon as there is room.
    pub(super) fn push(&self, request: Request, deadline: Deadline) -> Result<(), Refused> {
        let mut request = Some(request);
        let pushed = self.state.wait_until(|state| {
            if let Some(end) = state.over() {
                return ControlFlow::Break(Err(Refused::Ended(end)));
            }
            if state.waiting.len() + state.sent.len() < CAPACITY {
                if let Some(request) = request.take() {
                    state.queued += request.frames();
                    state.waiting.push_back(request);
                }
                return ControlFlow::Break(Ok(()));
            }
            match deadline.left() {
                Some(_) => ControlFlow::Continue(deadline.end()),
                None => ControlFlow::Break(Err(Refused::Full)),
            }
        });
        if pushed.is_ok() {
            self.state.change(|_| ());
        }
        pushed
    }

    /// How many frames have been asked for.
    pub(super) fn queued(&self) -> Result<u64, End> {
        self.state.with(|state| state.outcome().map(|()| state.queued))
    }

    /// How many of them the peer has placed.
    pub(super) fn acknowledged(&self) -> Result<u64, End> {
        self.state.with(|state| state.outcome().map(|()| state.acknowledged))
    }

    /// For the sending thread: waits for something to do.
    pub(super) fn turn(&self) -> Turn {
        self.state.wait(|state| {
            if let Some(objection) = state.objection.take() {
                return Some(Turn::Object(objection));
            }
            if state.end.is_some() {
                return Some(Turn::End);
            }
            let request = if state.closing { None } else { state.take() };
            if request.is_some() || state.placed > state.told {
                return Some(Turn::Send(request));
            }
            // Not while something may still be placed: the peer is to know of that first.
            (state.closing && !state.receiving).then_some(Turn::Close)
        })
    }

    /// For the sending thread: the next request, if there is one now.
    pub(super) fn try_take(&self) -> Option<Request> {
        self.state.with(|state| if state.over().is_some() { None } else { state.take() })
    }

    /// For the sending thread: how many of the peer's frames have been placed, where it has not been told so.
    pub(super) fn take_acknowledgement(&self) -> Option<u64> {
        self.state.with(|state| {
            let due = state.placed > state.told;
            state.told = state.placed;
            due.then_some(state.placed)
        })
    }

    /// For the receiving thread: one more of the peer's frames has been placed.
    pub(super) fn placed(&self) {
        self.state.change(|state| state.placed += 1);
    }

    /// For the receiving thread: the peer has placed so many frames. Fails where that cannot be.
    pub(super) fn acknowledge(&self, frames: u64) -> Result<(), Objection> {
        let freed = self.state.change(|state| {
            if frames < state.acknowledged || frames > state.taken {
                return Err(Objection::MALFORMED);
            }
            state.acknowledged = frames;
            let complete = state.sent.iter().take_while(|(last, _)| *last <= frames).count();
            Ok(state.sent.drain(..complete).collect::<Vec<_>>())
        });
        // Memory that nobody else keeps is freed here, outside the lock.
        freed.map(drop)
    }

    /// Ends the connection, unless it has ended.
    pub(super) fn end(&self, end: End) {
        self.state.change(|state| {
            state.end.get_or_insert(end);
        });
    }

    /// For the sending thread: the socket takes no more.
    pub(super) fn broke(&self, reason: String) {
        self.state.with(|state| state.broken = Some(reason));
    }

    /// For the receiving thread: what the sending thread has found.
    pub(super) fn broken(&self) -> Option<String> {
        self.state.with(|state| state.broken.clone())
    }

    /// Ends the connection for something that the peer did, which is told why.
    pub(super) fn object(&self, objection: Objection, reason: String) {
        self.state.change(|state| {
            if state.end.is_none() {
                state.end = Some(End::Failed(reason));
                state.objection = Some(objection);
            }
        });
    }

    /// Ends the connection from this side: no more is taken or sent, and what the peer has sent by now is still acknowledged.
    pub(super) fn close(&self) {
        self.state.change(|state| state.closing = true);
    }

    /// After a close: nothing more is to be said.
    pub(super) fn silence(&self) {
        self.state.change(|state| state.silenced = true);
    }

    /// For the receiving thread: whether nothing more is to be said.
    pub(super) fn is_silenced(&self) -> bool {
        self.state.with(|state| state.silenced)
    }

    /// For the receiving thread: the other end has proved to be the peer. Says whether this end goes on all the same.
    pub(super) fn meet(&self) -> bool {
        self.state.with(|state| {
            state.met = true;
            !state.closing
        })
    }

    pub(super) fn has_met(&self) -> bool {
        self.state.with(|state| state.met)
    }

    /// For the receiving thread: whether it is to end.
    pub(super) fn is_closing(&self) -> bool {
        self.state.with(|state| state.closing)
    }

    /// Lets go of the memory of what is not complete. Nobody serves the connection any more.
    pub(super) fn release(&self) {
        let left = self.state.with(|state| (mem::take(&mut state.waiting), mem::take(&mut state.sent)));
        drop(left);
    }

    /// The sending thread's presence.
    pub(super) fn sending(self: &Arc<Self>) -> Serving {
        self.state.with(|state| state.sending = true);
        Serving { queue: Arc::clone(self), of: |state| &mut state.sending }
    }

    /// The receiving thread's presence.
    pub(super) fn receiving(self: &Arc<Self>) -> Serving {
        self.state.with(|state| state.receiving = true);
        Serving { queue: Arc::clone(self), of: |state| &mut state.receiving }
    }

    /// Waits for the threads to end, until then.
    pub(super) fn wait_for_threads(&self, until: Instant) {
        self.state.wait_until(|state| {
            let ended = !state.sending && !state.receiving;
            if ended || until <= Instant::now() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(until)
            }
        });
    }
}

impl State {
    /// Whether what was asked for can still come true: it has, or nothing has ended.
    fn outcome(&self) -> Result<(), End> {
        match self.over() {
            Some(End::Left) if self.acknowledged == self.queued => Ok(()),
            Some(end) => Err(end),
            None => Ok(()),
        }
    }

    fn over(&self) -> Option<End> {
        if self.closing { Some(End::Closed) } else { self.end.clone() }
    }

    fn take(&mut self) -> Option<Request> {
        let request = self.waiting.pop_front()?;
        self.taken += request.frames();
        let kept = match &request {
            Request::Write { source, .. } => Some(Arc::clone(source)),
            Request::Update { .. } => None,
        };
        self.sent.push_back((self.taken, kept));
        Some(request)
    }
}

/// A thread that serves a connection: it is there until this is dropped.
#[derive(Debug)]
pub(super) struct Serving {
    queue: Arc<Queue>,
    of: fn(&mut State) -> &mut bool,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.queue.state.change(|state| {
            *(self.of)(state) = false;
            // The receiving thread, if it still serves, knows how the connection ended, or soon will.
            if !state.closing && !state.receiving {
                // However the threads end, nobody goes on waiting for what they would have done.
                state.end.get_or_insert_with(|| End::Failed("its service thread has ended".to_owned()));
            }
        });
    }
}
