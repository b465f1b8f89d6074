//! The parameter space, and dynamic shared memory.
//!
//! Source: "State Spaces: Kernel Function Parameters" and "Shared State Space", PTX ISA 8.7: the address of a kernel
//! parameter may be taken with `mov` and read by `ld.param`.

use core::arch::{asm, global_asm};
use core::mem::MaybeUninit;

global_asm!(".extern .shared .align 128 .b8 __warpwire_dynamic_shared[];");

/// An address in the block's shared memory: of the shared window, 32 bits wide.
#[derive(Clone, Copy, Debug)]
pub struct Shared(pub(super) u32);

impl Shared {
    /// `bytes` bytes further on.
    #[inline(always)]
    #[must_use]
    pub const fn byte_add(self, bytes: u32) -> Self {
        Self(self.0 + bytes)
    }
}

/// The block's dynamic shared memory, 128-byte aligned.
#[inline(always)]
pub fn dynamic_shared() -> Shared {
    let address: u32;
    // SAFETY: takes the address of the symbol above.
    unsafe {
        asm!("mov.u32 {}, __warpwire_dynamic_shared;", out(reg32) address, options(pure, nomem, nostack))
    };
    Shared(address)
}

/// A `T` of the kernel's own parameter space.
///
/// # Safety
///
/// `address` lies in the running kernel's parameters, aligned to 8 bytes, and a `T` of whole 8-byte words lies there.
#[inline(always)]
pub(crate) unsafe fn load_param<T: Copy>(address: u64) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let words = value.as_mut_ptr().cast::<u64>();
    let mut i = 0;
    while i < size_of::<T>() / 8 {
        let word: u64;
        // SAFETY: the caller's contract. Parameters never change while the kernel runs, hence `pure, nomem`.
        unsafe {
            asm!("ld.param.b64 {}, [{}];", out(reg64) word, in(reg64) address + 8 * i as u64,
                 options(pure, nomem, nostack, preserves_flags))
        };
        // SAFETY: word `i` of `size_of::<T>() / 8`, inside `value`.
        unsafe { words.add(i).write_unaligned(word) };
        i += 1;
    }
    // SAFETY: every word of it was written, from a place that holds a `T`.
    unsafe { value.assume_init() }
}

/// Wraps a kernel's argument; used by `kernel!` alone.
#[doc(hidden)]
#[macro_export]
macro_rules! params {
    ($args:ident, $entry:literal) => {{
        let address: u64;
        // SAFETY: takes the address of this very entry's one parameter, which LLVM names after the entry.
        unsafe {
            core::arch::asm!(
                concat!("mov.b64 {}, ", $entry, "_param_0;"),
                out(reg64) address,
                options(pure, nomem, nostack, preserves_flags)
            );
            $crate::arch::Params::new($args, address)
        }
    }};
}
