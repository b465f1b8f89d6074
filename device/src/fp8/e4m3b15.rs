//! The scalar conversions of e4m3b15: what the format's table says, one element at a time.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use super::range::{Range, Standard};
use crate::abi::Pod;
use crate::half::{F16, HALF_NAN};

/// Bits of an `f16`'s mantissa that the format does not have.
pub(crate) const DROPPED: u32 = 7;

/// fp8 e4m3b15: 4 exponent bits with bias 15, 3 mantissa bits; see the [module](super) for its rules. The range is part of
/// the type: the same code means one value in [`Standard`], the default, and may mean another in
/// [`Extended`](super::Extended).
#[repr(transparent)]
pub struct E4m3B15<R: Range = Standard> {
    code: u8,
    range: PhantomData<R>,
}

// SAFETY: a `u8`: no padding, every bit pattern valid.
unsafe impl<R: Range> Pod for E4m3B15<R> {}

impl<R: Range> E4m3B15<R> {
    /// The largest finite value.
    pub const LARGEST: Self = Self::from_bits(R::LARGEST);

    /// Takes a code.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(code: u8) -> Self {
        Self { code, range: PhantomData }
    }

    /// The code.
    #[inline(always)]
    #[must_use]
    pub const fn to_bits(self) -> u8 {
        self.code
    }

    /// The nearest value, ties away from zero; saturates. The [module](super)'s table has the special values.
    #[inline]
    #[must_use]
    pub const fn from_f16(value: F16) -> Self {
        let (sign, magnitude) = ((value.to_bits() >> 8) as u8 & 0x80, value.to_bits() & 0x7FFF);
        if R::HAS_NAN && magnitude > 0x7C00 {
            return Self::from_bits(0x80);
        }
        // Half of the last place is added and the rest dropped: a tie goes up. A carry goes into the exponent, which is
        // where it belongs.
        let rounded = (magnitude + (1 << (DROPPED - 1))) >> DROPPED;
        let code = if rounded > R::LARGEST as u16 { R::LARGEST } else { rounded as u8 };
        // Where 0x80 is the NaN, there is no negative zero.
        Self::from_bits(if R::HAS_NAN && code == 0 { 0 } else { sign | code })
    }

    /// The nearest `f16`, then that one's nearest value: two roundings.
    #[inline]
    #[must_use]
    pub const fn from_f32(value: f32) -> Self {
        Self::from_f16(F16::from_f32(value))
    }

    /// The same value, exactly.
    #[inline]
    #[must_use]
    pub const fn to_f16(self) -> F16 {
        if self.is_nan() {
            return F16::from_bits(HALF_NAN);
        }
        F16::from_bits((self.code as u16 & 0x80) << 8 | (self.code as u16 & 0x7F) << DROPPED)
    }

    /// The same value, exactly.
    #[inline]
    #[must_use]
    pub const fn to_f32(self) -> f32 {
        self.to_f16().to_f32()
    }

    /// Whether the code is none of a number.
    #[inline]
    #[must_use]
    pub const fn is_nan(self) -> bool {
        R::HAS_NAN && (self.code & 0x7F > R::LARGEST || self.code == 0x80)
    }
}

impl<R: Range> Clone for E4m3B15<R> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Range> Copy for E4m3B15<R> {}

impl<R: Range> Default for E4m3B15<R> {
    fn default() -> Self {
        Self::from_bits(0)
    }
}

/// Equality of the codes, as of all the fp8 types.
impl<R: Range> PartialEq for E4m3B15<R> {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl<R: Range> Eq for E4m3B15<R> {}

impl<R: Range> Hash for E4m3B15<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.code.hash(state);
    }
}

impl<R: Range> fmt::Debug for E4m3B15<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E4m3B15<{}>({:#04x})", R::NAME, self.code)
    }
}
