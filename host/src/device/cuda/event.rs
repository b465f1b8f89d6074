//! Marks of the time in a stream.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use cust::sys::{CUevent, CUevent_flags, CUstream};

use super::context::{Context, warn_on_failure};
use super::failure::Failure;
use super::sys::{NOT_READY, call};
use crate::device::driver::DriverEvent;
use crate::error::{Error, Result};

/// An event that has been recorded.
#[derive(Debug)]
pub(super) struct CudaEvent {
    context: Arc<Context>,
    raw: CUevent,
}

// SAFETY: an event handle belongs to no thread, and the driver locks what stands behind it.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// Records an event in a stream of the context.
    pub(super) fn record(context: &Arc<Context>, stream: CUstream) -> Result<Self> {
        let _current = context.enter()?;
        let mut raw = std::ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DEFAULT as u32;
        // SAFETY: `raw` is a live place for the result, and the context is current.
        unsafe { call!(cuEventCreate(&mut raw, flags)) }
            .map_err(|failure| failure.during("create an event"))?;
        // Dropped, and so destroyed, where recording fails.
        let event = Self { context: Arc::clone(context), raw };
        // SAFETY: event and stream are of the context that is current.
        unsafe { call!(cuEventRecord(raw, stream)) }.map_err(|failure| failure.during("record an event"))?;
        Ok(event)
    }
}

impl DriverEvent for CudaEvent {
    fn synchronize(&self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the event is of the context that is current.
        unsafe { call!(cuEventSynchronize(self.raw)) }.map_err(|failure| failure.during("wait for an event"))
    }

    fn has_passed(&self) -> Result<bool> {
        let _current = self.context.enter()?;
        // SAFETY: the event is of the context that is current.
        match unsafe { call!(cuEventQuery(self.raw)) } {
            Ok(()) => Ok(true),
            Err(Failure { code: NOT_READY, .. }) => Ok(false),
            Err(failure) => Err(failure.during("ask whether an event has passed")),
        }
    }

    fn elapsed_since(&self, earlier: &dyn DriverEvent) -> Result<Duration> {
        let earlier = earlier
            .as_any()
            .downcast_ref::<Self>()
            .filter(|event| event.context.is(&self.context))
            .ok_or(Error::ForeignObject { what: "event" })?;
        earlier.synchronize()?;
        self.synchronize()?;
        let _current = self.context.enter()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: `milliseconds` is a live place for the result; both events are of the context that is current.
        unsafe { call!(cuEventElapsedTime(&mut milliseconds, earlier.raw, self.raw)) }
            .map_err(|failure| failure.during("measure the time between events"))?;
        Ok(duration(milliseconds))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: the handle is this event's; the driver frees it once it has passed.
        warn_on_failure("destroy an event", unsafe { call!(cuEventDestroy_v2(self.raw)) });
    }
}

/// The driver's milliseconds. Events of two streams may have passed in the other order: no time, then.
fn duration(milliseconds: f32) -> Duration {
    Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_become_a_duration() {
        assert_eq!(duration(1.5), Duration::from_micros(1500));
        assert_eq!(duration(0.0), Duration::ZERO);
        assert_eq!(duration(-3.0), Duration::ZERO);
        assert_eq!(duration(f32::NAN), Duration::ZERO);
    }
}
