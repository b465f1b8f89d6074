//! A value under a lock, and its changes to wait for.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A value that one thread at a time looks at or changes, and that others may wait for changes of.
///
/// A panic under the lock does not close it: every use leaves the value whole at each step.
#[derive(Debug, Default)]
pub(crate) struct Monitor<T> {
    value: Mutex<T>,
    changed: Condvar,
    /// Shows the order of the uses to ThreadSanitizer: the standard library's lock is not compiled with it, and shows none.
    used: AtomicBool,
}

impl<T> Monitor<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Condvar::new(), used: AtomicBool::new(false) }
    }

    /// Uses the value.
    pub(crate) fn with<R>(&self, once: impl FnOnce(&mut T) -> R) -> R {
        self.visit(&mut self.lock(), once)
    }

    /// Uses the value, and has those who wait look again.
    pub(crate) fn change<R>(&self, once: impl FnOnce(&mut T) -> R) -> R {
        let result = self.with(once);
        self.changed.notify_all();
        result
    }

    /// Uses the value each time that it has changed, until something comes of it.
    pub(crate) fn wait<R>(&self, mut until: impl FnMut(&mut T) -> Option<R>) -> R {
        let mut value = self.lock();
        loop {
            if let Some(result) = self.visit(&mut value, &mut until) {
                return result;
            }
            value = self.changed.wait(value).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Uses the value until something comes of it: at once, each time that it has changed, and at the moment that the last
    /// use named.
    pub(crate) fn wait_until<R>(&self, mut until: impl FnMut(&mut T) -> ControlFlow<R, Instant>) -> R {
        let mut value = self.lock();
        loop {
            let again = match self.visit(&mut value, &mut until) {
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

    fn visit<R>(&self, value: &mut T, once: impl FnOnce(&mut T) -> R) -> R {
        self.used.load(Ordering::Acquire);
        let result = once(value);
        self.used.store(true, Ordering::Release);
        result
    }
}
