//! Semaphores: a token that one side adds to and the other waits on.
//!
//! `signal` is one `red.release.sys.global.add.u64` on the peer's token and nothing else: no local counter, nothing to
//! read back. `wait` reads in its own `expected` word how many signals it has taken (relaxed, `.gpu` scope), looks at its token
//! with `ld.acquire.sys` until that counts more, and moves `expected` on. Both words count signals for ever: 2^64 of them
//! take longer than any machine lasts.
//!
//! A side belongs to one thread at a time, so its own word needs no atomic: its load is on its way together with the first look,
//! and ptxas, which takes what an atomic gives for different in each lane, would guard the loop behind one with barriers of
//! convergence that cost a hop 30 ns. Where several threads wait on a side at once, each calls [`Inbound::wait_shared`].
//!
//! # Ordering
//!
//! A signal publishes, to whoever's wait it ends, the writes of the signalling thread and those that were ordered before
//! it in its block (by a group's `sync`). To publish a group's writes: `group.sync()`, then one thread signals. The relaxed
//! forms publish nothing: they count.
//!
//! # Within a device
//!
//! A semaphore whose two sides share one token, which holds `n` at first, is a bounded one: `wait_shared` enters and `signal`
//! leaves, at most `n` are between the two, and they enter in the order in which they asked. Where one of several waits at it
//! fails, its words have to be set anew: the ticket that it gives back may be another's.

use crate::abi::{
    HostSemaphoreHandle, InboundHandle, OutboundHandle, SemaphoreHandle, WaitError, WaitKind, WaitSite,
};
use crate::arch::{self, Acquire, Gpu, LoadOrder, Relaxed, Release, Sys};
use crate::mem::{Mapped, Word};
use crate::spin::{self, Patience};

/// The signalling side.
#[derive(Clone, Copy, Debug)]
pub struct Outbound<W> {
    token: W,
}

impl Outbound<Mapped<u64>> {
    /// The side that `handle` describes.
    ///
    /// # Safety
    ///
    /// The handle's word is mapped to this device, and live while this value is used.
    #[inline(always)]
    pub unsafe fn new(handle: OutboundHandle) -> Self {
        // SAFETY: the caller's contract.
        Self { token: unsafe { Mapped::new(handle.token) } }
    }
}

impl<W: Word<Value = u64>> Outbound<W> {
    /// The side that signals on `token`.
    #[inline(always)]
    pub const fn over(token: W) -> Self {
        Self { token }
    }

    /// Signals, and publishes the calling thread's writes before it. Called by a thread; does not wait.
    #[inline(always)]
    pub fn signal(&self) {
        self.token.add::<Release, Sys>(1);
    }

    /// Signals and publishes nothing. Called by a thread; does not wait.
    #[inline(always)]
    pub fn signal_relaxed(&self) {
        self.token.add::<Relaxed, Sys>(1);
    }
}

/// The waiting side.
#[derive(Clone, Copy, Debug)]
pub struct Inbound<W> {
    token: W,
    expected: W,
    site: WaitSite,
}

impl Inbound<Mapped<u64>> {
    /// The side that `handle` describes.
    ///
    /// # Safety
    ///
    /// The handle's two words are mapped to this device, and live while this value is used; only this side adds to
    /// `expected`.
    #[inline(always)]
    pub unsafe fn new(handle: InboundHandle) -> Self {
        // SAFETY: the caller's contract.
        let (token, expected) = unsafe { (Mapped::new(handle.token), Mapped::new(handle.expected)) };
        let site = WaitSite { kind: WaitKind::Semaphore, peer: handle.peer, channel: handle.channel };
        Self::over(token, expected, site)
    }
}

impl<W: Word<Value = u64>> Inbound<W> {
    /// The side that waits on `token` and keeps its count in `expected`.
    #[inline(always)]
    pub const fn over(token: W, expected: W, site: WaitSite) -> Self {
        Self { token, expected, site }
    }

    /// Waits for one more signal; afterwards the signaller's writes before it are visible to the calling thread. Called by
    /// a thread; while it runs, no other thread polls or waits on this side.
    ///
    /// # Errors
    ///
    /// [`WaitError`], with a report on the board. A wait that fails has consumed nothing: the next one waits for the same
    /// signal.
    #[inline(always)]
    pub fn wait(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.wait_alone::<Acquire>(patience)
    }

    /// As [`Inbound::wait`], without making anything visible: it counts. Called by a thread.
    ///
    /// # Errors
    ///
    /// As [`Inbound::wait`].
    #[inline(always)]
    pub fn wait_relaxed(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.wait_alone::<Relaxed>(patience)
    }

    /// As [`Inbound::wait`], for several threads at once: each takes a signal of its own. Called by a thread; while it runs, all
    /// that others call on this side is this.
    ///
    /// # Errors
    ///
    /// As [`Inbound::wait`]; the signal goes to another that waits, or to the next.
    #[inline(always)]
    pub fn wait_shared(&self, patience: impl Patience) -> Result<(), WaitError> {
        let taken = self.expected.fetch_add::<Relaxed, Gpu>(1);
        let waited = self.more_than::<Acquire>(taken, patience);
        if waited.is_err() {
            self.expected.add::<Relaxed, Gpu>(u64::MAX); // minus one: the signal is still to come
        }
        waited
    }

    #[inline(always)]
    fn wait_alone<O: LoadOrder>(&self, patience: impl Patience) -> Result<(), WaitError> {
        let taken = self.expected.load::<Relaxed, Gpu>();
        self.more_than::<O>(taken, patience)?;
        // Not worked out ahead of the looks, which then would wait for `taken`.
        self.expected.store::<Relaxed, Gpu>(arch::advance(taken, 1));
        Ok(())
    }

    /// Looks until the token counts more signals than `taken`.
    #[inline(always)]
    fn more_than<O: LoadOrder>(&self, taken: u64, patience: impl Patience) -> Result<(), WaitError> {
        let token = self.token;
        let load = || token.load::<O, Sys>();
        let missing = |seen| (arch::advance(taken, 1), seen);
        let ready = |seen| (seen > taken).then_some(());
        spin::wait::<3, _, _, _>(patience, self.site, load, ready, missing)
    }

    /// Takes a signal where one is there, with [`Inbound::wait`]'s ordering; false where none is. Called by a thread; while
    /// it runs, no other thread polls or waits on this side.
    #[inline(always)]
    pub fn poll(&self) -> bool {
        let taken = self.expected.load::<Relaxed, Gpu>();
        let ready = self.token.load::<Acquire, Sys>() > taken;
        if ready {
            self.expected.store::<Relaxed, Gpu>(taken + 1);
        }
        ready
    }
}

/// A semaphore between two devices: signals go to the peer's token, waits look at one's own.
#[derive(Clone, Copy, Debug)]
pub struct Semaphore<W> {
    inbound: Inbound<W>,
    outbound: Outbound<W>,
}

impl Semaphore<Mapped<u64>> {
    /// The semaphore that `handle` describes.
    ///
    /// # Safety
    ///
    /// As for [`Inbound::new`] and [`Outbound::new`].
    #[inline(always)]
    pub unsafe fn new(handle: SemaphoreHandle) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Self { inbound: Inbound::new(handle.inbound), outbound: Outbound::new(handle.outbound) } }
    }
}

impl<W: Word<Value = u64>> Semaphore<W> {
    /// The semaphore of these two sides.
    #[inline(always)]
    pub const fn over(inbound: Inbound<W>, outbound: Outbound<W>) -> Self {
        Self { inbound, outbound }
    }

    /// See [`Outbound::signal`].
    #[inline(always)]
    pub fn signal(&self) {
        self.outbound.signal();
    }

    /// See [`Outbound::signal_relaxed`].
    #[inline(always)]
    pub fn signal_relaxed(&self) {
        self.outbound.signal_relaxed();
    }

    /// See [`Inbound::wait`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub fn wait(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.inbound.wait(patience)
    }

    /// See [`Inbound::wait_relaxed`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub fn wait_relaxed(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.inbound.wait_relaxed(patience)
    }

    /// See [`Inbound::wait_shared`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub fn wait_shared(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.inbound.wait_shared(patience)
    }

    /// See [`Inbound::poll`].
    #[inline(always)]
    pub fn poll(&self) -> bool {
        self.inbound.poll()
    }
}

/// A semaphore that the host signals: its waiting side alone.
///
/// # Safety
///
/// As for [`Inbound::new`].
#[inline(always)]
pub unsafe fn host_semaphore(handle: HostSemaphoreHandle) -> Inbound<Mapped<u64>> {
    // SAFETY: the caller's contract.
    unsafe { Inbound::new(handle.inbound) }
}
