//! Addresses in global memory.

use core::fmt;
use core::marker::PhantomData;

use super::{Ll8, Ll16};

/// A plain value that any bit pattern may stand for, so that peers may write it as bytes.
///
/// # Safety
///
/// The type has no padding, no invalid bit pattern, no interior mutability and no pointer into one process' memory.
pub unsafe trait Pod: Copy + Send + Sync + 'static {}

macro_rules! pod {
    ($($t:ty),*) => { $(
        // SAFETY: a primitive number: no padding, every bit pattern valid.
        unsafe impl Pod for $t {}
    )* };
}
pod!(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, f32, f64);

// SAFETY: two or four `u32` side by side (asserted in `layout`): no padding, every bit pattern valid.
unsafe impl Pod for Ll8 {}
// SAFETY: as above.
unsafe impl Pod for Ll16 {}

// SAFETY: an array of padding-free elements has no padding, and every bit pattern is valid element by element.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}

/// The address of a `T` in a device's *global* memory: its own, a peer's that is mapped, or the host's that is mapped.
///
/// It is an address and nothing more: it neither owns nor borrows, and may stand for memory that only another process
/// or device can reach. It cannot be made from a reference, so a protocol word can never lie on a thread's stack or in
/// shared memory, where the `.global` instructions that touch it would be undefined.
#[repr(transparent)]
pub struct Global<T> {
    address: u64,
    target: PhantomData<*mut T>,
}

// SAFETY: a number; what may be done through it is each access' own contract.
unsafe impl<T> Send for Global<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Global<T> {}

impl<T> Global<T> {
    /// The address that points nowhere.
    pub const NULL: Self = Self { address: 0, target: PhantomData };

    /// Takes `address` for that of a `T`. Reading or writing through it is where the obligations lie.
    ///
    /// # Safety
    ///
    /// `address` is 0 or lies in global memory (of this device, a mapped peer's, or mapped host memory), not in shared,
    /// local or constant memory nor on a stack, and is aligned for `T`.
    pub const unsafe fn from_address(address: u64) -> Self {
        Self { address, target: PhantomData }
    }

    /// The address as a number.
    #[inline(always)]
    pub const fn address(self) -> u64 {
        self.address
    }

    /// Whether this is [`Global::NULL`].
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.address == 0
    }

    /// The address as a pointer of the code that runs now.
    #[inline(always)]
    pub const fn as_ptr(self) -> *mut T {
        self.address as *mut T
    }

    /// The same address, taken for a `U`'s.
    #[inline(always)]
    pub const fn cast<U>(self) -> Global<U> {
        Global { address: self.address, target: PhantomData }
    }

    /// `count` elements further on. Wraps at 2^64; 64-bit throughout, so offsets past 4 GiB are right.
    #[inline(always)]
    #[must_use]
    pub const fn add(self, count: u64) -> Self {
        self.byte_add(count.wrapping_mul(size_of::<T>() as u64))
    }

    /// `bytes` further on. Wraps at 2^64.
    #[inline(always)]
    #[must_use]
    pub const fn byte_add(self, bytes: u64) -> Self {
        Self { address: self.address.wrapping_add(bytes), target: PhantomData }
    }
}

impl<T> Clone for Global<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Global<T> {}

impl<T> PartialEq for Global<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for Global<T> {}

impl<T> Default for Global<T> {
    fn default() -> Self {
        Self::NULL
    }
}

impl<T> fmt::Debug for Global<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Global({:#x})", self.address)
    }
}
