//! When a call has to have ended.

use std::time::{Duration, Instant};

/// The longest time that is told apart from for ever: a caller's `Duration::MAX` must not overflow the clock.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The moment by which a call ends, and how long the caller gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    end: Instant,
    given: Duration,
}

impl Deadline {
    pub(crate) fn after(given: Duration) -> Self {
        Self { end: Instant::now() + given.min(LONGEST), given }
    }

    /// The same start with `more` time.
    pub(crate) fn extended(self, more: Duration) -> Self {
        Self { end: self.end + more, ..self }
    }

    pub(crate) fn end(&self) -> Instant {
        self.end
    }

    pub(crate) fn given(&self) -> Duration {
        self.given
    }

    /// What is left; nothing once the time has passed.
    pub(crate) fn left(&self) -> Option<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}
