//! e4m3b15, four elements at a time and without a branch: byte permutes, packed minima, logic of three operands.
//!
//! An element's code is its `f16`'s bits 7 to 13 with half of the last place added, and its sign: see
//! [`fp8`](crate::fp8) for the rule and its special values.

use crate::arch::{self, permute_bytes};
use crate::fp8::{DROPPED, Range};

/// Bit 7 of each byte: a code's sign.
const SIGNS: u32 = 0x8080_8080;

/// The `f16` of which each code of four is the nearest; NaN and -0 as the range has them.
#[inline(always)]
#[must_use]
pub fn encode<R: Range>(halves: [u32; 2]) -> u32 {
    let magnitudes = [magnitudes::<R>(halves[0]), magnitudes::<R>(halves[1])];
    if !R::HAS_NAN {
        let signed = |k: usize| magnitudes[k] | halves[k] & 0x8000_8000;
        return permute_bytes::<0x7531>(signed(0), signed(1));
    }
    let codes = permute_bytes::<0x7531>(magnitudes[0], magnitudes[1]);
    let signs = permute_bytes::<0x7531>(halves[0], halves[1]) & SIGNS;
    // No code reaches 0x80 but that of NaN, so adding 0x7F sets bit 7 exactly where a code is not 0: only there is a sign.
    codes | signs & codes.wrapping_add(0x7F7F_7F7F)
}

/// The rounded magnitudes of two `f16`, each in the upper byte of its half; 0x80 for NaN where the range has one. The lower
/// bytes hold what was rounded off.
#[inline(always)]
fn magnitudes<R: Range>(halves: u32) -> u32 {
    let magnitudes = arch::abs_f16x2(halves);
    let largest = (R::LARGEST as u32) << DROPPED;
    let limited = if R::HAS_NAN {
        // NaN passes the first minimum, and the second makes it 1.9375, 0x3FC0: the one value that rounds up to 0x80.
        arch::min_f16x2(arch::min_nan_f16x2(magnitudes, largest * 0x0001_0001), 0x3FC0_3FC0)
    } else {
        // The number is taken where the other is NaN: the largest one.
        arch::min_f16x2(magnitudes, largest * 0x0001_0001)
    };
    // Half of the last place, then one place up, so that the code is a byte. Below 0x4000 nothing leaves its half.
    limited.wrapping_add(0x0040_0040) << 1
}

/// Four codes as `f16`, by what the architecture has.
#[inline(always)]
#[must_use]
pub fn decode<R: Range>(codes: u32) -> [u32; 2] {
    if R::HAS_NAN && arch::FP8_INSTRUCTIONS {
        decode_by_instructions::<R>(codes)
    } else {
        decode_by_bits::<R>(codes)
    }
}

/// 0xFF for each code that is a NaN, else 0.
#[inline(always)]
fn nan_bytes<R: Range>(codes: u32) -> u32 {
    let magnitudes = codes & !SIGNS;
    // Bit 7 of a byte: the code is beyond the largest; it is not 0 but for its sign.
    let beyond = magnitudes.wrapping_add((0x7F - R::LARGEST as u32) * 0x0101_0101);
    let nonzero = magnitudes.wrapping_add(0x7F7F_7F7F);
    permute_bytes::<0xBA98>(beyond | codes & !nonzero, 0)
}

/// As [`decode_by_bits`], through the conversion of e4m3: that is the same format with its exponent bias 8 less, so a value
/// comes out 2^8 times as large. For the range [`Standard`](crate::fp8::Standard) alone, whose largest code is a number in
/// e4m3 too.
#[inline(always)]
#[must_use]
pub fn decode_by_instructions<R: Range>(codes: u32) -> [u32; 2] {
    // 0xFF is a NaN in e4m3.
    let codes = codes | nan_bytes::<R>(codes);
    let scaled = |pair: u32| arch::mul_f16x2(arch::f16x2_from_e4m3x2(pair as u16), 0x1C00_1C00);
    [scaled(codes), scaled(codes >> 16)]
}

/// Four codes as `f16`: each code's sign and magnitude moved to their places.
#[inline(always)]
#[must_use]
pub fn decode_by_bits<R: Range>(codes: u32) -> [u32; 2] {
    // The upper byte of each half: the sign, a 0, and the magnitude's upper six bits. The lower: its last bit.
    let mut upper = codes & SIGNS | codes >> 1 & 0x3F3F_3F3F;
    let mut lower = codes << 7 & SIGNS;
    if R::HAS_NAN {
        let nan = nan_bytes::<R>(codes);
        upper = upper & !nan | 0x7F7F_7F7F & nan;
        lower |= nan;
    }
    [permute_bytes::<0x5140>(lower, upper), permute_bytes::<0x7362>(lower, upper)]
}
