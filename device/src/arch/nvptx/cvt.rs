//! Conversions between floating-point types, two elements at a time. An `f32` is given and returned as its bits; of a pair,
//! the low half is the first element.
//!
//! ```text
//! cvt.rn.f16x2.f32               d, a, b;   d = {low: b, high: a}     PTX 7.0, sm_80
//! cvt.rn.bf16x2.f32              d, a, b;   likewise                  PTX 7.0, sm_80
//! cvt.f32.f16                    d, a;                                PTX 1.0
//! cvt.rn.satfinite.f8x2.f32      d, a, b;   f8x2: e4m3x2, e5m2x2      PTX 7.8 on sm_90, 8.1 on sm_89
//! cvt.rn.satfinite.f8x2.f16x2    d, a;                                likewise
//! cvt.rn.f16x2.f8x2              d, a;                                likewise
//! ```
//!
//! Before sm_90 the fp8 conversions are those of [`fp8`](crate::fp8), which give the same bits.
//!
//! Source: "Data Movement and Conversion Instructions: cvt", PTX ISA 8.7.

use core::arch::asm;

macro_rules! from_f32x2 {
    ($(#[$doc:meta])* $name:ident = $ptx:literal) => {
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(low: u32, high: u32) -> u32 {
            let pair: u32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!(concat!($ptx, " {}, {}, {};"),
                     out(reg32) pair, in(reg32) high, in(reg32) low, options(pure, nomem, nostack, preserves_flags))
            };
            pair
        }
    };
}

from_f32x2! {
    /// Two `f32` to the nearest `f16`, ties to even.
    f16x2_from_f32x2 = "cvt.rn.f16x2.f32"
}
from_f32x2! {
    /// Two `f32` to the nearest `bf16`, ties to even.
    bf16x2_from_f32x2 = "cvt.rn.bf16x2.f32"
}

/// An `f16` to `f32`, exactly.
#[inline(always)]
pub fn f32_from_f16(value: u16) -> u32 {
    let wide: u32;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("cvt.f32.f16 {}, {};", out(reg32) wide, in(reg16) value, options(pure, nomem, nostack, preserves_flags))
    };
    wide
}

/// Whether the conversions of the OCP fp8 types are single instructions here.
pub const FP8_INSTRUCTIONS: bool = cfg!(warpwire_sm90);

#[cfg(warpwire_sm90)]
macro_rules! fp8 {
    ($Type:ident: $ptx:literal, $from_f32x2:ident, $from_f16x2:ident, $to_f16x2:ident) => {
        #[doc = concat!("Two `f32` to [`", stringify!($Type), "`](crate::fp8::", stringify!($Type), "): nearest, ties to even, saturating; NaN gives 0x7F.")]
        #[inline(always)]
        pub fn $from_f32x2(low: u32, high: u32) -> u16 {
            let pair: u16;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!(concat!("cvt.rn.satfinite.", $ptx, ".f32 {}, {}, {};"),
                     out(reg16) pair, in(reg32) high, in(reg32) low, options(pure, nomem, nostack, preserves_flags))
            };
            pair
        }

        #[doc = concat!("Two `f16` to [`", stringify!($Type), "`](crate::fp8::", stringify!($Type), "): nearest, ties to even, saturating; NaN gives 0x7F.")]
        #[inline(always)]
        pub fn $from_f16x2(halves: u32) -> u16 {
            let pair: u16;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!(concat!("cvt.rn.satfinite.", $ptx, ".f16x2 {}, {};"),
                     out(reg16) pair, in(reg32) halves, options(pure, nomem, nostack, preserves_flags))
            };
            pair
        }

        #[doc = concat!("Two [`", stringify!($Type), "`](crate::fp8::", stringify!($Type), ") to `f16`, exactly; NaN gives 0x7FFF.")]
        #[inline(always)]
        pub fn $to_f16x2(pair: u16) -> u32 {
            let halves: u32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!(concat!("cvt.rn.f16x2.", $ptx, " {}, {};"),
                     out(reg32) halves, in(reg16) pair, options(pure, nomem, nostack, preserves_flags))
            };
            halves
        }
    };
}

#[cfg(not(warpwire_sm90))]
use crate::arch::soft::fp8;

fp8!(E4m3: "e4m3x2", e4m3x2_from_f32x2, e4m3x2_from_f16x2, f16x2_from_e4m3x2);
fp8!(E5m2: "e5m2x2", e5m2x2_from_f32x2, e5m2x2_from_f16x2, f16x2_from_e5m2x2);
