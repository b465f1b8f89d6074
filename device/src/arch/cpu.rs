//! The CPU device's instructions: the names of `arch::nvptx` on core atomics, and the lane that the calling code runs as.
//!
//! A scope has no counterpart here: every ordered access is visible to every thread of the process and, in shared
//! mappings, of the others. Where no lane is set (a test that calls a protocol from a plain thread), the caller is the one
//! thread of the one block of a grid.

mod cvt;
mod multimem;
mod simd;

use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{self, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::{
    FenceKind, FenceOrder, LoadKind, LoadOrder, RmwKind, RmwOrder, Scope, StoreKind, StoreOrder, WARP_SIZE,
};
use crate::abi::Global;

pub use cvt::*;
pub use multimem::*;
pub use simd::*;

/// What the CPU device does for a lane that has to wait for others.
pub trait LaneRuntime {
    /// Lets other lanes run.
    fn pause(&self);
    /// Waits for every lane of the block; true where `flag` was true in any.
    fn block_sync(&self, flag: bool) -> bool;
    /// Waits for every lane of the warp, each with a value; calls `read` with them all, by lane.
    fn warp_exchange(&self, value: u64, read: &mut dyn FnMut(&[u64]));
}

/// A GPU thread on the CPU device: its place in the grid, and who runs it.
#[derive(Clone, Copy)]
pub struct Lane {
    /// `%tid.x`.
    pub thread_index: u32,
    /// `%ntid.x`.
    pub block_size: u32,
    /// `%ctaid.x`.
    pub block_index: u32,
    /// `%nctaid.x`.
    pub grid_size: u32,
    /// The block's dynamic shared memory.
    pub shared: NonNull<u8>,
    /// Its bytes.
    pub shared_bytes: u32,
    /// Who runs this lane. Outlives the lane's turn.
    pub runtime: NonNull<dyn LaneRuntime>,
}

std::thread_local! {
    static LANE: Cell<Option<NonNull<Lane>>> = const { Cell::new(None) };
}

/// Makes the calling OS thread run as `lane`, or as none; returns what it ran as before.
///
/// # Safety
///
/// `lane`, and what it points at, stay where they are until the next call on this OS thread.
pub unsafe fn set_lane(lane: Option<NonNull<Lane>>) -> Option<NonNull<Lane>> {
    LANE.replace(lane)
}

/// Reads a field of the current lane. Never inlined: a lane that is a coroutine may be resumed with another value in the
/// thread-local, so its address must not be kept across a switch.
#[inline(never)]
fn with_lane<T>(read: impl FnOnce(Option<&Lane>) -> T) -> T {
    // SAFETY: `set_lane`'s contract: the lane is live until it is replaced.
    read(LANE.get().map(|lane| unsafe { lane.as_ref() }))
}

/// The runtime of the current lane.
fn runtime() -> Option<NonNull<dyn LaneRuntime>> {
    with_lane(|lane| lane.map(|lane| lane.runtime))
}

/// `%tid.x`: the thread's number in its block.
pub fn thread_index() -> u32 {
    with_lane(|lane| lane.map_or(0, |lane| lane.thread_index))
}

/// `%ntid.x`: threads of the block.
pub fn block_size() -> u32 {
    with_lane(|lane| lane.map_or(1, |lane| lane.block_size))
}

/// `%ctaid.x`: the block's number in its grid.
pub fn block_index() -> u32 {
    with_lane(|lane| lane.map_or(0, |lane| lane.block_index))
}

/// `%nctaid.x`: blocks of the grid.
pub fn grid_size() -> u32 {
    with_lane(|lane| lane.map_or(1, |lane| lane.grid_size))
}

/// Nanoseconds since the first call in this process.
pub fn timer_ns() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// `value + step`, wrapping.
pub fn advance(value: u64, step: u64) -> u64 {
    value.wrapping_add(step)
}

/// Nothing: no assembler follows.
pub const fn keep_loop() {}

/// The upper 32 bits.
pub fn high_half(value: u64) -> u32 {
    (value >> 32) as u32
}

/// `count - 1`, wrapping.
pub fn count_down(count: u32) -> u32 {
    count.wrapping_sub(1)
}

/// Bytes of dynamic shared memory that the launch asked for.
pub fn dynamic_shared_bytes() -> u32 {
    with_lane(|lane| lane.map_or(0, |lane| lane.shared_bytes))
}

/// An address in the block's shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Shared(NonNull<u8>);

impl Shared {
    /// `bytes` bytes further on.
    #[must_use]
    pub const fn byte_add(self, bytes: u32) -> Self {
        // Wrapping: the sum is only used where the launch has asked for that much.
        Self(
            NonNull::new(self.0.as_ptr().wrapping_add(bytes as usize))
                .expect("not the end of the address space"),
        )
    }

    /// As a pointer of the host's.
    #[must_use]
    pub const fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }
}

/// The block's dynamic shared memory, 128-byte aligned; dangling where there is none.
pub fn dynamic_shared() -> Shared {
    Shared(with_lane(|lane| lane.map_or(NonNull::dangling(), |lane| lane.shared)))
}

/// Waits for every thread of the block. Called by the block.
pub fn block_sync() {
    block_sync_or(false);
}

/// As [`block_sync`], and true in every thread where `flag` was true in any. Called by the block.
pub fn block_sync_or(flag: bool) -> bool {
    match runtime() {
        // SAFETY: the runtime outlives the lane's turn, and this is its turn.
        Some(runtime) => unsafe { runtime.as_ref() }.block_sync(flag),
        None => flag,
    }
}

/// Gathers a value of every lane of the warp.
fn warp_exchange(value: u64, read: &mut dyn FnMut(&[u64])) {
    match runtime() {
        // SAFETY: as above.
        Some(runtime) => unsafe { runtime.as_ref() }.warp_exchange(value, read),
        None => read(&[value]),
    }
}

/// Waits for every lane of the warp. Called by the warp.
pub fn warp_sync() {
    warp_exchange(0, &mut |_| ());
}

/// True in every lane where `flag` was true in any. Called by the warp.
pub fn warp_any(flag: bool) -> bool {
    let mut any = false;
    warp_exchange(u64::from(flag), &mut |flags| any = flags.iter().any(|&flag| flag != 0));
    any
}

/// The value that lane `lane` gave; the last lane's where there are not so many. Called by the warp.
pub fn warp_shuffle(value: u32, lane: u32) -> u32 {
    let mut result = 0;
    warp_exchange(u64::from(value), &mut |values| {
        let lane = (lane % WARP_SIZE) as usize;
        result = values[lane.min(values.len() - 1)] as u32;
    });
    result
}

/// Lanes of a warp that have come to one place together. Here each comes alone.
#[derive(Clone, Copy, Debug)]
pub struct Lanes(());

/// The lanes that are here with the calling one. Called by a thread.
pub const fn lanes_here() -> Lanes {
    Lanes(())
}

/// True in each of `lanes` where `flag` was true in any. Called by all of them.
pub const fn any_of(_lanes: Lanes, flag: bool) -> bool {
    flag
}

/// Lets others run: a GPU's sleep is shorter than any of the operating system's.
pub fn sleep_ns(_duration: u32) {
    pause();
}

/// Lets others run between two looks at a word.
pub fn pause() {
    match runtime() {
        // SAFETY: the runtime outlives the lane's turn, and this is its turn.
        Some(runtime) => unsafe { runtime.as_ref() }.pause(),
        None => thread::yield_now(),
    }
}

/// Orders the calling thread's accesses before it with those after it.
pub fn fence<O: FenceOrder, S: Scope>() {
    atomic::fence(match O::KIND {
        FenceKind::AcqRel => Ordering::AcqRel,
        FenceKind::SeqCst => Ordering::SeqCst,
    });
}

/// Adds and returns the value before; then a fence. Called by a thread.
///
/// # Safety
///
/// `at` is aligned, mapped and live.
#[inline]
pub unsafe fn atom_add_fence_u64<O: RmwOrder, S: Scope, F: FenceOrder, FS: Scope>(
    at: Global<u64>,
    value: u64,
) -> u64 {
    // SAFETY: the caller's contract.
    let before = unsafe { atom_add_u64::<O, S>(at, value) };
    fence::<F, FS>();
    before
}

fn load_ordering<O: LoadOrder>() -> Ordering {
    match O::KIND {
        LoadKind::Relaxed => Ordering::Relaxed,
        LoadKind::Acquire => Ordering::Acquire,
    }
}

fn store_ordering<O: StoreOrder>() -> Ordering {
    match O::KIND {
        StoreKind::Relaxed => Ordering::Relaxed,
        StoreKind::Release => Ordering::Release,
    }
}

fn rmw_ordering<O: RmwOrder>() -> Ordering {
    match O::KIND {
        RmwKind::Relaxed => Ordering::Relaxed,
        RmwKind::Acquire => Ordering::Acquire,
        RmwKind::Release => Ordering::Release,
        RmwKind::AcqRel => Ordering::AcqRel,
    }
}

macro_rules! words {
    ($t:ty, $Atomic:ty: $load:ident, $store:ident, $red_add:ident, $atom_add:ident, $atom_exch:ident, $atom_cas:ident,
     $load_weak:ident, $store_weak:ident) => {
        /// An ordered load. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live.
        #[inline]
        pub unsafe fn $load<O: LoadOrder, S: Scope>(at: Global<$t>) -> $t {
            // SAFETY: the caller's contract.
            unsafe { <$Atomic>::from_ptr(at.as_ptr()) }.load(load_ordering::<O>())
        }

        /// An ordered store. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live.
        #[inline]
        pub unsafe fn $store<O: StoreOrder, S: Scope>(at: Global<$t>, value: $t) {
            // SAFETY: the caller's contract.
            unsafe { <$Atomic>::from_ptr(at.as_ptr()) }.store(value, store_ordering::<O>());
        }

        /// Adds and returns nothing. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live.
        #[inline]
        pub unsafe fn $red_add<O: StoreOrder, S: Scope>(at: Global<$t>, value: $t) {
            // SAFETY: the caller's contract.
            unsafe { <$Atomic>::from_ptr(at.as_ptr()) }.fetch_add(value, store_ordering::<O>());
        }

        /// Adds and returns the value before. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live.
        #[inline]
        pub unsafe fn $atom_add<O: RmwOrder, S: Scope>(at: Global<$t>, value: $t) -> $t {
            // SAFETY: the caller's contract.
            unsafe { <$Atomic>::from_ptr(at.as_ptr()) }.fetch_add(value, rmw_ordering::<O>())
        }

        /// Stores and returns the value before. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live.
        #[inline]
        pub unsafe fn $atom_exch<O: RmwOrder, S: Scope>(at: Global<$t>, value: $t) -> $t {
            // SAFETY: the caller's contract.
            unsafe { <$Atomic>::from_ptr(at.as_ptr()) }.swap(value, rmw_ordering::<O>())
        }

        /// Stores `value` where `compare` stood; returns the value before. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live.
        #[inline]
        pub unsafe fn $atom_cas<O: RmwOrder, S: Scope>(at: Global<$t>, compare: $t, value: $t) -> $t {
            let failure = match O::KIND {
                RmwKind::Relaxed | RmwKind::Release => Ordering::Relaxed,
                RmwKind::Acquire | RmwKind::AcqRel => Ordering::Acquire,
            };
            // SAFETY: the caller's contract.
            let word = unsafe { <$Atomic>::from_ptr(at.as_ptr()) };
            match word.compare_exchange(compare, value, rmw_ordering::<O>(), failure) {
                Ok(old) | Err(old) => old,
            }
        }

        /// A plain load: for data that no other thread writes meanwhile. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live, and its writers are ordered before this access.
        #[inline]
        pub unsafe fn $load_weak(at: Global<$t>) -> $t {
            // SAFETY: the caller's contract.
            unsafe { at.as_ptr().read() }
        }

        /// A plain store: published by the release that follows it. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live, and nobody else touches it before that release.
        #[inline]
        pub unsafe fn $store_weak(at: Global<$t>, value: $t) {
            // SAFETY: the caller's contract.
            unsafe { at.as_ptr().write(value) };
        }
    };
}

words!(u32, AtomicU32: load_u32, store_u32, red_add_u32, atom_add_u32, atom_exch_u32, atom_cas_u32,
       load_weak_u32, store_weak_u32);
words!(u64, AtomicU64: load_u64, store_u64, red_add_u64, atom_add_u64, atom_exch_u64, atom_cas_u64,
       load_weak_u64, store_weak_u64);

macro_rules! plain {
    ($t:ty: $load:ident, $store:ident) => {
        /// A plain load. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live, and its writers are ordered before this access.
        #[inline]
        pub unsafe fn $load(at: Global<$t>) -> $t {
            // A GPU faults on a misaligned vector access; x86 would not, and a test would miss it.
            debug_assert!(at.address().is_multiple_of(size_of::<$t>() as u64), "misaligned {at:?}");
            // SAFETY: the caller's contract.
            unsafe { at.as_ptr().read() }
        }

        /// A plain store. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live, and nobody else touches it before the release that publishes it.
        #[inline]
        pub unsafe fn $store(at: Global<$t>, value: $t) {
            debug_assert!(at.address().is_multiple_of(size_of::<$t>() as u64), "misaligned {at:?}");
            // SAFETY: the caller's contract.
            unsafe { at.as_ptr().write(value) };
        }
    };
}

plain!(u8: load_weak_u8, store_weak_u8);
plain!(u16: load_weak_u16, store_weak_u16);
plain!(u32: load_streaming_u32, store_streaming_u32);
plain!([u32; 2]: load_weak_v2_u32, store_weak_v2_u32);
plain!([u32; 2]: load_streaming_v2_u32, store_streaming_v2_u32);
plain!([u32; 4]: load_weak_v4_u32, store_weak_v4_u32);
plain!([u32; 4]: load_streaming_v4_u32, store_streaming_v4_u32);
plain!([u64; 2]: load_weak_v2_u64, store_weak_v2_u64);

/// Reads two words, each of this order; each is whole, the pair need not be. Called by a thread.
///
/// # Safety
///
/// `at` is aligned to 16 bytes, mapped and live.
#[inline]
pub unsafe fn load_v2_u64<O: LoadOrder, S: Scope>(at: Global<[u64; 2]>) -> [u64; 2] {
    debug_assert!(at.address().is_multiple_of(16), "misaligned {at:?}");
    // The high word first, as it is stored first: either word may be seen without the other, and a reader that took the pair
    // for one access would be caught.
    // SAFETY: the caller's contract.
    let high = unsafe { load_u64::<O, S>(at.cast::<u64>().add(1)) };
    // SAFETY: the caller's contract.
    let low = unsafe { load_u64::<O, S>(at.cast::<u64>()) };
    [low, high]
}

/// Writes two words, each of this order; each arrives whole, in no stated order of the two. Called by a thread.
///
/// # Safety
///
/// `at` is aligned to 16 bytes, mapped and live.
#[inline]
pub unsafe fn store_v2_u64<O: StoreOrder, S: Scope>(at: Global<[u64; 2]>, value: [u64; 2]) {
    debug_assert!(at.address().is_multiple_of(16), "misaligned {at:?}");
    // SAFETY: the caller's contract.
    unsafe { store_u64::<O, S>(at.cast::<u64>().add(1), value[1]) };
    // SAFETY: the caller's contract.
    unsafe { store_u64::<O, S>(at.cast::<u64>(), value[0]) };
}

/// Reads a word that a peer writes meanwhile. Called by a thread.
///
/// # Safety
///
/// `at` is aligned, mapped and live.
#[inline]
pub unsafe fn load_volatile_u64(at: Global<u64>) -> u64 {
    // SAFETY: the caller's contract.
    unsafe { AtomicU64::from_ptr(at.as_ptr()) }.load(Ordering::Relaxed)
}

/// Writes a word that a peer reads meanwhile. Called by a thread.
///
/// # Safety
///
/// `at` is aligned, mapped and live.
#[inline]
pub unsafe fn store_volatile_u64(at: Global<u64>, value: u64) {
    // SAFETY: the caller's contract.
    unsafe { AtomicU64::from_ptr(at.as_ptr()) }.store(value, Ordering::Relaxed);
}

/// Reads two words; each is whole, the pair need not be. Called by a thread.
///
/// # Safety
///
/// `at` is aligned to 16 bytes, mapped and live.
#[inline]
pub unsafe fn load_volatile_v2_u64(at: Global<[u64; 2]>) -> [u64; 2] {
    debug_assert!(at.address().is_multiple_of(16), "misaligned {at:?}");
    // The high word first: a reader that took the pair for one access would be caught by the order of the stores below.
    // SAFETY: the caller's contract.
    let high = unsafe { load_volatile_u64(at.cast::<u64>().add(1)) };
    // SAFETY: the caller's contract.
    let low = unsafe { load_volatile_u64(at.cast::<u64>()) };
    [low, high]
}

/// Writes two words; each arrives whole, in no stated order. Called by a thread.
///
/// # Safety
///
/// `at` is aligned to 16 bytes, mapped and live.
#[inline]
pub unsafe fn store_volatile_v2_u64(at: Global<[u64; 2]>, value: [u64; 2]) {
    debug_assert!(at.address().is_multiple_of(16), "misaligned {at:?}");
    // SAFETY: the caller's contract.
    unsafe { store_volatile_u64(at.cast::<u64>(), value[0]) };
    // SAFETY: the caller's contract.
    unsafe { store_volatile_u64(at.cast::<u64>().add(1), value[1]) };
}

macro_rules! conditional {
    ($($name:ident = $load:ident: $t:ty;)*) => { $(
        /// The load of the same name where `condition`, else `otherwise`. Called by a thread.
        ///
        /// # Safety
        ///
        /// Where `condition`, as for that load.
        #[inline]
        pub unsafe fn $name(condition: bool, at: Global<$t>, otherwise: $t) -> $t {
            // SAFETY: the caller's contract.
            if condition { unsafe { $load(at) } } else { otherwise }
        }
    )* };
}

conditional! {
    load_volatile_u64_if = load_volatile_u64: u64;
    load_volatile_v2_u64_if = load_volatile_v2_u64: [u64; 2];
}

// Bulk copies: done at once, so every barrier's phase has ended when it is asked for.

/// Makes the 8 bytes at `at` a barrier. Called by one thread.
///
/// # Safety
///
/// 8 aligned bytes of the block's shared memory, used for nothing else.
pub unsafe fn mbarrier_init(at: Shared) {
    debug_assert!((at.as_ptr() as usize).is_multiple_of(8), "misaligned {at:?}");
}

/// Announces `bytes` bytes that copies will bring. Called by one thread.
///
/// # Safety
///
/// A barrier lies there.
pub unsafe fn mbarrier_arrive_expect_tx(_at: Shared, _bytes: u32) {}

/// Whether the phase of this parity has ended. Called by a thread.
///
/// # Safety
///
/// A barrier lies there.
pub unsafe fn mbarrier_try_wait_parity(_at: Shared, _parity: u32) -> bool {
    true
}

/// Copies `bytes` bytes to shared memory. Called by one thread.
///
/// # Safety
///
/// Both addresses and `bytes` are multiples of 16; the source is mapped and live, its writers ordered before; nobody touches
/// the destination until the barrier's phase has ended.
pub unsafe fn bulk_load(dst: Shared, src: Global<u8>, bytes: u32, _mbarrier: Shared) {
    debug_assert!((dst.as_ptr() as u64 | src.address() | u64::from(bytes)).is_multiple_of(16), "misaligned");
    // SAFETY: the caller's contract; shared and global memory never overlap.
    unsafe { src.as_ptr().copy_to_nonoverlapping(dst.as_ptr(), bytes as usize) };
}

/// Copies `bytes` bytes from shared memory. Called by one thread.
///
/// # Safety
///
/// Both addresses and `bytes` are multiples of 16; the destination is mapped and live; nobody writes the source until
/// [`bulk_wait_read`] says that it has been read.
pub unsafe fn bulk_store(dst: Global<u8>, src: Shared, bytes: u32) {
    debug_assert!((src.as_ptr() as u64 | dst.address() | u64::from(bytes)).is_multiple_of(16), "misaligned");
    // SAFETY: as above.
    unsafe { src.as_ptr().copy_to_nonoverlapping(dst.as_ptr(), bytes as usize) };
}

/// Waits until at most `N` of the calling thread's latest stores have still to read their source. Called by a thread.
pub fn bulk_wait_read<const N: u32>() {}

/// Waits until all of the calling thread's stores are written. Called by a thread.
pub fn bulk_wait_all() {}

/// A `T` of the running kernel's argument block.
///
/// # Safety
///
/// `address` lies in that block, and a `T` lies there, aligned.
pub(crate) unsafe fn load_param<T: Copy>(address: u64) -> T {
    // SAFETY: the caller's contract.
    unsafe { (address as *const T).read() }
}
