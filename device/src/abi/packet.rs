//! Words that carry their own proof of arrival.
//!
//! A packet's flag stands *inside each 64-bit word* with its data. PTX treats a vector access as separate scalar accesses
//! of at most 64 bits in no stated order ("Memory Operations on Vector Data Types", PTX ISA 8.7), so a flag vouches only
//! for the word that it stands in. The bytes are those of NCCL's and MSCCL++'s LL formats.

use core::num::NonZeroU32;

/// A packet's flag: any 32-bit number but 0, which is what freshly zeroed memory holds.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag(NonZeroU32);

impl Flag {
    /// The flag of a group's first round.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// `value` as a flag; 0, the value of untouched memory, gives [`Flag::FIRST`].
    #[inline(always)]
    #[must_use]
    pub const fn from_counter(value: u32) -> Self {
        match NonZeroU32::new(value) {
            Some(value) => Self(value),
            None => Self::FIRST,
        }
    }

    /// The flag of the next round: one more, past 0 at the wrap.
    #[inline(always)]
    #[must_use]
    pub const fn next(self) -> Self {
        Self::from_counter(self.0.get().wrapping_add(1))
    }

    /// The number.
    #[inline(always)]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// A packet of 8 bytes that carries 4: one word, written and read by one 64-bit access.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ll8 {
    /// The 4 bytes carried.
    pub data: u32,
    /// The flag.
    pub flag: u32,
}

/// A packet of 16 bytes that carries 8: two words, each with its own flag, written and read by one vector access.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ll16 {
    /// The first word: bytes 0 to 3 of the payload.
    pub low: Ll8,
    /// The second word: bytes 4 to 7.
    pub high: Ll8,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Ll8 {}
    impl Sealed for super::Ll16 {}
}

/// The packet formats: [`Ll8`] and [`Ll16`].
pub trait Packet: sealed::Sealed + Copy + Send + Sync + 'static {
    /// What one packet carries.
    type Payload: super::Pod + Default;
    /// Bytes that one packet carries.
    const PAYLOAD_BYTES: u64 = size_of::<Self::Payload>() as u64;
}

impl Packet for Ll8 {
    type Payload = u32;
}

impl Packet for Ll16 {
    type Payload = u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_skip_zero_at_the_wrap() {
        assert_eq!(Flag::from_counter(u32::MAX).next().get(), 1);
        assert_eq!(Flag::from_counter(0).get(), 1);
        assert_eq!(Flag::from_counter(0xFFFF_FFFE).next().get(), 0xFFFF_FFFF);
    }
}
