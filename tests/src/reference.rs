//! The formats and their roundings in `f64` arithmetic: what the integer arithmetic and the instructions are held against.
//!
//! Every value of the formats, and every sum of two of them, is exact in `f64`.

/// A binary format by its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Exponent bits.
    pub exponent: u32,
    /// Mantissa bits.
    pub mantissa: u32,
    /// The exponent field of 2^0.
    pub bias: i32,
    /// The code of the largest finite value.
    pub largest: u32,
    /// What a NaN becomes.
    pub nan: u32,
    /// Whether what is too large becomes the largest finite value, not the infinity behind it.
    pub saturates: bool,
}

/// IEEE 754 binary16.
pub const F16: Format =
    Format { exponent: 5, mantissa: 10, bias: 15, largest: 0x7BFF, nan: 0x7FFF, saturates: false };
/// bfloat16.
pub const BF16: Format =
    Format { exponent: 8, mantissa: 7, bias: 127, largest: 0x7F7F, nan: 0x7FFF, saturates: false };
/// fp8 e4m3.
pub const E4M3: Format =
    Format { exponent: 4, mantissa: 3, bias: 7, largest: 0x7E, nan: 0x7F, saturates: true };
/// fp8 e5m2.
pub const E5M2: Format =
    Format { exponent: 5, mantissa: 2, bias: 15, largest: 0x7B, nan: 0x7F, saturates: true };
/// fp8 e4m3b15 without its special values: those stand in the format's table.
pub const E4M3B15: Format =
    Format { exponent: 4, mantissa: 3, bias: 15, largest: 0x7F, nan: 0x7F, saturates: true };

impl Format {
    /// Bits of a code.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        1 + self.exponent + self.mantissa
    }

    /// The sign bit.
    #[must_use]
    pub const fn sign(&self) -> u32 {
        1 << (self.bits() - 1)
    }

    /// The value of a code as the formula has it, whatever the format makes of its largest exponent.
    #[must_use]
    pub fn formula(&self, code: u32) -> f64 {
        let field = (code >> self.mantissa) & ((1 << self.exponent) - 1);
        let fraction = f64::from(code & ((1 << self.mantissa) - 1)) / f64::from(1 << self.mantissa);
        let magnitude = if field == 0 {
            fraction * 2f64.powi(1 - self.bias)
        } else {
            (1.0 + fraction) * 2f64.powi(field as i32 - self.bias)
        };
        if code & self.sign() == 0 { magnitude } else { -magnitude }
    }

    /// The value of a code in the OCP's and IEEE's formats: an infinity behind the largest value where the exponent is full
    /// and the mantissa 0, NaN elsewhere there.
    #[must_use]
    pub fn value(&self, code: u32) -> f64 {
        let magnitude = code & (self.sign() - 1);
        if magnitude <= self.largest {
            return self.formula(code);
        }
        if magnitude & ((1 << self.mantissa) - 1) != 0 {
            return f64::NAN;
        }
        if code & self.sign() == 0 { f64::INFINITY } else { f64::NEG_INFINITY }
    }

    /// The code of the nearest value, ties to even.
    #[must_use]
    pub fn nearest(&self, value: f64) -> u32 {
        self.encode(value, f64::round_ties_even)
    }

    /// The code of the nearest value, ties away from zero.
    #[must_use]
    pub fn nearest_away(&self, value: f64) -> u32 {
        self.encode(value, f64::round)
    }

    fn encode(&self, value: f64, round: impl Fn(f64) -> f64) -> u32 {
        if value.is_nan() {
            return self.nan;
        }
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        let magnitude = value.abs();
        // The distance of neighbouring values there: a power of two, so scaling by it is exact.
        let exponent = if magnitude == 0.0 { 1 - self.bias } else { magnitude.log2().floor() as i32 };
        let quantum = 2f64.powi(exponent.max(1 - self.bias).min(1 << 10) - self.mantissa as i32);
        let rounded = round(magnitude / quantum) * quantum;
        let beyond = if self.saturates { self.largest } else { self.largest + 1 };
        let code = if rounded > self.formula(self.largest) { beyond } else { self.find(rounded) };
        sign | code
    }

    /// The code of a magnitude that is a value of the format, by bisection: codes and values grow together.
    fn find(&self, magnitude: f64) -> u32 {
        let (mut low, mut high) = (0, self.largest);
        while low < high {
            let middle = (low + high) / 2;
            if self.formula(middle) < magnitude { low = middle + 1 } else { high = middle }
        }
        assert_eq!(self.formula(low), magnitude, "no value of the format");
        low
    }

    /// The `f32` bits just below, at and just above the middle of each two neighbouring magnitudes, in both signs: where
    /// roundings differ.
    pub fn around_midpoints(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.largest).flat_map(|code| {
            let middle = ((self.formula(code) + self.formula(code + 1)) / 2.0) as f32;
            let bits = middle.to_bits();
            [bits - 1, bits, bits + 1].into_iter().flat_map(|bits| [bits, bits | 1 << 31])
        })
    }
}

/// Special and extreme `f32`.
pub const F32_SPECIALS: [u32; 18] = [
    0,
    1,
    0x007F_FFFF,
    0x0080_0000,
    0x3F80_0000,
    0x477F_E000,
    0x477F_EFFF,
    0x477F_F000,
    0x43E0_0000,
    0x43E8_0000,
    0x4760_0000,
    0x7F7F_FFFF,
    0x7F80_0000,
    0x7F80_0001,
    0x7FC0_0000,
    0x7FFF_FFFF,
    0x3F70_0000,
    0x3FF0_0000,
];

/// The nearest code of e4m3b15 to an `f32` that first becomes an `f16`, as the format's text has it for the codes that it
/// calls `nearest`.
#[must_use]
pub fn through_f16(value: f32) -> u32 {
    F16.nearest(f64::from(value))
}
