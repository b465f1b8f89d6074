//! The element types in vectors: what a thread loads, converts, combines and stores at once.
//!
//! | type                                      | bytes | sum, min, max | converts to every other float |
//! |-------------------------------------------|-------|---------------|-------------------------------|
//! | `f32`                                     | 4     | yes           | yes                           |
//! | [`F16`], [`Bf16`]                         | 2     | yes           | yes                           |
//! | [`E4m3`], [`E5m2`], [`E4m3B15`]           | 1     | yes           | yes                           |
//! | `u8`                                      | 1     | yes, wraps    | no                            |
//! | `i32`, `u32`                              | 4     | yes, wraps    | no                            |
//!
//! A [`Vector`] of 1, 2, 4, 8 or 16 of them is 32-bit words in registers, the first element in the lowest bits. A conversion
//! that does not exist does not compile:
//!
//! ```compile_fail
//! use warpwire_device::types::{F16, Vector};
//! let halves: Vector<F16, 4> = Vector::<u32, 4>::ZERO.convert();
//! ```
//!
//! # Bits
//!
//! Every device gives the same bits, NaN included: a NaN that a sum, minimum, maximum or conversion gives is the type's one
//! NaN with a positive sign (0x7FFF in 16 bits, 0x7F in e4m3 and e5m2, 0x80 in e4m3b15's `Standard`). The one exception is
//! the sum of `f32`, whose NaN has no stated bits. Minimum and maximum take the number where one operand is NaN, and order
//! -0 before +0.
//!
//! Conversions between types of 8 and 16 bits other than [`Bf16`] go through `f16`, the others through `f32`; both hold all
//! of a narrower type's values, so widening is exact and narrowing is one rounding. [`E4m3B15`] is the exception: it is
//! rounded from `f16` always (see [`fp8`](crate::fp8)).

mod convert;
mod e4m3b15;
mod number;
mod vector;
mod words;

pub use convert::Float;
pub use e4m3b15::{decode_by_bits, decode_by_instructions, encode};
pub use number::Number;
pub use vector::{Lanes, Vector};
pub use words::Words;

pub use crate::fp8::{E4m3, E4m3B15, E5m2, Extended, Range, Standard};
pub use crate::half::{Bf16, F16};
