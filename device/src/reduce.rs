//! Element-wise reductions over packed words.

/// What changes nothing when it is added, -0.0 among the other operands: two `f32` of -0.0.
pub const IDENTITY_F32X2: u64 = 0x8000_0000_8000_0000;

/// The element-wise sum of two words that each hold two `f32`, the first in the low half. Called by a thread.
#[inline(always)]
#[must_use]
pub fn sum_f32x2(a: u64, b: u64) -> u64 {
    let sum = |a: u64, b: u64| f32::from_bits(a as u32) + f32::from_bits(b as u32);
    u64::from(sum(a, b).to_bits()) | u64::from(sum(a >> 32, b >> 32).to_bits()) << 32
}
