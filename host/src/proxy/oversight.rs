//! What others see of a proxy's thread, and whose waits hang on it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::device::StreamWatch;
use crate::error::ProxyError;

/// Shared by the proxy and its thread.
#[derive(Debug, Default)]
pub(super) struct Oversight {
    /// Looked at in every turn, so that the lock need not be.
    stopping: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stop: Option<Stop>,
    failure: Option<ProxyError>,
    streams: Vec<StreamWatch>,
}

/// An order to stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// How long the thread may go on.
    pub(super) drain: Duration,
    ordered: Instant,
}

impl Stop {
    /// Whether the thread may not go on any more.
    pub(super) fn is_due(&self) -> bool {
        self.ordered.elapsed() >= self.drain
    }
}

impl Oversight {
    /// Forgets what the last thread has left.
    pub(super) fn begin(&self) {
        let mut state = self.lock();
        (state.stop, state.failure) = (None, None);
        self.stopping.store(false, Ordering::Relaxed);
    }

    /// Tells the thread to stop.
    pub(super) fn order_stop(&self, drain: Duration) {
        self.lock().stop = Some(Stop { drain, ordered: Instant::now() });
        self.stopping.store(true, Ordering::Release);
    }

    /// The order to stop, where there is one.
    pub(super) fn stop(&self) -> Option<Stop> {
        if self.stopping.load(Ordering::Acquire) { self.lock().stop } else { None }
    }

    /// Notes why the thread ends, and ends every wait that hangs on it. After unfinished work alone, those of streams with work
    /// in flight: the others wait for nothing.
    pub(super) fn fail(&self, error: ProxyError) {
        let mut state = self.lock();
        let all = !matches!(error, ProxyError::Unfinished { .. });
        state.streams.iter().filter(|stream| all || stream.is_busy()).for_each(StreamWatch::abort);
        state.failure = Some(error);
    }

    /// Why the thread has ended.
    pub(super) fn health(&self) -> Result<(), ProxyError> {
        self.lock().failure.clone().map_or(Ok(()), Err)
    }

    /// Adds a stream whose waits hang on the thread.
    pub(super) fn watch(&self, stream: StreamWatch) {
        let mut state = self.lock();
        if state.failure.as_ref().is_some_and(|error| !matches!(error, ProxyError::Unfinished { .. })) {
            stream.abort();
        }
        state.streams.retain(|stream| !stream.is_over());
        state.streams.push(stream);
    }

    /// Watched streams with work in flight.
    pub(super) fn busy_streams(&self) -> usize {
        self.lock().streams.iter().filter(|stream| stream.is_busy()).count()
    }

    /// Ends the waits of watched streams with work in flight.
    pub(super) fn abort_busy(&self) {
        self.lock().streams.iter().filter(|stream| stream.is_busy()).for_each(StreamWatch::abort);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment or one push: a panic elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
