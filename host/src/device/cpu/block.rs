//! Runs one block on the calling OS thread.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::ptr::NonNull;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use warpwire_device::arch::{Lane, LaneRuntime, set_lane};
use warpwire_device::kernel::KernelEntry;

use super::aligned::Aligned;
use super::lane::{BlockLane, Meeting, Rest, SoloLane, Turn};
use super::stack;
use crate::error::{Error, Result};

/// What to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub(super) entry: &'a KernelEntry,
    pub(super) args: &'a Aligned,
    pub(super) index: u32,
    pub(super) grid_size: u32,
    pub(super) threads: u32,
    pub(super) shared_bytes: u32,
}

impl Block<'_> {
    /// Runs the block to its end.
    ///
    /// # Safety
    ///
    /// `args` holds a value of the kernel's argument type, and the kernel's own contract holds.
    pub(super) unsafe fn run(&self) -> Result<()> {
        let mut shared = Aligned::zeroed(self.shared_bytes as usize);
        let shared = shared.as_mut_ptr();
        // SAFETY: the caller's contract; `shared` lives until this returns.
        unsafe { if self.threads == 1 { self.run_solo(shared) } else { self.run_lanes(shared) } }
    }

    fn lane(&self, thread_index: u32, shared: NonNull<u8>, runtime: NonNull<dyn LaneRuntime>) -> Lane {
        Lane {
            thread_index,
            block_size: self.threads,
            block_index: self.index,
            grid_size: self.grid_size,
            shared,
            shared_bytes: self.shared_bytes,
            runtime,
        }
    }

    /// # Safety
    ///
    /// As for [`Block::run`]; `shared` has the block's shared memory.
    unsafe fn run_solo(&self, shared: NonNull<u8>) -> Result<()> {
        let runtime = SoloLane::default();
        let lane = self.lane(0, shared, NonNull::from(&runtime as &dyn LaneRuntime));
        let body = || {
            // SAFETY: the caller's contract; the lane is set around this call.
            unsafe { (self.entry.run)(self.args.as_ptr()) }
        };
        // SAFETY: `lane` and its runtime live to the end of this function.
        unsafe { as_lane(&lane, body) }.map_err(|panic| self.panicked(0, &*panic))
    }

    /// # Safety
    ///
    /// As for [`Block::run_solo`].
    unsafe fn run_lanes(&self, shared: NonNull<u8>) -> Result<()> {
        let stacks = stack::take(self.threads as usize)?;
        let meeting = Meeting::of(self.threads);
        // SAFETY: `lanes`, and the coroutines in it, are dropped before `meeting`.
        let runtimes: Vec<BlockLane> =
            (0..self.threads).map(|i| unsafe { BlockLane::new(i, &meeting) }).collect();
        let mut lanes = Lanes::default();
        for (stack, runtime) in stacks.into_iter().zip(&runtimes) {
            let place = lanes.0.len() as u32;
            let lane = self.lane(place, shared, NonNull::from(runtime as &dyn LaneRuntime));
            // SAFETY: the caller's contract; `runtimes` outlives `lanes`.
            lanes.0.push((lane, unsafe { coroutine(stack, runtime, self.entry.run, self.args.as_ptr()) }));
        }
        let rest = Rest::default();
        loop {
            let turns = meeting.ready.borrow().len();
            if turns == 0 {
                let (waiting, exited) = meeting.count();
                return if exited == self.threads { Ok(()) } else { Err(self.diverged(waiting, exited)) };
            }
            let mut in_vain = true;
            for _ in 0..turns {
                let Some(index) = meeting.ready.borrow_mut().pop_front() else { break };
                match lanes.resume(index as usize) {
                    Ok(CoroutineResult::Yield(Turn::Paused)) => meeting.ready.borrow_mut().push_back(index),
                    Ok(CoroutineResult::Yield(Turn::Waiting)) => in_vain = false,
                    Ok(CoroutineResult::Return(())) => {
                        meeting.exit(index);
                        in_vain = false;
                    }
                    Err(panic) => return Err(self.panicked(index, &*panic)),
                }
            }
            // Looked at after the pass, so that the numbers in the error are those of the whole block.
            if meeting.has_diverged() {
                let (waiting, exited) = meeting.count();
                return Err(self.diverged(waiting, exited));
            }
            if in_vain {
                rest.after(turns as u32);
            }
        }
    }

    fn panicked(&self, thread: u32, panic: &(dyn Any + Send)) -> Error {
        let message = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
        Error::KernelPanicked {
            kernel: self.entry.name.to_owned(),
            block: self.index,
            thread,
            message: message.unwrap_or_else(|| "a panic without a text".to_owned()),
        }
    }

    fn diverged(&self, waiting: u32, exited: u32) -> Error {
        Error::BarrierDivergence { kernel: self.entry.name.to_owned(), block: self.index, waiting, exited }
    }
}

type LaneCoroutine = Coroutine<(), Turn, (), DefaultStack>;

/// The coroutine of one lane.
///
/// # Safety
///
/// `runtime` and `args` outlive the coroutine; otherwise as for [`Block::run`].
unsafe fn coroutine(
    stack: DefaultStack,
    runtime: &BlockLane,
    run: unsafe fn(*const u8),
    args: *const u8,
) -> LaneCoroutine {
    let runtime: *const BlockLane = runtime;
    Coroutine::with_stack(stack, move |yielder, ()| {
        // SAFETY: the caller's contract: the runtime outlives the coroutine.
        unsafe { &*runtime }.start(yielder);
        // SAFETY: the caller's contract; the lane is set whenever the coroutine runs.
        unsafe { run(args) };
    })
}

/// The lanes of a block. Dropped while some have not ended, it unwinds them.
#[derive(Default)]
struct Lanes(Vec<(Lane, LaneCoroutine)>);

impl Lanes {
    /// Gives lane `index` a turn; fails with what it panicked with.
    fn resume(&mut self, index: usize) -> Result<CoroutineResult<Turn, ()>, Box<dyn Any + Send>> {
        let (lane, coroutine) = &mut self.0[index];
        // SAFETY: neither the lane, nor the runtime that it points at, moves while the coroutine runs.
        unsafe { as_lane(lane, || coroutine.resume(())) }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        let stacks = self.0.drain(..).map(|(lane, mut coroutine)| {
            if !coroutine.done() {
                // SAFETY: as in `resume`.
                if unsafe { as_lane(&lane, || coroutine.force_unwind()) }.is_err() {
                    tracing::warn!("a GPU thread of a failed block panicked while it was unwound");
                }
            }
            coroutine.into_stack()
        });
        stack::give_back(stacks.collect::<Vec<_>>());
    }
}

/// Runs `body` on the calling OS thread as `lane`; fails with what it panicked with.
///
/// # Safety
///
/// The lane's runtime is live, and neither moves while `body` runs.
unsafe fn as_lane<T>(lane: &Lane, body: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    // SAFETY: the caller's contract; the lane is taken back below, also where `body` panics.
    let before = unsafe { set_lane(Some(NonNull::from(lane))) };
    // What a panic may have left half done is the block's, which ends with it.
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    // SAFETY: what was set before this call is as live as it was.
    unsafe { set_lane(before) };
    result
}
