//! The argument block.

/// A `T` of the running kernel's argument block.
///
/// # Safety
///
/// `address` lies in that block, and a `T` lies there, aligned.
pub(crate) unsafe fn load_param<T: Copy>(address: u64) -> T {
    // SAFETY: the caller's contract.
    unsafe { (address as *const T).read() }
}
