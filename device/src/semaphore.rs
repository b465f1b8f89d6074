//! Semaphores: a token that one side adds to and the other waits on.
//!
//! `signal` is one `red.release.sys.global.add.u64` on the peer's token and nothing else: no local counter, nothing to
//! read back. `wait` takes the next number from its own `expected` word (relaxed, `.gpu` scope) and looks at its token
//! with `ld.acquire.sys` until it has come that far. Both words count signals for ever and compare by difference, so they
//! may wrap.
//!
//! # Ordering
//!
//! A signal publishes, to whoever's wait it ends, the writes of the signalling thread and those that were ordered before
//! it in its block (by a group's `sync`). To publish a group's writes: `group.sync()`, then one thread signals. The relaxed
//! forms publish nothing: they count.
//!
//! # Within a device
//!
//! A semaphore whose two sides share one token, which holds `n` at first, is a bounded one: `wait` enters and `signal` leaves,
//! at most `n` are between the two, and they enter in the order in which they asked. Where one of several waits at it fails, its
//! words have to be set anew: the ticket that it gives back may be another's.

use crate::abi::{
    HostSemaphoreHandle, InboundHandle, OutboundHandle, SemaphoreHandle, WaitError, WaitKind, WaitSite,
};
use crate::arch::{Acquire, Gpu, LoadOrder, Relaxed, Release, Sys};
use crate::mem::{Mapped, Word};
use crate::spin::{self, Patience, reached};

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
    /// a thread; several may wait at once, and each takes a signal of its own.
    ///
    /// # Errors
    ///
    /// [`WaitError`], with a report on the board. A wait that fails has consumed nothing: the next one waits for the same
    /// signal.
    #[inline(always)]
    pub fn wait(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.wait_ordered::<Acquire>(patience)
    }

    /// As [`Inbound::wait`], without making anything visible: it counts. Called by a thread.
    ///
    /// # Errors
    ///
    /// As [`Inbound::wait`].
    #[inline(always)]
    pub fn wait_relaxed(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.wait_ordered::<Relaxed>(patience)
    }

    #[inline(always)]
    fn wait_ordered<O: LoadOrder>(&self, patience: impl Patience) -> Result<(), WaitError> {
        let expected = self.expected.fetch_add::<Relaxed, Gpu>(1).wrapping_add(1);
        let token = self.token;
        let load = || token.load::<O, Sys>();
        let ready = |seen| reached(seen, expected).then_some(());
        let waited = spin::wait_for::<4, _, _, _>(patience, self.site, expected, load, ready, |seen| seen);
        if waited.is_err() {
            self.expected.add::<Relaxed, Gpu>(u64::MAX); // minus one: the signal is still to come
        }
        waited
    }

    /// Takes a signal where one is there, with [`Inbound::wait`]'s ordering; false where none is. Called by a thread; while
    /// it runs, no other thread polls or waits on this side.
    #[inline(always)]
    pub fn poll(&self) -> bool {
        let expected = self.expected.load::<Relaxed, Gpu>().wrapping_add(1);
        let ready = reached(self.token.load::<Acquire, Sys>(), expected);
        if ready {
            self.expected.store::<Relaxed, Gpu>(expected);
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
