//! Conversions between the floating-point types, four elements at a time.

use super::e4m3b15;
use super::number::Number;
use super::words::Words;
use crate::arch;
use crate::fp8::{E4m3, E4m3B15, E5m2, Range};
use crate::half::{Bf16, F16};

/// A floating-point type: how four of its elements become four `f16` or `f32`, and back.
pub trait Float: Number {
    /// Four elements.
    type Quad: Words;

    /// Whether every value is an `f16`: then conversions to another such type go through `f16`, not `f32`.
    const FITS_F16: bool;

    /// To `f16`: exact where the type [fits](Float::FITS_F16), else to the nearest.
    #[must_use]
    fn to_f16x4(quad: Self::Quad) -> [u32; 2];
    /// From `f16`.
    #[must_use]
    fn from_f16x4(quad: [u32; 2]) -> Self::Quad;
    /// To `f32`, exactly.
    #[must_use]
    fn to_f32x4(quad: Self::Quad) -> [u32; 4];
    /// From `f32`.
    #[must_use]
    fn from_f32x4(quad: [u32; 4]) -> Self::Quad;
}

/// Four elements of `T` as four of `U`.
#[inline(always)]
pub(super) fn convert_quad<T: Float, U: Float>(quad: T::Quad) -> U::Quad {
    if T::FITS_F16 && U::FITS_F16 {
        U::from_f16x4(T::to_f16x4(quad))
    } else {
        U::from_f32x4(T::to_f32x4(quad))
    }
}

/// Four fp8 elements as `f16`.
#[inline(always)]
pub(super) fn decode4<T: Float<Quad = [u32; 1]>>(word: u32) -> [u32; 2] {
    T::to_f16x4([word])
}

/// Four `f16` as fp8.
#[inline(always)]
pub(super) fn encode4<T: Float<Quad = [u32; 1]>>(halves: [u32; 2]) -> u32 {
    T::from_f16x4(halves)[0]
}

#[inline(always)]
fn f16x4_from_f32x4(quad: [u32; 4]) -> [u32; 2] {
    [arch::f16x2_from_f32x2(quad[0], quad[1]), arch::f16x2_from_f32x2(quad[2], quad[3])]
}

#[inline(always)]
fn f32x4_from_f16x4(quad: [u32; 2]) -> [u32; 4] {
    let half = |word: u32, shift: u32| arch::f32_from_f16((word >> shift) as u16);
    [half(quad[0], 0), half(quad[0], 16), half(quad[1], 0), half(quad[1], 16)]
}

impl Float for f32 {
    type Quad = [u32; 4];
    const FITS_F16: bool = false;

    #[inline(always)]
    fn to_f16x4(quad: [u32; 4]) -> [u32; 2] {
        f16x4_from_f32x4(quad)
    }

    #[inline(always)]
    fn from_f16x4(quad: [u32; 2]) -> [u32; 4] {
        f32x4_from_f16x4(quad)
    }

    #[inline(always)]
    fn to_f32x4(quad: [u32; 4]) -> [u32; 4] {
        quad
    }

    #[inline(always)]
    fn from_f32x4(quad: [u32; 4]) -> [u32; 4] {
        quad
    }
}

impl Float for F16 {
    type Quad = [u32; 2];
    const FITS_F16: bool = true;

    #[inline(always)]
    fn to_f16x4(quad: [u32; 2]) -> [u32; 2] {
        quad
    }

    #[inline(always)]
    fn from_f16x4(quad: [u32; 2]) -> [u32; 2] {
        quad
    }

    #[inline(always)]
    fn to_f32x4(quad: [u32; 2]) -> [u32; 4] {
        f32x4_from_f16x4(quad)
    }

    #[inline(always)]
    fn from_f32x4(quad: [u32; 4]) -> [u32; 2] {
        f16x4_from_f32x4(quad)
    }
}

impl Float for Bf16 {
    type Quad = [u32; 2];
    const FITS_F16: bool = false;

    #[inline(always)]
    fn to_f16x4(quad: [u32; 2]) -> [u32; 2] {
        f16x4_from_f32x4(Self::to_f32x4(quad))
    }

    #[inline(always)]
    fn from_f16x4(quad: [u32; 2]) -> [u32; 2] {
        Self::from_f32x4(f32x4_from_f16x4(quad))
    }

    #[inline(always)]
    fn to_f32x4(quad: [u32; 2]) -> [u32; 4] {
        [quad[0] << 16, quad[0] & 0xFFFF_0000, quad[1] << 16, quad[1] & 0xFFFF_0000]
    }

    #[inline(always)]
    fn from_f32x4(quad: [u32; 4]) -> [u32; 2] {
        [arch::bf16x2_from_f32x2(quad[0], quad[1]), arch::bf16x2_from_f32x2(quad[2], quad[3])]
    }
}

macro_rules! ocp {
    ($T:ty: $from_f32x2:ident, $from_f16x2:ident, $to_f16x2:ident) => {
        impl Float for $T {
            type Quad = [u32; 1];
            const FITS_F16: bool = true;

            #[inline(always)]
            fn to_f16x4(quad: [u32; 1]) -> [u32; 2] {
                [arch::$to_f16x2(quad[0] as u16), arch::$to_f16x2((quad[0] >> 16) as u16)]
            }

            #[inline(always)]
            fn from_f16x4(quad: [u32; 2]) -> [u32; 1] {
                [u32::from(arch::$from_f16x2(quad[0])) | u32::from(arch::$from_f16x2(quad[1])) << 16]
            }

            #[inline(always)]
            fn to_f32x4(quad: [u32; 1]) -> [u32; 4] {
                f32x4_from_f16x4(Self::to_f16x4(quad))
            }

            #[inline(always)]
            fn from_f32x4(quad: [u32; 4]) -> [u32; 1] {
                let pair = |low, high| u32::from(arch::$from_f32x2(low, high));
                [pair(quad[0], quad[1]) | pair(quad[2], quad[3]) << 16]
            }
        }
    };
}

ocp!(E4m3: e4m3x2_from_f32x2, e4m3x2_from_f16x2, f16x2_from_e4m3x2);
ocp!(E5m2: e5m2x2_from_f32x2, e5m2x2_from_f16x2, f16x2_from_e5m2x2);

impl<R: Range> Float for E4m3B15<R> {
    type Quad = [u32; 1];
    const FITS_F16: bool = true;

    #[inline(always)]
    fn to_f16x4(quad: [u32; 1]) -> [u32; 2] {
        e4m3b15::decode::<R>(quad[0])
    }

    #[inline(always)]
    fn from_f16x4(quad: [u32; 2]) -> [u32; 1] {
        [e4m3b15::encode::<R>(quad)]
    }

    #[inline(always)]
    fn to_f32x4(quad: [u32; 1]) -> [u32; 4] {
        f32x4_from_f16x4(Self::to_f16x4(quad))
    }

    #[inline(always)]
    fn from_f32x4(quad: [u32; 4]) -> [u32; 1] {
        Self::from_f16x4(f16x4_from_f32x4(quad))
    }
}
