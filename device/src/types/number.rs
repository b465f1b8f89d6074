//! What is done with each type, a packed word at a time.

use core::fmt::Debug;

use super::convert::{Float, decode4, encode4};
use super::vector::Lanes;
use crate::abi::{ElementType, Pod};
use crate::arch;
use crate::fp8::{E4m3, E4m3B15, E5m2, Range};
use crate::half::{Bf16, F16, HALF_NAN};

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// An element type: how its elements combine, as many at a time as a 32-bit word holds.
pub trait Number: Pod + Debug + Sealed {
    /// The type's name at run time.
    const TYPE: ElementType;
    /// A word of what changes no sum: -0 where the type has it, since +0 would change a -0.
    const SUM_IDENTITY: u32;
    /// A word of what changes no minimum.
    const MIN_IDENTITY: u32;
    /// A word of what changes no maximum.
    const MAX_IDENTITY: u32;

    /// The element's bits in the low end of a word.
    #[must_use]
    fn to_word(self) -> u32;
    /// The element in the low end of a word.
    #[must_use]
    fn from_word(word: u32) -> Self;
    /// The sums of the elements of two words.
    #[must_use]
    fn sum(a: u32, b: u32) -> u32;
    /// The minima.
    #[must_use]
    fn min(a: u32, b: u32) -> u32;
    /// The maxima.
    #[must_use]
    fn max(a: u32, b: u32) -> u32;
}

impl Sealed for f32 {}
impl Number for f32 {
    const TYPE: ElementType = ElementType::F32;
    const SUM_IDENTITY: u32 = 0x8000_0000;
    const MIN_IDENTITY: u32 = 0x7FFF_FFFF;
    const MAX_IDENTITY: u32 = 0x7FFF_FFFF;

    #[inline(always)]
    fn to_word(self) -> u32 {
        self.to_bits()
    }

    #[inline(always)]
    fn from_word(word: u32) -> Self {
        Self::from_bits(word)
    }

    #[inline(always)]
    fn sum(a: u32, b: u32) -> u32 {
        (Self::from_bits(a) + Self::from_bits(b)).to_bits()
    }

    #[inline(always)]
    fn min(a: u32, b: u32) -> u32 {
        arch::min_f32(a, b)
    }

    #[inline(always)]
    fn max(a: u32, b: u32) -> u32 {
        arch::max_f32(a, b)
    }
}

macro_rules! half {
    ($T:ty: $sum:ident, $min:ident, $max:ident, $TYPE:expr) => {
        impl Sealed for $T {}
        impl Number for $T {
            const TYPE: ElementType = $TYPE;
            const SUM_IDENTITY: u32 = 0x8000_8000;
            // A NaN gives way to any number.
            const MIN_IDENTITY: u32 = 0x7FFF_7FFF;
            const MAX_IDENTITY: u32 = 0x7FFF_7FFF;

            #[inline(always)]
            fn to_word(self) -> u32 {
                self.to_bits() as u32
            }

            #[inline(always)]
            fn from_word(word: u32) -> Self {
                Self::from_bits(word as u16)
            }

            #[inline(always)]
            fn sum(a: u32, b: u32) -> u32 {
                arch::$sum(a, b)
            }

            #[inline(always)]
            fn min(a: u32, b: u32) -> u32 {
                arch::$min(a, b)
            }

            #[inline(always)]
            fn max(a: u32, b: u32) -> u32 {
                arch::$max(a, b)
            }
        }
    };
}

half!(F16: add_f16x2, min_f16x2, max_f16x2, ElementType::F16);
half!(Bf16: add_bf16x2, min_bf16x2, max_bf16x2, ElementType::Bf16);
const _: () = assert!(HALF_NAN == 0x7FFF);

/// `f` of four fp8 elements and four others, computed in `f16`. A sum of two of them, rounded to `f16`'s 11 significant bits
/// and then to at most 4, is rounded as if once.
#[inline(always)]
fn in_f16<T: Float<Quad = [u32; 1]>>(a: u32, b: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
    let (a, b) = (decode4::<T>(a), decode4::<T>(b));
    encode4::<T>([f(a[0], b[0]), f(a[1], b[1])])
}

macro_rules! fp8 {
    ($T:ty $(, $R:ident)?: $TYPE:expr, sum $sum:expr, min $min:expr, max $max:expr) => {
        impl$(<$R: Range>)? Sealed for $T {}
        impl$(<$R: Range>)? Number for $T {
            const TYPE: ElementType = $TYPE;
            const SUM_IDENTITY: u32 = $sum * 0x0101_0101;
            const MIN_IDENTITY: u32 = $min * 0x0101_0101;
            const MAX_IDENTITY: u32 = $max * 0x0101_0101;

            #[inline(always)]
            fn to_word(self) -> u32 {
                self.to_bits() as u32
            }

            #[inline(always)]
            fn from_word(word: u32) -> Self {
                Self::from_bits(word as u8)
            }

            #[inline(always)]
            fn sum(a: u32, b: u32) -> u32 {
                in_f16::<Self>(a, b, arch::add_f16x2)
            }

            #[inline(always)]
            fn min(a: u32, b: u32) -> u32 {
                in_f16::<Self>(a, b, arch::min_f16x2)
            }

            #[inline(always)]
            fn max(a: u32, b: u32) -> u32 {
                in_f16::<Self>(a, b, arch::max_f16x2)
            }
        }
    };
}

fp8!(E4m3: ElementType::E4m3, sum 0x80, min 0x7F, max 0x7F);
fp8!(E5m2: ElementType::E5m2, sum 0x80, min 0x7F, max 0x7F);
// `Standard`: its NaN, and its only zero. `Extended` has no NaN: its largest value and its least.
fp8!(E4m3B15<R>, R: if R::HAS_NAN { ElementType::E4m3B15 } else { ElementType::E4m3B15Extended },
     sum if R::HAS_NAN { 0 } else { 0x80 }, min if R::HAS_NAN { 0x80 } else { 0x7F }, max if R::HAS_NAN { 0x80 } else { 0xFF });

/// Bit 7 of each byte.
const TOP_BITS: u32 = 0x8080_8080;

/// Whether each byte of `a` is at least that of `b`, as 0xFF or 0.
#[inline(always)]
fn bytes_at_least(a: u32, b: u32) -> u32 {
    // Bit 7 of each byte of `low`: the lower seven bits' comparison; no borrow leaves a byte.
    let low = (a | TOP_BITS).wrapping_sub(b & !TOP_BITS);
    // The top bits decide where they differ, the lower ones where not.
    let at_least = ((a & !b) | (!(a ^ b) & low)) & TOP_BITS;
    arch::permute_bytes::<0xBA98>(at_least, 0)
}

impl Sealed for u8 {}
impl Number for u8 {
    const TYPE: ElementType = ElementType::U8;
    const SUM_IDENTITY: u32 = 0;
    const MIN_IDENTITY: u32 = u32::MAX;
    const MAX_IDENTITY: u32 = 0;

    #[inline(always)]
    fn to_word(self) -> u32 {
        u32::from(self)
    }

    #[inline(always)]
    fn from_word(word: u32) -> Self {
        word as u8
    }

    #[inline(always)]
    fn sum(a: u32, b: u32) -> u32 {
        // Without the top bits no carry leaves a byte; a top bit is the carry and both operands' bits, added without carry.
        (a & !TOP_BITS).wrapping_add(b & !TOP_BITS) ^ (a ^ b) & TOP_BITS
    }

    #[inline(always)]
    fn min(a: u32, b: u32) -> u32 {
        let take_b = bytes_at_least(a, b);
        a & !take_b | b & take_b
    }

    #[inline(always)]
    fn max(a: u32, b: u32) -> u32 {
        let take_a = bytes_at_least(a, b);
        a & take_a | b & !take_a
    }
}

macro_rules! integer {
    ($T:ty: $TYPE:expr) => {
        impl Sealed for $T {}
        impl Number for $T {
            const TYPE: ElementType = $TYPE;
            const SUM_IDENTITY: u32 = 0;
            const MIN_IDENTITY: u32 = Self::MAX as u32;
            const MAX_IDENTITY: u32 = Self::MIN as u32;

            #[inline(always)]
            fn to_word(self) -> u32 {
                self as u32
            }

            #[inline(always)]
            fn from_word(word: u32) -> Self {
                word as Self
            }

            #[inline(always)]
            fn sum(a: u32, b: u32) -> u32 {
                a.wrapping_add(b)
            }

            #[inline(always)]
            fn min(a: u32, b: u32) -> u32 {
                Ord::min(a as Self, b as Self) as u32
            }

            #[inline(always)]
            fn max(a: u32, b: u32) -> u32 {
                Ord::max(a as Self, b as Self) as u32
            }
        }
    };
}

integer!(i32: ElementType::I32);
integer!(u32: ElementType::U32);

/// Words of a vector of 1, 2, 4, 8 and 16 elements of each type.
macro_rules! lanes {
    ($($T:ty $(, $R:ident)?: $one:literal $two:literal $four:literal $eight:literal $sixteen:literal;)*) => { $(
        impl$(<$R: Range>)? Lanes<1> for $T {
            type Words = [u32; $one];
        }
        impl$(<$R: Range>)? Lanes<2> for $T {
            type Words = [u32; $two];
        }
        impl$(<$R: Range>)? Lanes<4> for $T {
            type Words = [u32; $four];
        }
        impl$(<$R: Range>)? Lanes<8> for $T {
            type Words = [u32; $eight];
        }
        impl$(<$R: Range>)? Lanes<16> for $T {
            type Words = [u32; $sixteen];
        }
    )* };
}

lanes! {
    f32: 1 2 4 8 16;
    i32: 1 2 4 8 16;
    u32: 1 2 4 8 16;
    F16: 1 1 2 4 8;
    Bf16: 1 1 2 4 8;
    u8: 1 1 1 2 4;
    E4m3: 1 1 1 2 4;
    E5m2: 1 1 1 2 4;
    E4m3B15<R>, R: 1 1 1 2 4;
}
