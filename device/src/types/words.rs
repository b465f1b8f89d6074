//! The 32-bit words that vectors are made of.

use core::fmt::Debug;

use crate::abi::Global;
use crate::arch;

mod sealed {
    pub trait Sealed {}
    impl<const W: usize> Sealed for [u32; W] {}
}

/// Words in registers. A word is read and written by a number that is constant once loops are unrolled, so that none of them
/// needs memory; beyond the end, words read as 0 and are not written.
pub trait Words: sealed::Sealed + Copy + Debug + PartialEq + Send + Sync {
    /// How many there are.
    const LEN: usize;
    /// All of them 0.
    const ZERO: Self;

    /// Word `k`.
    #[must_use]
    fn get(&self, k: usize) -> u32;

    /// Makes `value` word `k`.
    fn set(&mut self, k: usize, value: u32);

    /// `f` of each word and the other's.
    #[inline(always)]
    #[must_use]
    fn zip(self, other: Self, f: impl Fn(u32, u32) -> u32) -> Self {
        let mut result = Self::ZERO;
        // Spelled out: a loop whose body is long is not unrolled, and its array then lies in memory.
        macro_rules! words {
            ($($k:literal)*) => { $(
                if $k < Self::LEN {
                    result.set($k, f(self.get($k), other.get($k)));
                }
            )* };
        }
        words!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        result
    }

    /// The words `LEN * part` and on of a longer array.
    #[inline(always)]
    #[must_use]
    fn part_of(whole: impl Words, part: usize) -> Self {
        let mut result = Self::ZERO;
        for k in 0..Self::LEN {
            result.set(k, whole.get(part * Self::LEN + k));
        }
        result
    }

    /// Puts these words where [`Words::part_of`] would find them.
    #[inline(always)]
    fn put_into(self, whole: &mut impl Words, part: usize) {
        for k in 0..Self::LEN {
            whole.set(part * Self::LEN + k, self.get(k));
        }
    }
}

impl<const W: usize> Words for [u32; W] {
    const LEN: usize = W;
    const ZERO: Self = [0; W];

    #[inline(always)]
    fn get(&self, k: usize) -> u32 {
        if k < W { self[k] } else { 0 }
    }

    #[inline(always)]
    fn set(&mut self, k: usize, value: u32) {
        if k < W {
            self[k] = value;
        }
    }
}

macro_rules! accesses {
    ($load:ident, $store:ident: $load_u32:ident, $store_u32:ident, $load_v2:ident, $store_v2:ident, $load_v4:ident,
     $store_v4:ident) => {
        /// Loads `bytes` bytes, a power of two up to 64: one access, or one for each 16 bytes.
        ///
        /// # Safety
        ///
        /// `at` is aligned to `bytes`, or to 16 where that is less; mapped and live; its writers are ordered before.
        #[inline(always)]
        pub(super) unsafe fn $load<W: Words>(at: Global<u8>, bytes: usize) -> W {
            // SAFETY: the caller's contract.
            unsafe {
                match bytes {
                    1 => W::part_of([u32::from(arch::load_weak_u8(at))], 0),
                    2 => W::part_of([u32::from(arch::load_weak_u16(at.cast()))], 0),
                    4 => W::part_of([arch::$load_u32(at.cast())], 0),
                    8 => W::part_of(arch::$load_v2(at.cast()), 0),
                    _ => {
                        let mut words = W::ZERO;
                        for k in 0..W::LEN / 4 {
                            arch::$load_v4(at.cast::<[u32; 4]>().add(k as u64)).put_into(&mut words, k);
                        }
                        words
                    }
                }
            }
        }

        /// Stores `bytes` bytes, as the load of the same name.
        ///
        /// # Safety
        ///
        /// `at` is aligned to `bytes`, or to 16 where that is less; mapped and live; nobody else touches it before the
        /// release that publishes it.
        #[inline(always)]
        pub(super) unsafe fn $store<W: Words>(at: Global<u8>, bytes: usize, words: W) {
            // SAFETY: the caller's contract.
            unsafe {
                match bytes {
                    1 => arch::store_weak_u8(at, words.get(0) as u8),
                    2 => arch::store_weak_u16(at.cast(), words.get(0) as u16),
                    4 => arch::$store_u32(at.cast(), words.get(0)),
                    8 => arch::$store_v2(at.cast(), Words::part_of(words, 0)),
                    _ => {
                        for k in 0..W::LEN / 4 {
                            arch::$store_v4(at.cast::<[u32; 4]>().add(k as u64), Words::part_of(words, k));
                        }
                    }
                }
            }
        }
    };
}

accesses!(load, store: load_weak_u32, store_weak_u32, load_weak_v2_u32, store_weak_v2_u32, load_weak_v4_u32,
          store_weak_v4_u32);
// A byte or two at a time nothing streams.
accesses!(load_streaming, store_streaming: load_streaming_u32, store_streaming_u32, load_streaming_v2_u32,
          store_streaming_v2_u32, load_streaming_v4_u32, store_streaming_v4_u32);
