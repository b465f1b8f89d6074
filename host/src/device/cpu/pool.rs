//! OS threads for blocks, kept for the next launch.

use std::sync::Arc;
use std::thread;

use super::grid::Job;
use crate::error::{Error, Result};
use crate::monitor::Monitor;

/// Bytes of an OS thread's stack: a block of one thread runs on it.
const STACK_BYTES: usize = 512 << 10;

/// The threads that have no block. As many exist as blocks ran at once at most, which `capacity` limits.
static IDLE: Monitor<Vec<Worker>> = Monitor::new(Vec::new());

/// An OS thread that waits for a block. It lives as long as the process.
#[derive(Debug)]
pub(super) struct Worker {
    job: Arc<Monitor<Option<Job>>>,
}

impl Worker {
    /// `count` of them.
    pub(super) fn take(count: usize) -> Result<Vec<Self>> {
        let mut workers = IDLE.with(|idle| idle.split_off(idle.len().saturating_sub(count)));
        while workers.len() < count {
            match Self::spawn() {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    IDLE.with(|idle| idle.append(&mut workers));
                    return Err(error);
                }
            }
        }
        Ok(workers)
    }

    fn spawn() -> Result<Self> {
        let job = Arc::<Monitor<Option<Job>>>::default();
        let own = Arc::clone(&job);
        let work = move || {
            loop {
                let ended = own.wait(Option::take).run();
                // Idle before the launch hears of it, so that the next launch finds this thread and starts no other.
                IDLE.with(|idle| idle.push(Self { job: Arc::clone(&own) }));
                drop(ended);
            }
        };
        let thread =
            thread::Builder::new().name("warpwire-block".to_owned()).stack_size(STACK_BYTES).spawn(work);
        match thread {
            Ok(_) => Ok(Self { job }),
            Err(source) => {
                Err(Error::System { operation: "starting a thread for a block".to_owned(), source })
            }
        }
    }

    /// Runs `job`.
    pub(super) fn run(self, job: Job) {
        self.job.change(|place| *place = Some(job));
    }
}
