//! A queue of work, and the OS thread that does it.

use std::any::Any;
use std::collections::VecDeque;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::super::LaunchConfig;
use super::super::driver::{DriverEvent, DriverFunction, DriverGraph, DriverStream};
use super::CpuFunction;
use super::capacity::Capacity;
use super::event::{CpuEvent, Mark};
use super::grid::Launch;
use crate::error::{Error, Result};

/// Bytes of the thread's stack: it runs one of a launch's blocks itself.
const STACK_BYTES: usize = 512 << 10;

/// A stream: its queue, and the thread that works it off.
///
/// Where a launch fails, what is queued behind it is not run until the failure has been taken by `synchronize`, except for
/// events: somebody may be waiting for them.
#[derive(Debug)]
pub(super) struct CpuStream {
    queue: Arc<Queue>,
    worker: Option<JoinHandle<()>>,
}

#[derive(Clone, Debug)]
enum Work {
    Launch(Arc<Launch>),
    Copy { destination: u64, source: u64, bytes: usize },
    Event(Arc<Mark>),
    Graph(Arc<[Work]>),
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Work>,
    /// Pieces of work queued, and ended, since the stream began.
    queued: u64,
    ended: u64,
    failure: Option<Error>,
    recording: Option<Vec<Work>>,
    closed: bool,
}

impl CpuStream {
    pub(super) fn new(capacity: &'static Capacity) -> Result<Self> {
        let queue = Arc::new(Queue::default());
        let of_worker = Arc::clone(&queue);
        let worker = thread::Builder::new()
            .name("warpwire-stream".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || of_worker.work_off(capacity))
            .map_err(|source| Error::System { operation: "starting a stream's thread".to_owned(), source })?;
        Ok(Self { queue, worker: Some(worker) })
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What is done under the lock is pushes and counts: a panic elsewhere leaves them whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, work: Work) {
        let mut state = self.lock();
        if let Some(recording) = &mut state.recording {
            recording.push(work);
            return;
        }
        state.waiting.push_back(work);
        state.queued += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// What the stream's thread does.
    fn work_off(&self, capacity: &'static Capacity) {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                let skip = state.failure.is_some();
                drop(state);
                let result = work.run(skip, capacity);
                // Before its end is told: who waits for that may free what it used.
                drop(work);
                state = self.lock();
                state.ended += 1;
                if let Err(error) = result {
                    state.failure.get_or_insert(error);
                }
                self.changed.notify_all();
            } else if state.closed {
                return;
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Work {
    fn run(&self, skip: bool, capacity: &'static Capacity) -> Result<()> {
        match self {
            Self::Event(mark) => mark.pass(),
            _ if skip => {}
            Self::Launch(launch) => launch.run(capacity)?,
            Self::Copy { destination, source, bytes } => {
                // SAFETY: the contract of `DriverStream::copy`, which made this work.
                unsafe { ptr::copy_nonoverlapping(*source as *const u8, *destination as *mut u8, *bytes) };
            }
            Self::Graph(recorded) => recorded.iter().try_for_each(|work| work.run(false, capacity))?,
        }
        Ok(())
    }
}

impl DriverStream for CpuStream {
    unsafe fn launch(&self, function: &dyn DriverFunction, config: LaunchConfig, args: &[u8]) -> Result<()> {
        let function: &CpuFunction =
            function.as_any().downcast_ref().ok_or(Error::ForeignObject { what: "function" })?;
        // SAFETY: the caller's contract.
        let launch = unsafe { Launch::new(function.entry, config, args) };
        self.queue.push(Work::Launch(Arc::new(launch)));
        Ok(())
    }

    unsafe fn copy(&self, destination: u64, source: u64, bytes: usize) -> Result<()> {
        self.queue.push(Work::Copy { destination, source, bytes });
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        let mut state = self.queue.lock();
        let target = state.queued;
        while state.ended < target {
            state = self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.failure.take().map_or(Ok(()), Err)
    }

    fn is_idle(&self) -> Result<bool> {
        let state = self.queue.lock();
        Ok(state.ended == state.queued)
    }

    fn record(&self) -> Result<Box<dyn DriverEvent>> {
        let mark = Arc::new(Mark::default());
        self.queue.push(Work::Event(Arc::clone(&mark)));
        Ok(Box::new(CpuEvent(mark)))
    }

    fn begin_capture(&self) -> Result<()> {
        let mut state = self.queue.lock();
        if state.recording.is_some() {
            return Err(Error::CaptureActive { operation: "begin a capture" });
        }
        state.recording = Some(Vec::new());
        Ok(())
    }

    fn end_capture(&self) -> Result<Arc<dyn DriverGraph>> {
        let recorded = self.queue.lock().recording.take().ok_or(Error::NotCapturing)?;
        Ok(Arc::new(CpuGraph(recorded.into())))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CpuStream {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
        if let Some(worker) = self.worker.take() {
            // It catches what kernels panic with, so an error here is a fault of its own, and printed by its panic.
            let _ = worker.join();
        }
    }
}

/// Recorded work.
#[derive(Debug)]
struct CpuGraph(Arc<[Work]>);

impl DriverGraph for CpuGraph {
    unsafe fn launch(&self, stream: &dyn DriverStream) -> Result<()> {
        let stream: &CpuStream =
            stream.as_any().downcast_ref().ok_or(Error::ForeignObject { what: "graph" })?;
        stream.queue.push(Work::Graph(Arc::clone(&self.0)));
        Ok(())
    }
}
