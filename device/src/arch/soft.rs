//! Pairs of fp8 elements by integer arithmetic, where there are no instructions for them.

macro_rules! fp8 {
    ($Type:ident: $ptx:literal, $from_f32x2:ident, $from_f16x2:ident, $to_f16x2:ident) => {
        #[doc = concat!("Two `f32` to [`", stringify!($Type), "`](crate::fp8::", stringify!($Type), "): nearest, ties to even, saturating; NaN gives 0x7F.")]
        #[inline]
        #[must_use]
        pub fn $from_f32x2(low: u32, high: u32) -> u16 {
            let code = |bits: u32| u16::from($crate::fp8::$Type::from_f32(f32::from_bits(bits)).to_bits());
            code(low) | code(high) << 8
        }

        #[doc = concat!("Two `f16` to [`", stringify!($Type), "`](crate::fp8::", stringify!($Type), "): nearest, ties to even, saturating; NaN gives 0x7F.")]
        #[inline]
        #[must_use]
        pub fn $from_f16x2(halves: u32) -> u16 {
            let code = |half: u32| {
                let half = $crate::half::F16::from_bits(half as u16);
                u16::from($crate::fp8::$Type::from_f16(half).to_bits())
            };
            code(halves) | code(halves >> 16) << 8
        }

        #[doc = concat!("Two [`", stringify!($Type), "`](crate::fp8::", stringify!($Type), ") to `f16`, exactly; NaN gives 0x7FFF.")]
        #[inline]
        #[must_use]
        pub fn $to_f16x2(pair: u16) -> u32 {
            let half = |code: u16| {
                u32::from($crate::fp8::$Type::from_bits(code as u8).to_f16().to_bits())
            };
            half(pair) | half(pair >> 8) << 16
        }
    };
}
pub(super) use fp8;
