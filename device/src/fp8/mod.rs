//! The 8-bit floating-point types: [`E4m3`] and [`E5m2`] as the Open Compute Project defines them, and [`E4m3B15`].
//!
//! Each is a code of 8 bits with its scalar conversions, in integer arithmetic and `const`. Kernels convert vectors
//! ([`types::Vector`](crate::types::Vector)), by instructions of the GPU where it has them; the results are the same to the
//! last bit.
//!
//! # e4m3b15
//!
//! One sign bit, four exponent bits with bias 15, three mantissa bits: code `s eeee mmm` is
//!
//! - (-1)^s × (1 + mmm/8) × 2^(eeee - 15) where eeee is not 0,
//! - (-1)^s × mmm/8 × 2^-14 where it is.
//!
//! The bias is that of [`F16`](crate::half::F16), so a magnitude is the `f16`'s without its leading exponent bit, which is 0
//! below 2, and without its last 7 mantissa bits. Subnormal values included, a code's magnitude is the `f16` magnitude's bits
//! shifted by 7.
//!
//! What the 256 codes mean is read in two ways, and which one is part of the type: `E4m3B15<Standard>`, the default, and
//! `E4m3B15<Extended>`. `value` is the formula above.
//!
//! | codes        | [`Standard`] | [`Extended`] | what they are                                            |
//! |--------------|--------------|--------------|----------------------------------------------------------|
//! | 0x00..=0x77  | value        | value        | +0 to 0.9375                                             |
//! | 0x78..=0x7F  | NaN          | value        | 1.0 to 1.875                                             |
//! | 0x80..=0x80  | NaN          | value        | -0                                                       |
//! | 0x81..=0xF7  | value        | value        | -2^-17 to -0.9375                                        |
//! | 0xF8..=0xFF  | NaN          | value        | -1.0 to -1.875                                           |
//!
//! Decoding is exact: every value is an `f16`. NaN decodes to the `f16` 0x7FFF.
//!
//! ## Rounding
//!
//! Encoding starts from `f16`. Half of the last place that stays is added to the magnitude, and what is below that place is
//! dropped: to the nearest value, and a tie goes away from zero. `nearest` below is that. The rows are all of the 65,536
//! `f16` bit patterns; the codes on the right are literal.
//!
//! | f16 bits       | [`Standard`] | [`Extended`] | what they are                                            |
//! |----------------|--------------|--------------|----------------------------------------------------------|
//! | 0x0000..=0x003F | 0x00        | 0x00         | +0, and what lies nearer to it than to 2^-17             |
//! | 0x0040..=0x3BBF | nearest     | nearest      | subnormal and normal values to 0.9375                    |
//! | 0x3BC0..=0x3FBF | 0x77        | nearest      | values to 1.875, which `Standard` saturates              |
//! | 0x3FC0..=0x7C00 | 0x77        | 0x7F         | what is larger, and +infinity: saturates                 |
//! | 0x7C01..=0x7FFF | 0x80        | 0x7F         | NaN                                                      |
//! | 0x8000..=0x803F | 0x00        | 0x80         | -0, and what rounds to it: `Standard` has no -0          |
//! | 0x8040..=0xBBBF | nearest     | nearest      | subnormal and normal values to -0.9375                   |
//! | 0xBBC0..=0xBFBF | 0xF7        | nearest      | values to -1.875, which `Standard` saturates             |
//! | 0xBFC0..=0xFC00 | 0xF7        | 0xFF         | what is larger, and -infinity: saturates                 |
//! | 0xFC01..=0xFFFF | 0x80        | 0xFF         | NaN with its sign set                                    |
//!
//! `f32` and `bf16` go through `f16`: first to the nearest `f16`, ties to even, then by the rule above. That is two
//! roundings: an `f32` just below the middle of two codes may round to the middle first, and then up. A NaN loses its
//! sign on the way, and becomes 0x7F in `Extended`.
//!
//! The tests read both tables from this text.

mod e4m3b15;
mod ocp;
mod range;

pub(crate) use e4m3b15::DROPPED;
pub use e4m3b15::E4m3B15;
pub use ocp::{E4m3, E5m2};
pub use range::{Extended, Range, Standard};
