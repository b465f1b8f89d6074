//! Runs the blocks of one launch.

use std::sync::Arc;

use warpwire_device::kernel::KernelEntry;

use super::super::LaunchConfig;
use super::aligned::Aligned;
use super::block::Block;
use super::capacity::{Capacity, Permit};
use super::pool::Worker;
use crate::error::{Error, Result};
use crate::monitor::Monitor;

/// A launch, as it was asked for.
#[derive(Debug)]
pub(super) struct Launch {
    entry: KernelEntry,
    config: LaunchConfig,
    args: Aligned,
}

impl Launch {
    /// # Safety
    ///
    /// `args` is a value of the kernel's argument type, and the kernel's own contract holds whenever the launch is run.
    pub(super) unsafe fn new(entry: KernelEntry, config: LaunchConfig, args: &[u8]) -> Self {
        Self { entry, config, args: Aligned::copy_of(args) }
    }

    /// Runs all of its blocks and returns when they have ended, with the first failure.
    ///
    /// Blocks that have to be resident together begin when there is room for all of them; others as room comes.
    pub(super) fn run(self: &Arc<Self>, capacity: &'static Capacity) -> Result<()> {
        let LaunchConfig { blocks, threads, concurrent, .. } = self.config;
        let grid = Arc::new(Grid { launch: Arc::clone(self), state: Monitor::default() });
        let mut begun = 0;
        while begun < blocks && grid.state.with(|state| state.failure.is_none()) {
            let left = blocks - begun;
            let permits = capacity.take(if concurrent == 0 { 1 } else { left }, left, threads);
            let count = permits.len() as u32;
            if let Err(error) = grid.begin(begun, permits) {
                grid.state.with(|state| state.fail(error));
            }
            begun += count;
        }
        grid.wait()
    }
}

/// A launch that is running.
#[derive(Debug)]
struct Grid {
    launch: Arc<Launch>,
    state: Monitor<State>,
}

#[derive(Debug, Default)]
struct State {
    running: u32,
    failure: Option<Error>,
}

impl State {
    /// The first failure is the launch's.
    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }
}

impl Grid {
    /// Begins a block for each permit, from number `first` on; the last runs on the calling thread.
    fn begin(self: &Arc<Self>, first: u32, permits: Vec<Permit>) -> Result<()> {
        let others = Worker::take(permits.len().saturating_sub(1))?;
        self.state.with(|state| state.running += permits.len() as u32);
        let mut others = others.into_iter();
        for (index, permit) in (first..).zip(permits) {
            let job = Job { grid: Arc::clone(self), index, _permit: permit };
            match others.next() {
                Some(worker) => worker.run(job),
                None => drop(job.run()),
            }
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        self.state.wait(|state| (state.running == 0).then(|| state.failure.take().map_or(Ok(()), Err)))
    }
}

/// One block of a running launch.
#[derive(Debug)]
pub(super) struct Job {
    grid: Arc<Grid>,
    index: u32,
    _permit: Permit,
}

impl Job {
    /// Runs the block. The launch hears of its end when the result is dropped.
    pub(super) fn run(self) -> Ended {
        let Launch { entry, config, args } = &*self.grid.launch;
        let block = Block {
            entry,
            args,
            index: self.index,
            grid_size: config.blocks,
            threads: config.threads,
            shared_bytes: config.shared_bytes,
        };
        // SAFETY: `Launch::new`'s contract.
        let failure = unsafe { block.run() }.err();
        Ended { failure, job: self }
    }
}

/// A block that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    failure: Option<Error>,
    job: Job,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let failure = self.failure.take();
        self.job.grid.state.change(|state| {
            state.running -= 1;
            if let Some(failure) = failure {
                state.fail(failure);
            }
        });
    }
}
