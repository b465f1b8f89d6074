//! One queue pair with what stands around it: what the link and the thread that stores signals share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use warpwire_device::abi::Rank;

use super::config::SignalMode;
use super::counts::Counts;
use super::description::Description;
use super::flight::Flight;
use super::scratch::{self, MESSAGE_BYTES, Scratch};
use crate::connection::link::Transport;
use crate::error::{ConnectionError, Error, Result};
use crate::verbs::{Adapter, CompletionQueue, Depths, Outcome, QueuePair, Region, Work};

/// The longest wait for room in which nothing completes, and no receive is posted again. Requests complete or fail much
/// sooner, so what is waited for is a peer's thread that takes no signals.
const ROOM: Duration = Duration::from_secs(5);

/// No piece of a write is longer, so that it is seen how a long one comes on over a slow link.
const PIECE: u32 = 16 << 20;

/// Room that a call needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// In the send queue.
    pub(super) requests: usize,
    /// Receives of the peer's.
    pub(super) receives: u64,
}

/// Vain looks for completions before the adapter is asked whether it has said anything by itself, since that is a system call.
const LOOKS_PER_CHECK: u32 = 1024;

/// How long a request that has failed may take to say so.
const SWEPT: Duration = Duration::from_millis(500);

/// A queue pair that is connected to `peer`'s.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) peer: Rank,
    pub(super) mode: SignalMode,
    pub(super) adapter: Adapter,
    pub(super) far: Description,
    /// The longest message, of both ends.
    max_message: u32,
    /// Requests that may be in flight, and receives that are posted.
    depths: Depths,
    // In this order: an adapter lets go of memory before it goes.
    pub(super) queue_pair: QueuePair,
    pub(super) scratch: Scratch,
    state: Mutex<State>,
    /// Why it has failed.
    failure: OnceLock<String>,
    closed: AtomicBool,
}

/// What calls change, one at a time.
#[derive(Debug)]
pub(super) struct State {
    pub(super) flight: Flight,
    pub(super) counts: Counts,
    /// Vain looks for completions since the adapter was last asked.
    looks: u32,
}

impl Line {
    pub(super) fn new(
        (peer, far): (Rank, Description),
        (mode, max_message, depths): (SignalMode, u32, Depths),
        adapter: Adapter,
        (scratch, queue_pair): (Scratch, QueuePair),
    ) -> Self {
        let state = State { flight: Flight::new(depths.send as usize), counts: Counts::default(), looks: 0 };
        Self {
            peer,
            mode,
            adapter,
            max_message: max_message.min(far.max_message),
            depths,
            far,
            queue_pair,
            scratch,
            state: Mutex::new(state),
            failure: OnceLock::new(),
            closed: AtomicBool::new(false),
        }
    }

    /// The longest piece of a write.
    pub(super) fn piece(&self) -> u32 {
        self.max_message.min(PIECE)
    }

    /// The most requests to post at once.
    pub(super) fn batch(&self) -> usize {
        (self.depths.send as usize / 2).max(1)
    }

    /// Posts what `make` makes, once there is that room. `region` stays registered until they have completed.
    ///
    /// # Errors
    ///
    /// [`ConnectionError`]: it was closed or has failed, or there was no room for long.
    pub(super) fn submit(
        &self,
        room: Room,
        region: Option<&Arc<Region>>,
        mut make: impl FnMut(&mut State) -> Vec<Work>,
    ) -> Result<()> {
        let mut last = (Instant::now(), self.progress());
        while !self.try_submit(room, region, &mut make)? {
            let progress = self.progress();
            if progress != last.1 {
                last = (Instant::now(), progress);
            }
            if last.0.elapsed() > ROOM {
                let (peer, transport) = (self.peer, Transport::InfiniBand.name());
                return Err(ConnectionError::Timeout { peer, transport, timeout: ROOM }.into());
            }
            thread::yield_now();
        }
        Ok(())
    }

    /// How far it has come: requests completed, and receives that the peer has posted again.
    fn progress(&self) -> (u64, u64) {
        (self.lock().flight.completed(), self.scratch.credits())
    }

    /// The same where there is room now; whether there was.
    fn try_submit(
        &self,
        room: Room,
        region: Option<&Arc<Region>>,
        make: &mut dyn FnMut(&mut State) -> Vec<Work>,
    ) -> Result<bool> {
        let mut state = self.lock();
        self.advance(&mut state)?;
        let receives = state.flight.receives_with(&[]) + room.receives;
        let posted = self.scratch.credits() + u64::from(self.far.receives);
        if state.flight.room() < room.requests || (room.receives > 0 && receives > posted) {
            return Ok(false);
        }
        let works = make(&mut state);
        self.post(&mut state, &works, region).map(|()| true)
    }

    fn post(&self, state: &mut State, works: &[Work], region: Option<&Arc<Region>>) -> Result<()> {
        let requests = state.flight.number(works, region);
        self.queue_pair.post(&requests).map_err(|error| self.fail(error.to_string()))
    }

    /// Takes what has completed.
    ///
    /// # Errors
    ///
    /// As for [`Line::submit`].
    pub(super) fn advance(&self, state: &mut State) -> Result<()> {
        self.check()?;
        let completions: &CompletionQueue = self.queue_pair.send_completions();
        let mut fault = None;
        let polled = completions.poll(|completion| match completion.outcome {
            Outcome::Failed(status) if fault.is_none() => {
                let what = state.flight.words(completion.id);
                fault = Some(format!("{what} ended with: {}", completions.words(status)));
            }
            Outcome::Failed(_) => {}
            // After a failure nothing more counts as complete.
            _ if fault.is_none() => state.flight.complete(completion.id),
            _ => {}
        });
        match (fault, polled) {
            (Some(fault), _) => Err(self.fail(fault + &self.adapter.ports_down())),
            (None, Err(error)) => Err(self.fail(error.to_string())),
            (None, Ok(0)) if state.looks >= LOOKS_PER_CHECK => {
                state.looks = 0;
                self.check_adapter()
            }
            (None, Ok(0)) => {
                state.looks += 1;
                Ok(())
            }
            (None, Ok(_)) => Ok(()),
        }
    }

    /// Fails where the adapter has said by itself that the queue pair can no longer be used.
    pub(super) fn check_adapter(&self) -> Result<()> {
        self.queue_pair.fault().map_or(Ok(()), |fault| Err(self.fail(fault)))
    }

    /// Tells the peer how many of its signals' receives were posted again so far, if there is room for that now.
    pub(super) fn return_credits(&self, receives: u64) -> Result<bool> {
        let to = scratch::credits_of(self.far.scratch);
        let mut state = self.lock();
        self.advance(&mut state)?;
        if state.flight.room() == 0 {
            return Ok(false);
        }
        self.post(&mut state, &[Work::WriteWord { value: receives, to }], None).map(|()| true)
    }

    /// Receives that wait for the peer's signals.
    pub(super) fn receives(&self) -> u32 {
        self.depths.receive
    }

    /// Posts one of them again.
    pub(super) fn post_receive(&self, index: u64) -> Result<()> {
        let (address, key) = self.scratch.message_place(index);
        self.queue_pair.post_receive(index, address, MESSAGE_BYTES, key)
    }

    /// Fails where it was closed, or has failed.
    pub(super) fn check(&self) -> Result<()> {
        let (peer, transport) = (self.peer, Transport::InfiniBand.name());
        // In this order: what closing ends has not failed.
        if self.is_closed() {
            return Err(ConnectionError::Closed { peer, transport }.into());
        }
        match self.failure.get() {
            Some(reason) => Err(ConnectionError::Failed { peer, transport, reason: reason.clone() }.into()),
            None => Ok(()),
        }
    }

    /// It has failed by what its receives have been swept out for. Most often a request of this end's has failed, and says why
    /// a moment later.
    pub(super) fn fail_swept(&self, reason: &str) -> Error {
        let begun = Instant::now();
        while begun.elapsed() < SWEPT {
            if let Err(error) = self.advance(&mut self.lock()) {
                return error;
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.fail(format!(
            "{reason}: the peer has asked for memory that it may not reach, or an adapter has failed"
        ))
    }

    /// It has failed, and stays failed: the first reason counts. Both directions end.
    pub(super) fn fail(&self, reason: String) -> Error {
        if !self.is_closed() && self.failure.set(reason).is_ok() {
            let reason = self.failure.get().map_or("", String::as_str);
            tracing::warn!(
                peer = self.peer.0,
                adapter = self.adapter.name(),
                reason,
                "an InfiniBand connection has failed"
            );
            self.stop();
        }
        match self.check() {
            Err(error) => error,
            // It has been set above, or by another thread.
            Ok(()) => {
                ConnectionError::Closed { peer: self.peer, transport: Transport::InfiniBand.name() }.into()
            }
        }
    }

    /// Ends it; whether it was open.
    pub(super) fn close(&self) -> bool {
        let open = !self.closed.swap(true, Ordering::AcqRel);
        if open {
            self.stop();
        }
        open
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn stop(&self) {
        if let Err(error) = self.queue_pair.stop() {
            tracing::warn!(%error, "stopping a queue pair failed");
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic between numbering and posting would leave requests that never complete: whoever waits for them has a
        // deadline.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
