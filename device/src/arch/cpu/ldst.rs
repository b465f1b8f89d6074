//! Loads, stores and atomics of global memory.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::ordering::{load_ordering, rmw_ordering, store_ordering};
use crate::abi::Global;
use crate::arch::{LoadOrder, RmwKind, RmwOrder, Scope, StoreOrder};

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
