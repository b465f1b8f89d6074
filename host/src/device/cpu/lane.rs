//! One GPU thread of a block: how it waits for the others.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hint;
use std::ptr;
use std::thread;
use std::time::Duration;

use corosensei::Yielder;
use warpwire_device::arch::{LaneRuntime, WARP_SIZE};

const WARP_LANES: usize = WARP_SIZE as usize;

/// Why a lane gave up its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It wants to look at a word again.
    Paused,
    /// It waits for other lanes of its block, who will make it ready.
    Waiting,
}

/// What the lanes of a block share. One OS thread runs them all, so plain cells do.
#[derive(Debug)]
pub(super) struct Meeting {
    /// Lanes that can be resumed, in turn.
    pub(super) ready: RefCell<VecDeque<u32>>,
    block: Gathering,
    /// Whether any lane of the barrier that is gathering said so, and of the one that opened last.
    any: Cell<bool>,
    any_of_last: Cell<bool>,
    warps: Vec<Warp>,
    diverged: Cell<bool>,
}

/// Lanes that come together: a block's at a barrier, or a warp's at an exchange.
#[derive(Debug)]
struct Gathering {
    members: u32,
    waiting: RefCell<Vec<u32>>,
    exited: Cell<u32>,
}

impl Gathering {
    fn of(members: u32) -> Self {
        Self { members, waiting: RefCell::default(), exited: Cell::new(0) }
    }

    /// Whether `lane` is the last to come; the others are then ready. Otherwise it is written down as waiting.
    fn is_complete_with(&self, lane: u32, ready: &RefCell<VecDeque<u32>>) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() as u32 + 1 == self.members {
            ready.borrow_mut().extend(waiting.drain(..));
            true
        } else {
            waiting.push(lane);
            false
        }
    }

    /// Whether some of its members wait for one that has ended.
    fn is_broken(&self) -> bool {
        self.exited.get() != 0 && !self.waiting.borrow().is_empty()
    }

    fn note_exit(&self) {
        self.exited.set(self.exited.get() + 1);
    }
}

#[derive(Debug)]
struct Warp {
    gathering: Gathering,
    exchanges: Cell<usize>,
    /// The values of the even exchanges and of the odd ones: a lane may come to the next exchange before another has read
    /// this one's, but not to the one after, which needs every lane to have come to the next.
    values: [RefCell<[u64; WARP_LANES]>; 2],
}

impl Meeting {
    pub(super) fn of(threads: u32) -> Self {
        let warp = |first: u32| Warp {
            gathering: Gathering::of((threads - first).min(WARP_SIZE)),
            exchanges: Cell::new(0),
            values: [const { RefCell::new([0; WARP_LANES]) }; 2],
        };
        Self {
            ready: RefCell::new((0..threads).collect()),
            block: Gathering::of(threads),
            any: Cell::new(false),
            any_of_last: Cell::new(false),
            warps: (0..threads).step_by(WARP_LANES).map(warp).collect(),
            diverged: Cell::new(false),
        }
    }

    /// Whether some lanes wait for one that has ended.
    pub(super) fn has_diverged(&self) -> bool {
        self.diverged.get()
    }

    /// Lanes that wait, and lanes that have ended.
    pub(super) fn count(&self) -> (u32, u32) {
        let in_warps: usize = self.warps.iter().map(|warp| warp.gathering.waiting.borrow().len()).sum();
        ((self.block.waiting.borrow().len() + in_warps) as u32, self.block.exited.get())
    }

    /// Takes note that `lane` has ended.
    pub(super) fn exit(&self, lane: u32) {
        let warp = &self.warp(lane).gathering;
        for gathering in [&self.block, warp] {
            gathering.note_exit();
            self.note_divergence(gathering);
        }
    }

    fn warp(&self, lane: u32) -> &Warp {
        &self.warps[(lane / WARP_SIZE) as usize]
    }

    fn note_divergence(&self, gathering: &Gathering) {
        if gathering.is_broken() {
            self.diverged.set(true);
        }
    }
}

/// A lane that is a coroutine.
#[derive(Debug)]
pub(super) struct BlockLane {
    index: u32,
    meeting: *const Meeting,
    /// Set by the coroutine when it starts.
    yielder: Cell<*const Yielder<(), Turn>>,
}

impl BlockLane {
    /// # Safety
    ///
    /// `meeting` outlives the lane's coroutine.
    pub(super) unsafe fn new(index: u32, meeting: &Meeting) -> Self {
        Self { index, meeting, yielder: Cell::new(ptr::null()) }
    }

    /// Called by the lane's coroutine, before anything else.
    pub(super) fn start(&self, yielder: &Yielder<(), Turn>) {
        self.yielder.set(yielder);
    }

    fn meeting(&self) -> &Meeting {
        // SAFETY: `new`'s contract.
        unsafe { &*self.meeting }
    }

    fn suspend(&self, turn: Turn) {
        // SAFETY: only the lane's own coroutine calls this, after `start`; its yielder lives as long as the coroutine.
        unsafe { &*self.yielder.get() }.suspend(turn);
    }

    /// Waits for the others of `gathering`; `open` is run by the last to come, before any other goes on.
    fn gather(&self, gathering: &Gathering, open: impl FnOnce()) {
        let meeting = self.meeting();
        if gathering.is_complete_with(self.index, &meeting.ready) {
            open();
        } else {
            meeting.note_divergence(gathering);
            self.suspend(Turn::Waiting);
        }
    }
}

impl LaneRuntime for BlockLane {
    fn pause(&self) {
        self.suspend(Turn::Paused);
    }

    fn block_sync(&self, flag: bool) -> bool {
        let meeting = self.meeting();
        meeting.any.set(meeting.any.get() | flag);
        self.gather(&meeting.block, || meeting.any_of_last.set(meeting.any.take()));
        // The next barrier opens only when every lane has come to it, and so has read this.
        meeting.any_of_last.get()
    }

    fn warp_exchange(&self, value: u64, read: &mut dyn FnMut(&[u64])) {
        let warp = self.meeting().warp(self.index);
        let values = &warp.values[warp.exchanges.get() % 2];
        values.borrow_mut()[(self.index % WARP_SIZE) as usize] = value;
        self.gather(&warp.gathering, || warp.exchanges.set(warp.exchanges.get() + 1));
        read(&values.borrow()[..warp.gathering.members as usize]);
    }
}

/// The lane of a block of one thread: it runs on the OS thread's own stack, where sanitizers can follow it.
#[derive(Debug, Default)]
pub(super) struct SoloLane {
    rest: Rest,
}

impl LaneRuntime for SoloLane {
    fn pause(&self) {
        self.rest.after(1);
    }

    fn block_sync(&self, flag: bool) -> bool {
        flag
    }

    fn warp_exchange(&self, value: u64, read: &mut dyn FnMut(&[u64])) {
        read(&[value]);
    }
}

/// Gives the processor away when looks are in vain, so that many blocks on few processors all get on.
#[derive(Debug, Default)]
pub(super) struct Rest {
    looks: Cell<u32>,
}

impl Rest {
    /// Vain looks between two offers of the processor: few, since the block waited for may be one that has none.
    const YIELD: u32 = 32;
    /// And between two sleeps, for when everybody who takes the offers is as idle.
    const SLEEP: u32 = 1 << 16;
    const NAP: Duration = Duration::from_micros(50);

    /// Called after `looks` looks in vain.
    pub(super) fn after(&self, looks: u32) {
        let before = self.looks.get();
        let now = before.wrapping_add(looks);
        self.looks.set(now);
        if before / Self::SLEEP != now / Self::SLEEP {
            thread::sleep(Self::NAP);
        } else if before / Self::YIELD != now / Self::YIELD {
            thread::yield_now();
        } else {
            hint::spin_loop();
        }
    }
}
