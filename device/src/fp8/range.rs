//! What the codes with the largest exponent, and 0x80, mean in e4m3b15.

use core::fmt::Debug;

mod sealed {
    pub trait Sealed {}
}

/// One of the two readings of e4m3b15's 256 codes: [`Standard`] or [`Extended`].
pub trait Range: sealed::Sealed + Copy + Debug + Send + Sync + 'static {
    /// What it is called.
    const NAME: &'static str;
    /// The code of the largest finite value.
    const LARGEST: u8;
    /// Whether the codes beyond it, and 0x80, are NaN.
    const HAS_NAN: bool;
}

/// Finite values to ±0.9375; the codes with exponent 15, and 0x80, are NaN; no negative zero.
#[derive(Clone, Copy, Debug)]
pub struct Standard;

/// Every code is finite, to ±1.875; 0x80 is -0.
#[derive(Clone, Copy, Debug)]
pub struct Extended;

impl sealed::Sealed for Standard {}
impl sealed::Sealed for Extended {}

impl Range for Standard {
    const NAME: &'static str = "Standard";
    const LARGEST: u8 = 0x77;
    const HAS_NAN: bool = true;
}

impl Range for Extended {
    const NAME: &'static str = "Extended";
    const LARGEST: u8 = 0x7F;
    const HAS_NAN: bool = false;
}
