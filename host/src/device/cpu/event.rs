//! Marks of the time.

use std::any::Any;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::super::driver::DriverEvent;
use crate::error::{Error, Result};

/// When a stream passed it, once it has.
#[derive(Debug, Default)]
pub(super) struct Mark {
    time: Mutex<Option<Instant>>,
    passed: Condvar,
}

impl Mark {
    /// The stream is there.
    pub(super) fn pass(&self) {
        *self.time.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.passed.notify_all();
    }

    fn wait(&self) -> Instant {
        let mut time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(time) = *time {
                return time;
            }
            time = self.passed.wait(time).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A mark that a stream was asked for.
#[derive(Debug)]
pub(super) struct CpuEvent(pub(super) Arc<Mark>);

impl DriverEvent for CpuEvent {
    fn synchronize(&self) -> Result<()> {
        self.0.wait();
        Ok(())
    }

    fn elapsed_since(&self, earlier: &dyn DriverEvent) -> Result<Duration> {
        let earlier: &Self = earlier.as_any().downcast_ref().ok_or(Error::ForeignObject { what: "event" })?;
        Ok(self.0.wait().saturating_duration_since(earlier.0.wait()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
