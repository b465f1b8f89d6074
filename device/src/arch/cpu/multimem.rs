//! Multicast accesses, done one member after the other.
//!
//! A multicast address stands for no memory: [`map_multicast`] says which members' memory lies behind it, and the accesses
//! look that up. An address that a member has bound nothing to is a panic here, where a GPU faults.

use core::convert::identity;
use core::ops::Add;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use std::vec::Vec;

use super::ordering::{load_ordering, store_ordering};
use crate::abi::Global;
use crate::arch::{LoadOrder, Relaxed, Scope, StoreOrder, Sys};

/// A piece of a member's memory in a multicast range.
#[derive(Clone, Copy, Debug)]
pub struct MulticastSegment {
    /// Where in the range.
    pub offset: u64,
    /// How much.
    pub bytes: u64,
    /// Where the memory is mapped.
    pub address: u64,
}

/// A mapped range: its length, and each member's segments.
type Range = (u64, Vec<Vec<MulticastSegment>>);

static RANGES: RwLock<BTreeMap<u64, Range>> = RwLock::new(BTreeMap::new());

/// Makes `bytes` addresses from `base` on stand for the members' memory, until [`unmap_multicast`].
///
/// # Safety
///
/// Nothing else lies at these addresses, and every segment's memory is mapped, live and aligned to 16 bytes until then.
pub unsafe fn map_multicast(base: u64, bytes: u64, members: Vec<Vec<MulticastSegment>>) {
    RANGES.write().unwrap_or_else(PoisonError::into_inner).insert(base, (bytes, members));
}

/// Takes that back. No access is under way.
pub fn unmap_multicast(base: u64) {
    RANGES.write().unwrap_or_else(PoisonError::into_inner).remove(&base);
}

/// The address of each member's word behind `at`.
fn each_member(at: u64, mut access: impl FnMut(u64)) {
    debug_assert!(at.is_multiple_of(4), "misaligned multicast address {at:#x}");
    let ranges = RANGES.read().unwrap_or_else(PoisonError::into_inner);
    let found = ranges.range(..=at).next_back().filter(|(base, (bytes, _))| at - **base < *bytes);
    let Some((base, (_, members))) = found else { panic!("{at:#x} is no multicast address") };
    let offset = at - base;
    for (number, segments) in members.iter().enumerate() {
        let segment = segments.iter().find(|segment| offset.wrapping_sub(segment.offset) < segment.bytes);
        let Some(segment) = segment else {
            panic!("member {number} has bound nothing to the multicast address {at:#x} (offset {offset:#x})")
        };
        access(segment.address + (offset - segment.offset));
    }
}

/// # Safety
///
/// An address that [`each_member`] gives, used before it returns: `map_multicast`'s caller keeps the memory mapped, and it
/// is aligned as the multicast address is.
unsafe fn word<'a>(address: u64) -> &'a AtomicU32 {
    // SAFETY: the caller's contract; members' memory is accessed by several devices at once through atomics alone.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

macro_rules! multimem {
    ($t:ty: $ld_reduce_add:ident, $st:ident, $red_add:ident; $to_bits:path, $of_bits:path, $add:path) => {
        /// The sum of all members' words. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is an aligned address of a mapped multicast range, to which every member has bound memory.
        pub unsafe fn $ld_reduce_add<O: LoadOrder, S: Scope>(at: Global<$t>) -> $t {
            let mut sum: Option<$t> = None;
            each_member(at.address(), |address| {
                // SAFETY: `each_member` gives it, here and below.
                let value = $of_bits(unsafe { word(address) }.load(load_ordering::<O>()));
                sum = Some(sum.map_or(value, |sum| $add(sum, value)));
            });
            sum.unwrap_or_default()
        }

        /// Writes every member's word. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is an aligned address of a mapped multicast range, to which every member has bound memory.
        pub unsafe fn $st<O: StoreOrder, S: Scope>(at: Global<$t>, value: $t) {
            each_member(at.address(), |address| {
                // SAFETY: as above.
                unsafe { word(address) }.store($to_bits(value), store_ordering::<O>());
            });
        }

        /// Adds to every member's word, and returns nothing. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is an aligned address of a mapped multicast range, to which every member has bound memory.
        pub unsafe fn $red_add<O: StoreOrder, S: Scope>(at: Global<$t>, value: $t) {
            each_member(at.address(), |address| {
                let added = |bits| Some($to_bits($add($of_bits(bits), value)));
                // SAFETY: as above.
                let word = unsafe { word(address) };
                // The closure always gives a value, so the update is always made.
                let _ = word.fetch_update(store_ordering::<O>(), Ordering::Relaxed, added);
            });
        }
    };
}

multimem!(u32: multimem_ld_reduce_add_u32, multimem_st_u32, multimem_red_add_u32;
          identity, identity, u32::wrapping_add);
multimem!(f32: multimem_ld_reduce_add_f32, multimem_st_f32, multimem_red_add_f32;
          f32::to_bits, f32::from_bits, Add::add);

/// The sums of all members' words, four at once. Called by a thread.
///
/// # Safety
///
/// `at` is a multicast address aligned to 16 bytes, to which every member has bound memory, whose writers are ordered
/// before.
pub unsafe fn multimem_ld_reduce_add_v4_f32(at: Global<[f32; 4]>) -> [f32; 4] {
    debug_assert!(at.address().is_multiple_of(16), "misaligned {at:?}");
    core::array::from_fn(|i| {
        // SAFETY: the caller's contract.
        unsafe { multimem_ld_reduce_add_f32::<Relaxed, Sys>(at.cast::<f32>().add(i as u64)) }
    })
}

/// Writes every member's words, four at once. Called by a thread.
///
/// # Safety
///
/// `at` is a multicast address aligned to 16 bytes, to which every member has bound memory, which nobody else touches before
/// the release that publishes it.
pub unsafe fn multimem_st_v4_f32(at: Global<[f32; 4]>, value: [f32; 4]) {
    debug_assert!(at.address().is_multiple_of(16), "misaligned {at:?}");
    for (i, value) in value.into_iter().enumerate() {
        // SAFETY: the caller's contract.
        unsafe { multimem_st_f32::<Relaxed, Sys>(at.cast::<f32>().add(i as u64), value) };
    }
}
