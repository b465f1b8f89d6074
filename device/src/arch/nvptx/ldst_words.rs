//! Weak loads and stores of 32-bit words: what vectors of elements are made of. In words of 64 bits each pair would have to
//! be joined before a store.
//!
//! ```text
//! ld{.weak}{.level::eviction_priority}.global.vec.b32   {d, ...}, [a];     .vec: v2, v4     st likewise
//! ```
//!
//! Source: "Data Movement and Conversion Instructions: ld" and ": st", PTX ISA 8.7.

use core::arch::asm;

use crate::abi::Global;

macro_rules! vector {
    ($N:literal words as $vec:literal, $level:literal: $load:ident, $store:ident, $operands:literal, $at:literal, [$($k:literal),*]) => {
        #[doc = concat!("A weak `ld.global", $level, ".", $vec, ".b32`. Called by a thread.")]
        ///
        /// # Safety
        ///
        /// `at` is aligned to the vector's size, mapped and live, and its writers are ordered before this access.
        #[inline(always)]
        pub unsafe fn $load(at: Global<[u32; $N]>) -> [u32; $N] {
            let mut words = [0; $N];
            // SAFETY: the caller's contract.
            unsafe {
                asm!(concat!("ld.global", $level, ".", $vec, ".b32 {{", $operands, "}}, [", $at, "];"),
                     $(out(reg32) words[$k],)* in(reg64) at.address(), options(nostack))
            };
            words
        }

        #[doc = concat!("A weak `st.global", $level, ".", $vec, ".b32`. Called by a thread.")]
        ///
        /// # Safety
        ///
        /// `at` is aligned to the vector's size, mapped and live, and nobody else touches it before the release that
        /// publishes it.
        #[inline(always)]
        pub unsafe fn $store(at: Global<[u32; $N]>, words: [u32; $N]) {
            // SAFETY: the caller's contract.
            unsafe {
                asm!(concat!("st.global", $level, ".", $vec, ".b32 [", $at, "], {{", $operands, "}};"),
                     $(in(reg32) words[$k],)* in(reg64) at.address(), options(nostack))
            };
        }
    };
}

vector!(2 words as "v2", "": load_weak_v2_u32, store_weak_v2_u32, "{0}, {1}", "{2}", [0, 1]);
vector!(4 words as "v4", "": load_weak_v4_u32, store_weak_v4_u32, "{0}, {1}, {2}, {3}", "{4}", [0, 1, 2, 3]);
// `.cs`, evict first: for data that streams through once.
vector!(2 words as "v2", ".cs": load_streaming_v2_u32, store_streaming_v2_u32, "{0}, {1}", "{2}", [0, 1]);
vector!(4 words as "v4", ".cs": load_streaming_v4_u32, store_streaming_v4_u32, "{0}, {1}, {2}, {3}", "{4}", [0, 1, 2, 3]);
