//! The loop of a proxy's thread.

use std::any::Any;
use std::hint;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use warpwire_device::abi::Position;

use super::Handler;
use super::oversight::Oversight;
use crate::device::{Device, DeviceKind};
use crate::error::{ProxyError, Result};
use crate::fifo::FifoConsumer;

/// Triggers handled in one turn before what was started is looked at again.
const BURST: usize = 16;
/// Triggers handled before the tail is moved, while more are there. Producers that wait for room look at the tail over the
/// bus, and each look takes its line from the processor: to write it once a trigger costs more than the trigger. Few enough
/// that whoever waits for one of them does not wait for long.
const PER_PUBLICATION: usize = 8;

/// What outlives a thread, from one start to the next.
pub(super) struct Core {
    handler: Box<dyn Handler>,
    /// The position of the trigger that the last thread failed at: the next passes over it.
    failed_at: Option<Position>,
}

impl Core {
    pub(super) fn new(handler: Box<dyn Handler>) -> Self {
        Self { handler, failed_at: None }
    }
}

/// One run of the thread.
pub(super) struct Worker<'a> {
    consumer: FifoConsumer,
    core: &'a mut Core,
    oversight: &'a Oversight,
    idleness: Idleness,
    per_publication: usize,
    /// Whether a trigger is in the handler's hands.
    handling: bool,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        device: &Device,
        consumer: FifoConsumer,
        core: &'a mut Core,
        oversight: &'a Oversight,
    ) -> Self {
        let idleness = Idleness::for_kind(device.properties().kind);
        // A short ring is never kept full by what nobody was told of.
        let per_publication = PER_PUBLICATION.min(consumer.capacity() / 4).max(1);
        Self { consumer, core, oversight, idleness, per_publication, handling: false }
    }

    /// Serves the FIFO until it is told to stop.
    pub(super) fn run(mut self) -> Result<(), ProxyError> {
        if self.core.failed_at.take() == Some(self.consumer.position()) && self.consumer.peek().is_some() {
            self.consumer.take();
        }
        loop {
            let turn = panic::catch_unwind(AssertUnwindSafe(|| self.turn()));
            // Also what was done before a failure has been done.
            self.consumer.publish();
            let position = self.consumer.position();
            let failure = match turn {
                Ok(Ok(true)) => continue,
                Ok(Ok(false)) => return Ok(()),
                Ok(Err(error)) => error,
                Err(panic) => Failure::Panicked(message(&*panic)),
            };
            if self.handling {
                self.core.failed_at = Some(position);
            }
            return Err(match failure {
                Failure::Handler(error) => ProxyError::Handler { position, source: Arc::new(error) },
                Failure::Panicked(message) => ProxyError::HandlerPanicked { position, message },
                Failure::Unfinished(error) => error,
            });
        }
    }

    /// Some triggers, and a look at what was started; false where that was the last turn.
    fn turn(&mut self) -> Result<bool, Failure> {
        // Before the ring is looked at: what an idle stream has pushed is in it.
        let stop = self.oversight.stop().map(|stop| (stop, self.oversight.busy_streams()));
        let taken = self.take_some()?;
        let pending = self.core.handler.progress().map_err(Failure::Handler)?;
        if let Some((stop, busy)) = stop {
            if taken == 0 && pending == 0 && busy == 0 {
                return Ok(false);
            }
            if stop.is_due() {
                let triggers = self.consumer.peek().is_some();
                if pending == 0 && busy == 0 && !triggers {
                    return Ok(false);
                }
                let drain = stop.drain;
                return Err(Failure::Unfinished(ProxyError::Unfinished { drain, pending, busy, triggers }));
            }
        }
        self.idleness.step(taken > 0);
        Ok(true)
    }

    fn take_some(&mut self) -> Result<usize, Failure> {
        let mut taken = 0;
        while taken < BURST {
            let Some(trigger) = self.consumer.peek() else { break };
            self.handling = true;
            self.core.handler.handle(self.consumer.position(), trigger).map_err(Failure::Handler)?;
            self.handling = false;
            taken += 1;
            if self.consumer.pass() == self.per_publication {
                self.consumer.publish();
            }
        }
        self.consumer.publish();
        Ok(taken)
    }
}

/// Why a turn was the last.
enum Failure {
    Handler(crate::Error),
    Panicked(String),
    Unfinished(ProxyError),
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// What the thread does between turns that found nothing.
///
/// Beside a GPU it never sleeps: a trigger is answered within a microsecond or so. It gives way to other threads after a
/// while, which costs nothing where no other wants the processor. The kernels of the CPU device run on the same processors,
/// so there it gives way at once, and sleeps in the end.
#[derive(Debug)]
struct Idleness {
    vain: u32,
    spins: u32,
    sleeps_after: u32,
}

/// About 100 us of looks.
const SPINS: u32 = 1 << 13;
/// Some milliseconds of looks, with nothing else to run.
const YIELDS: u32 = 1 << 12;
const NAP: Duration = Duration::from_micros(50);

impl Idleness {
    fn for_kind(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Cuda => Self { vain: 0, spins: SPINS, sleeps_after: u32::MAX },
            DeviceKind::Cpu => Self { vain: 0, spins: 0, sleeps_after: YIELDS },
        }
    }

    fn step(&mut self, found: bool) {
        self.vain = if found { 0 } else { self.vain.saturating_add(1) };
        match self.vain {
            0 => {}
            vain if vain <= self.spins => hint::spin_loop(),
            vain if vain < self.sleeps_after => thread::yield_now(),
            _ => thread::sleep(NAP),
        }
    }
}
