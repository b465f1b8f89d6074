//! Queues of work.

use std::ffi::c_void;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use warpwire_device::abi::{Global, PolicyHandle, Rank};
use warpwire_device::kernel::Kernel;

use super::board::Board;
use super::driver::{DriverEvent, DriverFunction, DriverStream};
use super::graph::{self, Graph};
use super::{Device, Function, LaunchConfig};
use crate::error::{Error, Result};

/// A queue of work on one device. Its work runs in order, beside that of other streams.
///
/// Each stream has a board in host memory where its kernels' waits look for an abort and report a failure:
/// [`Stream::policy`] gives a launch its address, [`Stream::synchronize`] turns a report into an error.
///
/// Synchronize before dropping: the drop of a stream with work in flight aborts that work's waits and then waits for it.
#[derive(Debug)]
pub struct Stream {
    // Dropped in this order: the queue first, then what its work used.
    driver: Arc<dyn DriverStream>,
    kept: Mutex<Vec<Kept>>,
    board: Arc<Board>,
    capturing: Arc<AtomicBool>,
    device: Device,
}

/// What queued work needs until it has ended.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    Function(Arc<dyn DriverFunction>),
    Graph(Arc<graph::Inner>),
    Board(Arc<Board>),
}

impl Kept {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Function(a), Self::Function(b)) => Arc::ptr_eq(a, b),
            (Self::Graph(a), Self::Graph(b)) => Arc::ptr_eq(a, b),
            (Self::Board(a), Self::Board(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Stream {
    pub(super) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            board: Arc::new(Board::new(device)?),
            driver: device.driver().stream()?,
            kept: Mutex::default(),
            capturing: Arc::default(),
            device: device.clone(),
        })
    }

    /// The device that runs it.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The policy of a launch on this stream, for its arguments: each wait of the kernel lasts at most `timeout`
    /// ([`Duration::MAX`]: until an abort) and reports on this stream's board as `rank`.
    #[must_use]
    pub fn policy(&self, rank: Rank, timeout: Duration) -> PolicyHandle {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        PolicyHandle { board: self.board.address(), timeout_ns, rank, reserved: 0 }
    }

    /// Ends every wait of this stream's kernels with `Aborted`, now and until [`Stream::reset`].
    pub fn abort(&self) {
        self.board.abort();
    }

    /// What another thread aborts this stream with.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle { board: Arc::clone(&self.board) }
    }

    /// What a proxy, or a collective, watches this stream with.
    pub(crate) fn watch(&self) -> StreamWatch {
        StreamWatch {
            driver: Arc::downgrade(&self.driver),
            board: Arc::downgrade(&self.board),
            capturing: Arc::clone(&self.capturing),
        }
    }

    /// Clears the report and the abort, so that the stream can be used again after a failure.
    ///
    /// The protocols' own words are as the failed round left them. A semaphore's wait that failed has consumed nothing; a
    /// grid barrier's word has to be zeroed.
    ///
    /// # Errors
    ///
    /// [`Error::StreamBusy`] while work is in flight: its waits would no longer end. [`Error::CaptureActive`].
    pub fn reset(&self) -> Result<()> {
        self.expect_no_capture("reset the stream")?;
        if !self.driver.is_idle()? {
            return Err(Error::StreamBusy { operation: "reset the stream" });
        }
        self.board.clear();
        Ok(())
    }

    /// Queues a launch of `K`. The arguments are copied before this returns.
    ///
    /// # Errors
    ///
    /// Before anything is queued: [`Error::ForeignObject`] for a function of another device; for a shape that cannot run
    /// [`Error::EmptyLaunch`], [`Error::TooManyThreads`], [`Error::GridTooLarge`], [`Error::SharedTooLarge`],
    /// [`Error::TooManyBlocks`] or [`Error::TooManyStreams`]. What goes wrong later comes from [`Stream::synchronize`].
    ///
    /// # Safety
    ///
    /// Until the launch has ended:
    /// 1. every address in `args` is valid on this device for what the kernel's documentation says that it does with it, and
    ///    the memory behind it is not freed;
    /// 2. nobody else (another launch, a copy, the host) touches what the kernel touches, except through the protocols that
    ///    the kernel speaks;
    /// 3. `args` has no padding bytes: its `repr(C)` struct fills gaps with fields.
    pub unsafe fn launch<K: Kernel>(
        &self,
        function: &Function<K>,
        config: LaunchConfig,
        args: K::Args,
    ) -> Result<()> {
        self.device.expect_own(function.device(), "function")?;
        config.check(function)?;
        self.keep(Kept::Function(Arc::clone(function.driver())));
        // SAFETY: a live value without padding (the caller's contract), so all its bytes are initialised.
        let bytes = unsafe { slice::from_raw_parts((&raw const args).cast::<u8>(), size_of::<K::Args>()) };
        // SAFETY: `bytes` is a `K::Args`, the type of the function; the kernel's contract is the caller's.
        unsafe { self.driver.launch(&**function.driver(), config, bytes) }
    }

    /// Queues a copy of `bytes` bytes within the device.
    ///
    /// # Errors
    ///
    /// The driver's.
    ///
    /// # Safety
    ///
    /// Both ranges are this device's, live and touched by nobody else until the copy has ended, and they do not overlap.
    pub unsafe fn copy(&self, destination: Global<u8>, source: Global<u8>, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's contract.
        unsafe { self.driver.copy(destination.address(), source.address(), bytes) }
    }

    /// Queues setting `bytes` bytes to `value`.
    ///
    /// # Errors
    ///
    /// The driver's.
    ///
    /// # Safety
    ///
    /// The range is this device's, live and touched by nobody else until that has ended.
    pub unsafe fn fill(&self, destination: Global<u8>, value: u8, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's contract.
        unsafe { self.driver.fill(destination.address(), value, bytes) }
    }

    /// Queues setting the 64-bit word at `destination` to `value`, with release order at system scope: whoever acquires the
    /// value sees what was queued on this stream before.
    ///
    /// # Errors
    ///
    /// [`Error::Misaligned`]; the driver's.
    ///
    /// # Safety
    ///
    /// The word is reached by this device, live until that has ended, and touched by others through ordered accesses only.
    pub unsafe fn write_word(&self, destination: Global<u64>, value: u64) -> Result<()> {
        let address = aligned(destination)?;
        // SAFETY: the caller's contract; the address is aligned.
        unsafe { self.driver.write_word(address, value) }
    }

    /// Queues setting two words, one after the other, as [`Stream::write_word`] does, for the price of one.
    ///
    /// # Errors
    ///
    /// As there; nothing is queued where one of them is misaligned.
    ///
    /// # Safety
    ///
    /// As there, of both.
    pub(crate) unsafe fn write_words(&self, words: [(Global<u64>, u64); 2]) -> Result<()> {
        let [(first, one), (second, other)] = words;
        let words = [(aligned(first)?, one), (aligned(second)?, other)];
        // SAFETY: the caller's contract; the addresses are aligned.
        unsafe { self.driver.write_words(words) }
    }

    /// Calls another library with the driver's own handle of this stream: CUDA's `CUstream`, while the device's primary
    /// context is current on the calling thread. `None`, and no call, on the CPU device, which has no such handle.
    ///
    /// What the library queues is in order with the rest, and [`Stream::synchronize`] waits for it. It may not keep the handle
    /// beyond the stream's life.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn with_native<R>(&self, call: impl FnOnce(*mut c_void) -> R) -> Result<Option<R>> {
        let (mut call, mut result) = (Some(call), None);
        self.driver.with_native(&mut |handle| result = call.take().map(|call| call(handle)))?;
        Ok(result)
    }

    /// Waits for everything queued so far.
    ///
    /// # Errors
    ///
    /// What went wrong since the last call: a launch's own failure ([`Error::KernelPanicked`], [`Error::BarrierDivergence`],
    /// [`Error::Driver`]), else [`Error::WaitFailed`] where a wait has left its report on the board, each time until
    /// [`Stream::reset`]. Where a launch has failed, what was queued behind it may not have run.
    pub fn synchronize(&self) -> Result<()> {
        self.expect_no_capture("synchronize")?;
        // Taken before the wait, so that what is queued meanwhile keeps its own.
        let ended = mem::take(&mut *self.lock_kept());
        self.driver.synchronize()?;
        drop(ended);
        self.board.check()
    }

    /// Whether everything queued so far has ended.
    ///
    /// # Errors
    ///
    /// The driver's; [`Error::CaptureActive`].
    pub fn is_idle(&self) -> Result<bool> {
        self.expect_no_capture("ask for idleness")?;
        self.driver.is_idle()
    }

    /// Queues a mark of the time.
    ///
    /// # Errors
    ///
    /// The driver's; [`Error::CaptureActive`].
    pub fn record(&self) -> Result<Event> {
        self.expect_no_capture("record an event")?;
        Ok(Event { device: self.device.clone(), driver: self.driver.record()? })
    }

    /// Records what `queue` queues on this stream instead of running it.
    ///
    /// The recording ends also where `queue` fails or panics.
    ///
    /// # Errors
    ///
    /// `queue`'s; [`Error::CaptureActive`] where the stream is being captured already; the driver's.
    pub fn capture(&self, queue: impl FnOnce(&Self) -> Result<()>) -> Result<Graph> {
        if self.capturing.swap(true, Ordering::AcqRel) {
            return Err(Error::CaptureActive { operation: "begin a capture" });
        }
        let begun = self.driver.begin_capture();
        if begun.is_err() {
            self.capturing.store(false, Ordering::Release);
        }
        begun?;
        // What is recorded may be repeated when this stream is gone, and its policies name this stream's board.
        let board = vec![Kept::Board(Arc::clone(&self.board))];
        let before = mem::replace(&mut *self.lock_kept(), board);
        let queued = panic::catch_unwind(AssertUnwindSafe(|| queue(self)));
        let recorded = self.driver.end_capture();
        let kept = mem::replace(&mut *self.lock_kept(), before);
        self.capturing.store(false, Ordering::Release);
        match queued {
            Ok(queued) => queued.and_then(|()| Ok(Graph::new(self.device.clone(), recorded?, kept))),
            Err(panic) => panic::resume_unwind(panic),
        }
    }

    pub(super) fn driver(&self) -> &dyn DriverStream {
        &*self.driver
    }

    /// Keeps `what` alive until the stream is next synchronized.
    pub(super) fn keep(&self, what: Kept) {
        let mut kept = self.lock_kept();
        // The same few kernels are launched over and over: the list stays short.
        if !kept.iter().any(|known| known.is_same(&what)) {
            kept.push(what);
        }
    }

    fn lock_kept(&self) -> MutexGuard<'_, Vec<Kept>> {
        // Each change of the list is one push or one exchange: a panic elsewhere leaves it whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect_no_capture(&self, operation: &'static str) -> Result<()> {
        if self.capturing.load(Ordering::Acquire) { Err(Error::CaptureActive { operation }) } else { Ok(()) }
    }
}

/// A word's address; an error where it is none.
fn aligned(word: Global<u64>) -> Result<u64> {
    let (address, alignment) = (word.address(), align_of::<u64>() as u64);
    if address.is_multiple_of(alignment) {
        Ok(address)
    } else {
        Err(Error::Misaligned { what: "word", address, alignment })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !matches!(self.driver.is_idle(), Ok(true)) {
            // A wait that nobody will end would keep the stream, and this thread, for ever.
            self.board.abort();
            if let Err(error) = self.driver.synchronize() {
                tracing::debug!(%error, "a stream was dropped with work that failed");
            }
        }
    }
}

/// Aborts a stream's waits from any thread. A cheap clone; it may outlive the stream.
#[derive(Clone, Debug)]
pub struct AbortHandle {
    board: Arc<Board>,
}

impl AbortHandle {
    /// As [`Stream::abort`].
    pub fn abort(&self) {
        self.board.abort();
    }

    /// The same without keeping the board.
    pub(crate) fn downgrade(&self) -> WeakAbortHandle {
        WeakAbortHandle { board: Arc::downgrade(&self.board) }
    }
}

/// An [`AbortHandle`] that keeps nothing: of no use once the stream and its launches are gone.
#[derive(Clone, Debug)]
pub(crate) struct WeakAbortHandle {
    board: Weak<Board>,
}

impl WeakAbortHandle {
    /// The handle, as long as there is something to abort.
    pub(crate) fn upgrade(&self) -> Option<AbortHandle> {
        self.board.upgrade().map(|board| AbortHandle { board })
    }
}

/// Says whether a stream has work in flight, and aborts its waits, without keeping the stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamWatch {
    driver: Weak<dyn DriverStream>,
    board: Weak<Board>,
    capturing: Arc<AtomicBool>,
}

impl StreamWatch {
    /// Whether the stream, if it is still there, has work that runs or is queued. What is only recorded does not run, and a
    /// stream whose work has failed has none that does.
    pub(crate) fn is_busy(&self) -> bool {
        !self.capturing.load(Ordering::Acquire)
            && self.driver.upgrade().is_some_and(|driver| matches!(driver.is_idle(), Ok(false)))
    }

    /// Whether both are of one stream. The board's address tells them apart, as each stream has its own and a watch keeps it
    /// from being given to another.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.board, &other.board)
    }

    /// As [`Stream::abort`].
    pub(crate) fn abort(&self) {
        if let Some(board) = self.board.upgrade() {
            board.abort();
        }
    }

    /// Whether the stream is gone, and all that was launched on it.
    pub(crate) fn is_over(&self) -> bool {
        self.driver.strong_count() == 0 && self.board.strong_count() == 0
    }
}

/// A mark of the time in a stream.
#[derive(Debug)]
pub struct Event {
    device: Device,
    driver: Box<dyn DriverEvent>,
}

impl Event {
    /// Waits until the stream has passed it.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn synchronize(&self) -> Result<()> {
        self.driver.synchronize()
    }

    /// Whether the stream has passed it.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn has_passed(&self) -> Result<bool> {
        self.driver.has_passed()
    }

    /// The time from `earlier` to this one, by the device's clock; waits for both. Zero where `earlier` came later.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignObject`] where `earlier` is another device's; the driver's.
    pub fn elapsed_since(&self, earlier: &Self) -> Result<Duration> {
        self.device.expect_own(&earlier.device, "event")?;
        self.driver.elapsed_since(&*earlier.driver)
    }
}
