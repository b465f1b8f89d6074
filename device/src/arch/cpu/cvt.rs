//! Conversions between floating-point types: the names of `arch::nvptx::cvt` in integer arithmetic. An `f32` is given and
//! returned as its bits; of a pair, the low half is the first element.

use crate::arch::soft::fp8;
use crate::half::{Bf16, F16};

/// Two `f32` to the nearest `f16`, ties to even.
#[inline]
#[must_use]
pub fn f16x2_from_f32x2(low: u32, high: u32) -> u32 {
    let half = |bits| u32::from(F16::from_f32(f32::from_bits(bits)).to_bits());
    half(low) | half(high) << 16
}

/// Two `f32` to the nearest `bf16`, ties to even.
#[inline]
#[must_use]
pub fn bf16x2_from_f32x2(low: u32, high: u32) -> u32 {
    let half = |bits| u32::from(Bf16::from_f32(f32::from_bits(bits)).to_bits());
    half(low) | half(high) << 16
}

/// An `f16` to `f32`, exactly.
#[inline]
#[must_use]
pub fn f32_from_f16(value: u16) -> u32 {
    F16::from_bits(value).to_f32().to_bits()
}

/// Whether code should go through the conversions of the OCP fp8 types. They are no single instructions here; but so the
/// CPU runs what a GPU that has them runs.
pub const FP8_INSTRUCTIONS: bool = true;

fp8!(E4m3: "e4m3x2", e4m3x2_from_f32x2, e4m3x2_from_f16x2, f16x2_from_e4m3x2);
fp8!(E5m2: "e5m2x2", e5m2x2_from_f32x2, e5m2x2_from_f16x2, f16x2_from_e5m2x2);
