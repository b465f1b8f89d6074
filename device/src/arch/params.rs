//! A kernel's argument block.

use core::ops::Deref;

use crate::abi::RankTable;

/// The argument block of a running kernel: its fields by [`Deref`], its tables by [`rank_entry!`](crate::rank_entry!).
#[derive(Clone, Copy, Debug)]
pub struct Params<A> {
    value: A,
    /// On a GPU, the block's address in the parameter space (`.param`); elsewhere an ordinary address.
    address: u64,
}

impl<A> Deref for Params<A> {
    type Target = A;

    #[inline(always)]
    fn deref(&self) -> &A {
        &self.value
    }
}

impl<A: Copy> Params<A> {
    /// Takes the block at `args`.
    ///
    /// # Safety
    ///
    /// `args` points at an `A` that stays where it is while the kernel runs.
    #[cfg(not(target_arch = "nvptx64"))]
    pub unsafe fn new(args: *const A) -> Self {
        // SAFETY: the caller's contract.
        Self { value: unsafe { args.read() }, address: args as u64 }
    }

    /// Takes the block whose by-value copy is `value` and whose address in the parameter space is `address`.
    ///
    /// # Safety
    ///
    /// `address` is that of this kernel's own parameter of type `A`.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub unsafe fn new(value: A, address: u64) -> Self {
        Self { value, address }
    }

    /// Entry `index` of the table that `field` names and that lies at `offset`. Any thread may call it; `index` may differ
    /// from thread to thread. Compiled for a GPU, one `ld.param` (an indexed read of the constant bank) for each 8 bytes:
    /// no copy of the table, no local memory. Call it through [`rank_entry!`](crate::rank_entry!).
    ///
    /// # Safety
    ///
    /// `offset` is that of the field, `index` is below the table's length, and `T` is a whole number of 8-byte words
    /// without padding.
    #[inline(always)]
    pub unsafe fn rank_entry<T: Copy>(
        &self,
        _field: fn(&A) -> &RankTable<T>,
        offset: usize,
        index: u32,
    ) -> T {
        const { assert!(size_of::<T>().is_multiple_of(8), "a table's entries are whole 8-byte words") };
        let address = self.address + offset as u64 + u64::from(index) * size_of::<T>() as u64;
        // SAFETY: the caller's contract: `size_of::<T>()` bytes of the block lie there.
        unsafe { super::load_param(address) }
    }
}

/// Entry `index` of a [`RankTable`] field of the argument block: `rank_entry!(args, Args, peers, i)`, an unsafe call:
/// `index` has to be below [`MAX_RANKS`](crate::abi::MAX_RANKS).
#[macro_export]
macro_rules! rank_entry {
    ($args:expr, $Args:ty, $field:ident, $index:expr) => {
        // The type of the entry comes from the field, so that the two cannot drift apart.
        $args.rank_entry(|args: &$Args| &args.$field, core::mem::offset_of!($Args, $field), $index)
    };
}
