//! The 16-bit floating-point types, and their conversions in integer arithmetic.
//!
//! Both are plain bits: the language has no stable type for them. The conversions here are `const`, and are what the CPU
//! device computes with; a GPU has instructions for them ([`arch`](crate::arch)), which give the same bits.
//!
//! Narrowing rounds to the nearest value, ties to even; what is too large becomes an infinity. A NaN comes out as the one
//! that a GPU gives, positive with every bit of the mantissa set, whatever the sign and the payload that went in.

use crate::abi::Pod;

/// Bits of an `f32`'s mantissa.
const F32_MANTISSA: u32 = 23;
const F32_BIAS: i32 = 127;
const F32_INFINITY: u32 = 0x7F80_0000;
/// The NaN that a GPU's instructions give.
pub(crate) const F32_NAN: u32 = 0x7FFF_FFFF;
const F16_INFINITY: u32 = 0x7C00;
/// The same of 16 bits: `f16` and `bf16` alike.
pub(crate) const HALF_NAN: u16 = 0x7FFF;

/// IEEE 754 binary16: 1 sign, 5 exponent and 10 mantissa bits.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct F16(u16);

/// bfloat16: the upper half of an `f32`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bf16(u16);

// SAFETY: a `u16`: no padding, every bit pattern valid.
unsafe impl Pod for F16 {}
// SAFETY: as above.
unsafe impl Pod for Bf16 {}

impl F16 {
    /// Takes bits.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The bits.
    #[inline(always)]
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// The nearest value.
    #[inline]
    #[must_use]
    pub const fn from_f32(value: f32) -> Self {
        let (sign, magnitude) = split(value);
        if magnitude > F32_INFINITY {
            return Self(HALF_NAN);
        }
        let rounded = narrow(magnitude, 10, 15);
        Self((sign >> 16) as u16 | if rounded > F16_INFINITY { F16_INFINITY } else { rounded } as u16)
    }

    /// The same value, exactly.
    #[inline]
    #[must_use]
    pub const fn to_f32(self) -> f32 {
        let (sign, magnitude) = ((self.0 as u32 & 0x8000) << 16, self.0 as u32 & 0x7FFF);
        if magnitude > F16_INFINITY {
            return f32::from_bits(F32_NAN);
        }
        if magnitude == F16_INFINITY {
            return f32::from_bits(sign | F32_INFINITY);
        }
        f32::from_bits(sign | widen(magnitude, 10, 15))
    }
}

impl Bf16 {
    /// Takes bits.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The bits.
    #[inline(always)]
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// The nearest value.
    #[inline]
    #[must_use]
    pub const fn from_f32(value: f32) -> Self {
        let (sign, magnitude) = split(value);
        if magnitude > F32_INFINITY {
            return Self(HALF_NAN);
        }
        // The lower half goes: add just less than half of it, and the tie's one more where the result would be odd.
        Self(((sign | (magnitude + 0x7FFF + (magnitude >> 16 & 1))) >> 16) as u16)
    }

    /// The same value, exactly; a NaN keeps its bits.
    #[inline]
    #[must_use]
    pub const fn to_f32(self) -> f32 {
        f32::from_bits((self.0 as u32) << 16)
    }
}

/// The sign bit in its place, and the bits without it.
pub(crate) const fn split(value: f32) -> (u32, u32) {
    let bits = value.to_bits();
    (bits & 0x8000_0000, bits & 0x7FFF_FFFF)
}

/// The magnitude of a number, or the infinity, of a format with `mantissa` mantissa bits and this exponent bias that lies
/// nearest to the `f32` magnitude, ties to even: exponent field and mantissa as one number. It is not limited: what is too
/// large for the format comes out larger than its largest.
pub(crate) const fn narrow(magnitude: u32, mantissa: u32, bias: i32) -> u32 {
    let field = (magnitude >> F32_MANTISSA) as i32 - F32_BIAS + bias;
    let fraction = magnitude & ((1 << F32_MANTISSA) - 1);
    let (value, drop) = if field >= 1 {
        ((field as u32) << F32_MANTISSA | fraction, F32_MANTISSA - mantissa)
    } else {
        // Below the least normal number the implicit bit is written out, and moves right. (An f32 subnormal, which has
        // none, lies so far below that it rounds to 0 either way.) By 25 places everything has gone.
        let shift = F32_MANTISSA - mantissa + (1 - field) as u32;
        (1 << F32_MANTISSA | fraction, if shift > 25 { 25 } else { shift })
    };
    let (quotient, rest, half) = (value >> drop, value & ((1 << drop) - 1), 1 << (drop - 1));
    quotient + (rest > half || rest == half && quotient & 1 == 1) as u32
}

/// The `f32` magnitude with the value of a finite magnitude of such a format, exactly.
pub(crate) const fn widen(magnitude: u32, mantissa: u32, bias: i32) -> u32 {
    // Shifted into an f32's fields it is the value times 2^(bias - 127), subnormal or not; the product is exact.
    let scale = f32::from_bits(((2 * F32_BIAS - bias) as u32) << F32_MANTISSA);
    (f32::from_bits(magnitude << (F32_MANTISSA - mantissa)) * scale).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code of a format whose infinity this is comes back from `f32`, but for a NaN, which comes back as the one.
    fn every_code_comes_back(infinity: u16, wide: fn(u16) -> f32, narrow: fn(f32) -> u16) {
        for bits in 0..=u16::MAX {
            let (value, is_nan) = (wide(bits), bits & 0x7FFF > infinity);
            assert_eq!(value.is_nan(), is_nan, "{bits:#06x}");
            assert_eq!(narrow(value), if is_nan { HALF_NAN } else { bits }, "{bits:#06x}");
        }
    }

    #[test]
    fn every_half_comes_back() {
        let f16 = |bits| F16::from_bits(bits).to_f32();
        every_code_comes_back(0x7C00, f16, |value| F16::from_f32(value).to_bits());
        let bf16 = |bits| Bf16::from_bits(bits).to_f32();
        every_code_comes_back(0x7F80, bf16, |value| Bf16::from_f32(value).to_bits());
    }

    #[test]
    fn narrowing_rounds_to_the_nearest_even() {
        for (value, bits) in [
            (1.0 + 1.0 / 2048.0, 0x3C00),
            (1.0 + 3.0 / 2048.0, 0x3C02),
            (65519.996, 0x7BFF),
            (65520.0, 0x7C00),
            (-f32::INFINITY, 0xFC00),
            (2f32.powi(-25), 0x0000),
            (2f32.powi(-25) * 1.0001, 0x0001),
            (-2f32.powi(-24), 0x8001),
            (f32::from_bits(1), 0x0000),
        ] {
            assert_eq!(F16::from_f32(value).to_bits(), bits, "{value}");
        }
        assert_eq!(Bf16::from_f32(1.0 + 1.0 / 256.0).to_bits(), 0x3F80);
        assert_eq!(Bf16::from_f32(1.0 + 3.0 / 256.0).to_bits(), 0x3F82);
        assert_eq!(Bf16::from_f32(f32::MAX).to_bits(), 0x7F80);
    }
}
