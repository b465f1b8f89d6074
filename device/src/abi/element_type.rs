//! The element types by name, for choices that are made at run time.

use core::fmt;

/// An element type.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementType {
    /// `f32`.
    F32 = 0,
    /// IEEE 754 binary16.
    F16 = 1,
    /// bfloat16.
    Bf16 = 2,
    /// fp8 e4m3 (OCP, without infinities).
    E4m3 = 3,
    /// fp8 e5m2 (OCP).
    E5m2 = 4,
    /// fp8 e4m3b15, the range `Standard`.
    E4m3B15 = 5,
    /// fp8 e4m3b15, the range `Extended`.
    E4m3B15Extended = 6,
    /// `u8`.
    U8 = 7,
    /// `i32`.
    I32 = 8,
    /// `u32`.
    U32 = 9,
}

impl ElementType {
    /// Every type, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::E4m3,
        Self::E5m2,
        Self::E4m3B15,
        Self::E4m3B15Extended,
        Self::U8,
        Self::I32,
        Self::U32,
    ];

    /// Bytes of an element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::E4m3 | Self::E5m2 | Self::E4m3B15 | Self::E4m3B15Extended | Self::U8 => 1,
        }
    }

    /// The types that elements of this one may be accumulated in, its own first: what the device code's
    /// [`Accumulator`](crate::reduce::Accumulator) allows.
    #[must_use]
    pub const fn accumulators(self) -> &'static [Self] {
        match self {
            Self::F32 => &[Self::F32],
            Self::F16 => &[Self::F16, Self::F32],
            Self::Bf16 => &[Self::Bf16, Self::F32],
            Self::E4m3 => &[Self::E4m3, Self::F16, Self::F32],
            Self::E5m2 => &[Self::E5m2, Self::F16, Self::F32],
            Self::E4m3B15 => &[Self::E4m3B15, Self::F16, Self::F32],
            Self::E4m3B15Extended => &[Self::E4m3B15Extended, Self::F16, Self::F32],
            Self::U8 => &[Self::U8],
            Self::I32 => &[Self::I32],
            Self::U32 => &[Self::U32],
        }
    }

    /// Whether it is a floating-point type: those convert into each other, the integers into nothing.
    #[must_use]
    pub const fn is_float(self) -> bool {
        !matches!(self, Self::U8 | Self::I32 | Self::U32)
    }

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::E4m3 => "fp8_e4m3",
            Self::E5m2 => "fp8_e5m2",
            Self::E4m3B15 => "fp8_e4m3b15",
            Self::E4m3B15Extended => "fp8_e4m3b15_extended",
            Self::U8 => "u8",
            Self::I32 => "i32",
            Self::U32 => "u32",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
