//! Bulk copies: done at once, so every barrier's phase has ended when it is asked for.

use super::Shared;
use crate::abi::Global;

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
