//! Waits that end.
//!
//! A wait looks at a word until it holds what is waited for. Its hot loop is one load, one compare and a count; every
//! [`Patience::LOOKS`] looks it asks its policy whether to go on. No kernel hangs: a wait ends with the value, with
//! [`WaitError::Timeout`], or with [`WaitError::Aborted`], and in the last two cases the first to fail leaves a report on
//! the host's board.

use core::mem::offset_of;

use crate::abi::{BoardState, Global, PolicyHandle, Rank, WaitBoard, WaitError, WaitSite};
use crate::arch::{self, Gpu, Relaxed, Release, Sys};

/// Decides how long a wait lasts. One value serves one wait.
pub trait Patience {
    /// Looks between two questions.
    const LOOKS: u32;

    /// Whether the wait must end now. Called by the waiting thread, after each [`Patience::LOOKS`] vain looks.
    fn exhausted(&mut self) -> bool;

    /// Tells the host of a wait that ended in vain, and the caller why. Called once, by the thread that waited, when it is
    /// exhausted.
    fn report(&self, site: WaitSite, expected: u64, seen: u64) -> WaitError;
}

/// A launch's waiting policy: a limit for each wait, and the board with the abort word.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    handle: PolicyHandle,
}

impl Policy {
    /// The policy that the host made for this launch.
    ///
    /// # Safety
    ///
    /// The handle's board is mapped to this device and live while the kernel runs.
    #[inline(always)]
    pub const unsafe fn new(handle: PolicyHandle) -> Self {
        Self { handle }
    }

    /// The patience of one wait under this policy. Its clock starts when it is first asked, after the first
    /// [`Patience::LOOKS`] looks, so a wait that is met at once reads no clock.
    #[inline(always)]
    pub const fn patience(&self) -> BoardPatience {
        BoardPatience { handle: self.handle, started: 0, abort: 0 }
    }

    /// The rank that the kernel runs for.
    #[inline(always)]
    pub const fn rank(&self) -> Rank {
        self.handle.rank
    }
}

/// The patience of one wait under a [`Policy`].
#[derive(Clone, Copy, Debug)]
pub struct BoardPatience {
    handle: PolicyHandle,
    /// The timer at the first question; 0: not asked yet.
    started: u64,
    /// The abort word at the last question.
    abort: u32,
}

impl Patience for BoardPatience {
    const LOOKS: u32 = 256;

    #[inline(always)]
    fn exhausted(&mut self) -> bool {
        let abort = self.handle.board.byte_add(offset_of!(WaitBoard, abort) as u64).cast();
        // SAFETY: `Policy::new`'s contract: the board is mapped and live.
        self.abort = unsafe { arch::load_u32::<Relaxed, Sys>(abort) };
        let now = arch::timer_ns();
        if self.started == 0 {
            self.started = now;
        }
        self.abort != 0 || (now.wrapping_sub(self.started) > self.handle.timeout_ns)
    }

    #[inline(always)]
    fn report(&self, site: WaitSite, expected: u64, seen: u64) -> WaitError {
        // The abort word is 0 or 1, and so far apart are the two errors.
        let error = WaitError::Timeout as u32 + self.abort;
        let (what, whence) = (pair(error, site.kind as u32), pair(site.peer.0, site.channel.0));
        // SAFETY: `Policy::new`'s contract: the board is mapped and live.
        unsafe { leave_report(what, whence, expected, seen, self.handle.rank, self.handle.board) };
        if self.abort == 0 { WaitError::Timeout } else { WaitError::Aborted }
    }
}

/// Claims the board and reports on it; where another wait has claimed it, does nothing. `what` is the error and the kind, `whence`
/// the peer and the channel.
///
/// A function that is called, unlike the rest of the crate: all waits of a kernel share one, and it takes no registers of theirs.
/// It stores pairs of fields as they come in a pair of registers: a wider store would first have to gather them.
///
/// # Safety
///
/// The board is mapped and live.
#[cold]
#[inline(never)]
unsafe fn leave_report(
    what: u64,
    whence: u64,
    expected: u64,
    seen: u64,
    rank: Rank,
    board: Global<WaitBoard>,
) {
    let state: Global<u32> = board.byte_add(offset_of!(WaitBoard, state) as u64).cast();
    // Threads of one device contend for the board, never the host: `.gpu` scope claims it, also where the bus has no atomics
    // of its own.
    // SAFETY: the caller's contract, here and below; after the claim this thread alone writes the fields.
    let before = unsafe {
        arch::atom_cas_u32::<Relaxed, Gpu>(state, BoardState::Clear as u32, BoardState::Claimed as u32)
    };
    if before != BoardState::Clear as u32 {
        return;
    }
    let fields: Global<u64> = board.byte_add(offset_of!(WaitBoard, error) as u64).cast();
    let waiter = pair(arch::block_index(), arch::thread_index());
    // SAFETY: as above; the layout's assertions put the fields in these words.
    unsafe {
        for (field, value) in (0..).zip([what, whence, waiter, expected, seen]) {
            arch::store_weak_u64(fields.add(field), value);
        }
        arch::store_weak_u32(fields.add(5).cast(), rank.0);
        arch::store_u32::<Release, Sys>(state, BoardState::Reported as u32);
    }
}

/// Two 32-bit fields as the 64-bit word that they make in memory.
#[inline(always)]
fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

/// Whether a counter that stands at `seen` has come to `expected`, either of which may have wrapped: less than 2^63 lie
/// between them.
#[inline(always)]
#[must_use]
pub fn reached(seen: u64, expected: u64) -> bool {
    arch::high_half(seen.wrapping_sub(expected)) as i32 >= 0
}

/// Looks at a word until it is what is waited for, or `patience` runs out. Called by a thread.
///
/// `load` reads the word, `ready` takes from it what is waited for where that is there, and `missing` makes of the last word what
/// the report says: what was expected, and what was seen. So a look does not work out what only a report needs.
///
/// `TURN` looks stand in one turn of the loop, with the count behind the last. An arrival is seen the sooner the less stands
/// between two loads: 3 for a word that one thread waits for. Where the thread on the other side answers at once, as with
/// packets, 1 has been the better rhythm.
///
/// # Errors
///
/// What `patience` says; it has reported it.
#[inline(always)]
pub fn wait<const TURN: u32, P: Patience, W: Copy, T>(
    mut patience: P,
    site: WaitSite,
    mut load: impl FnMut() -> W,
    ready: impl Fn(W) -> Option<T>,
    missing: impl Fn(W) -> (u64, u64),
) -> Result<T, WaitError> {
    // A patience that wants to be asked more often than that is.
    let turn = if P::LOOKS < TURN { 1 } else { TURN };
    loop {
        let mut left = P::LOOKS / turn;
        // Two loops, so that the inner one is loads and compares, and a count at its end.
        let word = loop {
            arch::keep_loop();
            let mut word = load();
            for look in 0..turn {
                if let Some(value) = ready(word) {
                    return Ok(value);
                }
                if look + 1 < turn {
                    arch::pause();
                    word = load();
                }
            }
            left = arch::count_down(left);
            if left == 0 {
                break word;
            }
            arch::pause();
        };
        if patience.exhausted() {
            let (expected, seen) = missing(word);
            return Err(patience.report(site, expected, seen));
        }
        arch::pause();
    }
}
