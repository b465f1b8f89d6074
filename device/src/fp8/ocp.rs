//! The two formats of the Open Compute Project ("OCP 8-bit Floating Point Specification (OFP8)", revision 1.0).

use crate::abi::Pod;
use crate::half::{F16, F32_NAN, HALF_NAN, narrow, split, widen};

/// fp8 e4m3: 4 exponent bits with bias 7, 3 mantissa bits; largest 448, no infinities, NaN 0x7F and 0xFF.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct E4m3(u8);

/// fp8 e5m2: 5 exponent bits with bias 15, 2 mantissa bits: the upper half of an [`F16`]; largest 57344.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct E5m2(u8);

// SAFETY: a `u8`: no padding, every bit pattern valid.
unsafe impl Pod for E4m3 {}
// SAFETY: as above.
unsafe impl Pod for E5m2 {}

/// What both formats make of a NaN.
const NAN: u8 = 0x7F;

macro_rules! ocp {
    ($Type:ident: mantissa $mantissa:literal, bias $bias:literal, largest $largest:literal, first_nan $first_nan:literal) => {
        impl $Type {
            /// The largest finite value.
            pub const LARGEST: Self = Self($largest);

            /// Takes a code.
            #[inline(always)]
            #[must_use]
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// The code.
            #[inline(always)]
            #[must_use]
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest value, ties to even, in one rounding. What is too large, infinities among it, becomes the
            /// largest finite value of its sign; every NaN becomes 0x7F.
            #[inline]
            #[must_use]
            pub const fn from_f32(value: f32) -> Self {
                if value.is_nan() {
                    return Self(NAN);
                }
                let (sign, magnitude) = split(value);
                let rounded = narrow(magnitude, $mantissa, $bias);
                Self((sign >> 24) as u8 | if rounded > $largest { $largest } else { rounded as u8 })
            }

            /// As [`Self::from_f32`].
            #[inline]
            #[must_use]
            pub const fn from_f16(value: F16) -> Self {
                Self::from_f32(value.to_f32())
            }

            /// The same value, exactly; every NaN is a GPU's.
            #[inline]
            #[must_use]
            pub const fn to_f32(self) -> f32 {
                let (sign, magnitude) = ((self.0 as u32 & 0x80) << 24, self.0 as u32 & 0x7F);
                f32::from_bits(if magnitude >= $first_nan {
                    F32_NAN
                } else if magnitude > $largest {
                    sign | f32::INFINITY.to_bits()
                } else {
                    sign | widen(magnitude, $mantissa, $bias)
                })
            }
        }
    };
}

impl E4m3 {
    /// The same value, exactly; every NaN is a GPU's.
    #[inline]
    #[must_use]
    pub const fn to_f16(self) -> F16 {
        F16::from_f32(self.to_f32())
    }
}

impl E5m2 {
    /// The same value, exactly; every NaN is a GPU's.
    #[inline]
    #[must_use]
    pub const fn to_f16(self) -> F16 {
        let is_nan = self.0 & 0x7F > 0x7C;
        F16::from_bits(if is_nan { HALF_NAN } else { (self.0 as u16) << 8 })
    }
}

ocp!(E4m3: mantissa 3, bias 7, largest 0x7E, first_nan 0x7F);
ocp!(E5m2: mantissa 2, bias 15, largest 0x7B, first_nan 0x7D);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back() {
        for bits in 0..=u8::MAX {
            let expected = if bits & 0x7F == 0x7F { NAN } else { bits };
            assert_eq!(E4m3::from_f16(E4m3::from_bits(bits).to_f16()).to_bits(), expected);
            // An infinity does not come back: encoding saturates.
            let expected = match bits & 0x7F {
                0x7C => bits - 1,
                0x7D.. => NAN,
                _ => bits,
            };
            assert_eq!(E5m2::from_f16(E5m2::from_bits(bits).to_f16()).to_bits(), expected);
        }
    }

    #[test]
    fn the_formats_end_where_they_should() {
        assert_eq!(E4m3::LARGEST.to_f32(), 448.0);
        assert_eq!(E5m2::LARGEST.to_f32(), 57344.0);
        assert_eq!(E4m3::from_bits(1).to_f32(), 2f32.powi(-9));
        assert_eq!(E5m2::from_bits(1).to_f32(), 2f32.powi(-16));
        assert_eq!(E5m2::from_bits(0xFC).to_f32(), f32::NEG_INFINITY);
        assert_eq!(E4m3::from_f32(-1e9).to_bits(), 0xFE);
        assert_eq!(E4m3::from_f32(2f32.powi(-10)).to_bits(), 0, "a tie goes to the even 0");
        assert_eq!(E4m3::from_f32(-f32::NAN).to_bits(), NAN);
    }

    #[test]
    fn e5m2_is_the_upper_half_of_f16() {
        for bits in (0..=u8::MAX).filter(|bits| bits & 0x7F <= 0x7C) {
            assert_eq!(E5m2::from_bits(bits).to_f16().to_bits(), u16::from(bits) << 8);
        }
    }
}
