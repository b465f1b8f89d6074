//! A waiting policy without a device: a board on the heap.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use warpwire_device::abi::{BoardState, Global, PolicyHandle, Rank, WaitBoard};
use warpwire_device::spin::Policy;

/// A [`WaitBoard`] in heap memory, and a policy that reports there. Keep it as long as a copy of the policy is used.
#[derive(Debug)]
pub struct LocalBoard {
    board: Box<UnsafeCell<WaitBoard>>,
    handle: PolicyHandle,
    policy: Policy,
}

// SAFETY: the board is touched through atomics and by one claimant's stores, as its protocol has it.
unsafe impl Sync for LocalBoard {}

impl LocalBoard {
    /// A clear board, for waits of `rank` that last at most `timeout` each.
    #[must_use]
    pub fn new(rank: Rank, timeout: Duration) -> Self {
        let board = Box::new(UnsafeCell::new(WaitBoard::default()));
        // SAFETY: heap memory, aligned by its type; stays where it is as long as the box lives.
        let address = unsafe { Global::from_address(board.get() as u64) };
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let handle = PolicyHandle { board: address, timeout_ns, rank, reserved: 0 };
        // SAFETY: the board lives as long as this value, which owns the policy.
        let policy = unsafe { Policy::new(handle) };
        Self { board, handle, policy }
    }

    /// For waits that are met: long enough for a slow machine under a sanitizer, and no test hangs.
    #[must_use]
    pub fn generous(rank: Rank) -> Self {
        Self::new(rank, Duration::from_secs(60))
    }

    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What a kernel would be given.
    #[must_use]
    pub const fn handle(&self) -> PolicyHandle {
        self.handle
    }

    /// Ends every wait under the policy.
    pub fn abort(&self) {
        // SAFETY: the word lives as long as `self`, and is touched by atomics only.
        let abort = unsafe { AtomicU32::from_ptr(&raw mut (*self.board.get()).abort) };
        abort.store(1, Ordering::Relaxed);
    }

    /// The report of the first wait that failed, once it is whole.
    #[must_use]
    pub fn report(&self) -> Option<WaitBoard> {
        // SAFETY: the word lives as long as `self`, and is touched by atomics only.
        let state = unsafe { AtomicU32::from_ptr(&raw mut (*self.board.get()).state) };
        let reported = state.load(Ordering::Acquire) == BoardState::Reported as u32;
        // SAFETY: whoever claimed the board wrote it before it stored `Reported`, and nobody writes it again.
        reported.then(|| unsafe { self.board.get().read() })
    }
}
