//! OS threads for blocks, kept for the next launch.

use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::grid::Job;
use crate::error::{Error, Result};

/// Bytes of an OS thread's stack: a block of one thread runs on it.
const STACK_BYTES: usize = 512 << 10;

/// The threads that have no block. As many exist as blocks ran at once at most, which `capacity` limits.
static IDLE: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

/// An OS thread that waits for a block.
#[derive(Debug)]
pub(super) struct Worker {
    jobs: Sender<Job>,
}

impl Worker {
    /// `count` of them.
    pub(super) fn take(count: usize) -> Result<Vec<Self>> {
        let mut workers = {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = idle.len().saturating_sub(count);
            idle.split_off(kept)
        };
        while workers.len() < count {
            match Self::spawn() {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    IDLE.lock().unwrap_or_else(PoisonError::into_inner).append(&mut workers);
                    return Err(error);
                }
            }
        }
        Ok(workers)
    }

    fn spawn() -> Result<Self> {
        let (jobs, received) = mpsc::channel::<Job>();
        let own = jobs.clone();
        let work = move || {
            while let Ok(job) = received.recv() {
                let ended = job.run();
                // Idle before the launch hears of it, so that the next launch finds this thread and starts no other.
                IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(Self { jobs: own.clone() });
                drop(ended);
            }
        };
        let thread =
            thread::Builder::new().name("warpwire-block".to_owned()).stack_size(STACK_BYTES).spawn(work);
        match thread {
            // Not joined: it lives as long as the process.
            Ok(_) => Ok(Self { jobs }),
            Err(source) => {
                Err(Error::System { operation: "starting a thread for a block".to_owned(), source })
            }
        }
    }

    /// Runs `job`.
    pub(super) fn run(self, job: Job) {
        let sent = self.jobs.send(job);
        // The thread holds a sender to itself and does not end.
        debug_assert!(sent.is_ok(), "a block's thread has ended");
    }
}
