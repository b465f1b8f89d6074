//! Marks of the time.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::driver::DriverEvent;
use super::monitor::Monitor;
use crate::error::{Error, Result};

/// When a stream passed it, once it has.
#[derive(Debug, Default)]
pub(super) struct Mark {
    time: Monitor<Option<Instant>>,
}

impl Mark {
    /// The stream is there.
    pub(super) fn pass(&self) {
        self.time.change(|time| *time = Some(Instant::now()));
    }

    fn has_passed(&self) -> bool {
        self.time.with(|time| time.is_some())
    }

    fn wait(&self) -> Instant {
        self.time.wait(|time| *time)
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

    fn has_passed(&self) -> Result<bool> {
        Ok(self.0.has_passed())
    }

    fn elapsed_since(&self, earlier: &dyn DriverEvent) -> Result<Duration> {
        let earlier: &Self = earlier.as_any().downcast_ref().ok_or(Error::ForeignObject { what: "event" })?;
        Ok(self.0.wait().saturating_duration_since(earlier.0.wait()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
