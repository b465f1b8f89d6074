//! A value under a lock, and its changes to wait for, for a time.

use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A value that one thread at a time looks at or changes, and that others may wait for changes of.
///
/// A panic under the lock does not close it: every use leaves the value whole at each step.
#[derive(Debug, Default)]
pub(super) struct Monitor<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Monitor<T> {
    pub(super) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Condvar::new() }
    }

    /// Uses the value.
    pub(super) fn with<R>(&self, once: impl FnOnce(&mut T) -> R) -> R {
        once(&mut self.lock())
    }

    /// Uses the value, and has those who wait look again.
    pub(super) fn change<R>(&self, once: impl FnOnce(&mut T) -> R) -> R {
        let result = self.with(once);
        self.changed.notify_all();
        result
    }

    /// Uses the value until something comes of it: at once, each time that it has changed, and at the moment that the last
    /// use named.
    pub(super) fn wait<R>(&self, mut until: impl FnMut(&mut T) -> ControlFlow<R, Instant>) -> R {
        let mut value = self.lock();
        loop {
            let again = match until(&mut value) {
                ControlFlow::Break(result) => return result,
                ControlFlow::Continue(again) => again,
            };
            let left = again.saturating_duration_since(Instant::now());
            value = self.changed.wait_timeout(value, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
