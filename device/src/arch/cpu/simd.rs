//! Arithmetic on packed words: the names of `arch::nvptx::simd`, and the bits that its instructions give.
//!
//! Sums and products of 16-bit elements are computed in `f32` and rounded again, which is the same as rounded once: an `f32`
//! has more than twice the significant bits, and two to spare (Figueroa, "When is double rounding innocuous?", 1995). A
//! product of two `f16` is exact in it.

use crate::half::{Bf16, F16, F32_NAN};

/// Applies `f` to both pairs of halves.
#[inline]
fn by_half(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// Applies `f` to both pairs of `f16`.
#[inline]
fn by_f16(a: u32, b: u32, f: impl Fn(f32, f32) -> f32) -> u32 {
    let wide = |bits| F16::from_bits(bits).to_f32();
    by_half(a, b, |a, b| F16::from_f32(f(wide(a), wide(b))).to_bits())
}

/// Applies `f` to both pairs of `bf16`.
#[inline]
fn by_bf16(a: u32, b: u32, f: impl Fn(f32, f32) -> f32) -> u32 {
    let wide = |bits| Bf16::from_bits(bits).to_f32();
    by_half(a, b, |a, b| Bf16::from_f32(f(wide(a), wide(b))).to_bits())
}

/// The lesser; the number where one is NaN; -0 before +0.
#[inline]
fn lesser(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f32::from_bits(F32_NAN),
        (true, false) => b,
        (false, true) => a,
        (false, false) if a < b || a == b && a.is_sign_negative() => a,
        (false, false) => b,
    }
}

/// The greater; the number where one is NaN; -0 before +0.
#[inline]
fn greater(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f32::from_bits(F32_NAN),
        (true, false) => b,
        (false, true) => a,
        (false, false) if a > b || a == b && a.is_sign_positive() => a,
        (false, false) => b,
    }
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $each:ident($f:expr);)*) => { $(
        $(#[$doc])*
        #[inline]
        #[must_use]
        pub fn $name(a: u32, b: u32) -> u32 {
            $each(a, b, $f)
        }
    )* };
}

/// Applies `f` to two `f32` given as bits.
#[inline]
fn by_f32(a: u32, b: u32, f: impl Fn(f32, f32) -> f32) -> u32 {
    f(f32::from_bits(a), f32::from_bits(b)).to_bits()
}

binary! {
    /// The sums of two `f16` pairs.
    add_f16x2 = by_f16(|a, b| a + b);
    /// The products of two `f16` pairs.
    mul_f16x2 = by_f16(|a, b| a * b);
    /// The lesser of each `f16`.
    min_f16x2 = by_f16(lesser);
    /// The lesser of each `f16`, NaN where either is NaN.
    min_nan_f16x2 = by_f16(|a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { lesser(a, b) });
    /// The greater of each `f16`.
    max_f16x2 = by_f16(greater);
    /// The sums of two `bf16` pairs.
    add_bf16x2 = by_bf16(|a, b| a + b);
    /// The lesser of each `bf16`.
    min_bf16x2 = by_bf16(lesser);
    /// The greater of each `bf16`.
    max_bf16x2 = by_bf16(greater);
    /// The lesser `f32`, of and as bits.
    min_f32 = by_f32(lesser);
    /// The greater `f32`, of and as bits.
    max_f32 = by_f32(greater);
}

/// Each `f16` without its sign.
#[inline]
#[must_use]
pub fn abs_f16x2(a: u32) -> u32 {
    a & 0x7FFF_7FFF
}

/// Four bytes chosen out of eight: hexadecimal digit `i` of `SELECTOR` says which byte of `b:a` becomes byte `i`, 0 to 3 those
/// of `a`, 4 to 7 those of `b`; with 8 added, that byte's sign bit eight times.
#[inline]
#[must_use]
pub fn permute_bytes<const SELECTOR: u32>(a: u32, b: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let digits = SELECTOR.to_le_bytes();
    let pick = |i: usize| {
        let digit = digits[i / 2] >> (i % 2 * 4) & 0xF;
        let byte = bytes[usize::from(digit & 7)];
        if digit & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
    };
    u32::from_le_bytes([pick(0), pick(1), pick(2), pick(3)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_chosen_by_digit() {
        let (a, b) = (0x8302_0100, 0x0706_0504);
        assert_eq!(permute_bytes::<0x3210>(a, b), a);
        assert_eq!(permute_bytes::<0x7654>(a, b), b);
        assert_eq!(permute_bytes::<0x0735>(a, b), 0x0007_8305);
        assert_eq!(permute_bytes::<0xBA98>(a, b), 0xFF00_0000);
    }

    #[test]
    fn nan_gives_way_and_zeros_are_ordered() {
        let (nan, one) = (0x7E00_FE01, 0x3C00_3C00);
        assert_eq!(min_f16x2(nan, one), one);
        assert_eq!(max_f16x2(one, nan), one);
        assert_eq!(min_nan_f16x2(nan, one), 0x7FFF_7FFF);
        assert_eq!(min_f16x2(nan, nan), 0x7FFF_7FFF);
        assert_eq!(min_f16x2(0x8000_0000, 0x0000_8000), 0x8000_8000);
        assert_eq!(max_bf16x2(0x8000_0000, 0x0000_8000), 0);
        assert_eq!(min_f32(f32::NAN.to_bits(), 1), 1);
    }

    #[test]
    fn sums_round_once() {
        // 2048 + 1 is a tie in f16, to the even 2048; 2048 + 3 to 2052; 65504 + 16 is a tie to infinity.
        assert_eq!(add_f16x2(0x6800_6800, 0x3C00_4200), 0x6800_6802);
        assert_eq!(add_f16x2(0x7BFF, 0x4C00), 0x7C00);
        assert_eq!(add_f16x2(0x7C00, 0xFC00), 0x7FFF);
        assert_eq!(mul_f16x2(0x3C00, 0x0001), 0x0001);
    }
}
