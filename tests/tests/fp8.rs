//! The fp8 types and the 16-bit ones, exhaustively, against `f64` arithmetic and the tables of the documentation.

use std::io::Write;

use warpwire_device::types::{
    Bf16, E4m3, E4m3B15, E5m2, Extended, F16, Float, Lanes, Number, Standard, Vector, decode_by_bits,
    decode_by_instructions,
};
use warpwire_tests::reference::{self, Format, through_f16};
use warpwire_tests::tables::{Reading, decoded, encoded};

/// Says how much a test covered, past the harness.
fn covered(what: &str, count: usize) {
    // Where nobody reads standard error, nobody misses the line.
    let _ = writeln!(std::io::stderr(), "{what}: {count} covered");
}

/// The two readings with their tables.
fn readings() -> [(Reading, Vec<u16>, Vec<u8>); 2] {
    [Reading::Standard, Reading::Extended].map(|reading| (reading, decoded(reading), encoded(reading)))
}

fn encode(reading: Reading, value: F16) -> u8 {
    match reading {
        Reading::Standard => E4m3B15::<Standard>::from_f16(value).to_bits(),
        Reading::Extended => E4m3B15::<Extended>::from_f16(value).to_bits(),
    }
}

fn encode_f32(reading: Reading, value: f32) -> u8 {
    match reading {
        Reading::Standard => E4m3B15::<Standard>::from_f32(value).to_bits(),
        Reading::Extended => E4m3B15::<Extended>::from_f32(value).to_bits(),
    }
}

fn decode(reading: Reading, code: u8) -> u16 {
    match reading {
        Reading::Standard => E4m3B15::<Standard>::from_bits(code).to_f16().to_bits(),
        Reading::Extended => E4m3B15::<Extended>::from_bits(code).to_f16().to_bits(),
    }
}

#[test]
fn every_code_decodes_as_the_table_says() {
    for (reading, table, _) in readings() {
        for code in 0..=u8::MAX {
            assert_eq!(decode(reading, code), table[usize::from(code)], "{reading:?} {code:#04x}");
        }
    }
    covered("codes of e4m3b15, scalar", 2 * 256);
}

#[test]
fn every_f16_encodes_as_the_table_says() {
    for (reading, _, table) in readings() {
        for bits in 0..=u16::MAX {
            let code = encode(reading, F16::from_bits(bits));
            assert_eq!(code, table[usize::from(bits)], "{reading:?} {bits:#06x}");
        }
    }
    covered("f16 inputs of e4m3b15, scalar", 2 * 65536);
}

#[test]
fn every_number_comes_back() {
    for (reading, values, _) in readings() {
        for code in 0..=u8::MAX {
            let value = values[usize::from(code)];
            let expected = if value == 0x7FFF { 0x80 } else { code };
            assert_eq!(encode(reading, F16::from_bits(value)), expected, "{reading:?} {code:#04x}");
        }
    }
}

#[test]
fn magnitudes_grow_with_their_codes() {
    for code in 0..0x7F {
        let value = |code| E4m3B15::<Extended>::from_bits(code).to_f32();
        assert!(value(code) < value(code + 1), "{code:#04x}");
    }
    for (code, value) in [
        (0x00, 0.0),
        (0x01, 2f32.powi(-17)),
        (0x08, 2f32.powi(-14)),
        (0x70, 0.5),
        (0x78, 1.0),
        (0x79, 1.125),
        (0x7F, 1.875),
        (0xFF, -1.875),
    ] {
        assert_eq!(E4m3B15::<Extended>::from_bits(code).to_f32(), value, "{code:#04x}");
    }
    assert!(E4m3B15::<Extended>::from_bits(0x80).to_f32().is_sign_negative());
    assert_eq!(E4m3B15::<Standard>::LARGEST.to_f32(), 0.9375);
    assert!((0..=u8::MAX).all(|code| E4m3B15::<Extended>::from_bits(code).to_f32().is_finite()));
}

#[test]
fn special_values_encode_as_stated() {
    let (standard, extended) =
        (|value| encode_f32(Reading::Standard, value), |value| encode_f32(Reading::Extended, value));
    for value in [f32::INFINITY, 2.0, 65504.0, 1e30] {
        assert_eq!(
            [standard(value), standard(-value), extended(value), extended(-value)],
            [0x77, 0xF7, 0x7F, 0xFF]
        );
    }
    assert_eq!([standard(f32::NAN), standard(-f32::NAN), extended(f32::NAN)], [0x80, 0x80, 0x7F]);
    // The NaN's code is no number's: nothing that is small and negative becomes it.
    for value in [-0.0, -2f32.powi(-20), -f32::from_bits(1)] {
        assert_eq!([standard(value), extended(value)], [0x00, 0x80]);
    }
}

#[test]
fn roundings_are_the_stated_ones() {
    let code = |bits| encode(Reading::Extended, F16::from_bits(bits));
    assert_eq!(code(0x3C40), 0x79, "1.0625 is a tie: away from zero");
    assert_eq!([code(0x0040), code(0x003F)], [0x01, 0x00]);
    let below = 1.0625 - 2f32.powi(-20);
    assert_eq!(encode_f32(Reading::Extended, below), 0x79, "rounded to f16 first, which is the tie");
}

#[test]
fn f32_goes_through_f16() {
    let mut count = 0;
    for (reading, _, table) in readings() {
        let inputs = reference::E4M3B15.around_midpoints().chain(reference::F16.around_midpoints());
        for bits in inputs.chain(reference::F32_SPECIALS) {
            let expected = table[through_f16(f32::from_bits(bits)) as usize];
            assert_eq!(encode_f32(reading, f32::from_bits(bits)), expected, "{reading:?} {bits:#010x}");
            count += 1;
        }
    }
    covered("f32 inputs of e4m3b15 around midpoints", count);
}

/// All 2^16 inputs of `T`, in every lane of vectors of `N`, converted to `U` as `scalar` does.
fn every_lane<T, U, const N: usize>(inputs: u32, scalar: impl Fn(T) -> U) -> usize
where
    T: Float + Lanes<N>,
    U: Float + Lanes<N>,
{
    for first in 0..inputs {
        let elements: [T; N] = std::array::from_fn(|lane| T::from_word((first + lane as u32) % inputs));
        let seen = Vector::<T, N>::from_elements(elements).convert::<U>().to_elements().map(Number::to_word);
        let expected = elements.map(|element| scalar(element).to_word());
        assert_eq!(seen, expected, "{elements:?}");
    }
    inputs as usize * N
}

/// Both directions, in vectors of every width.
fn every_width<T>(to_f16: impl Fn(T) -> F16 + Copy, from_f16: impl Fn(F16) -> T + Copy, what: &str)
where
    T: Float + Lanes<1> + Lanes<2> + Lanes<4> + Lanes<8> + Lanes<16>,
{
    let encoded = every_lane::<F16, T, 1>(65536, from_f16)
        + every_lane::<F16, T, 2>(65536, from_f16)
        + every_lane::<F16, T, 4>(65536, from_f16)
        + every_lane::<F16, T, 8>(65536, from_f16)
        + every_lane::<F16, T, 16>(65536, from_f16);
    let decoded = every_lane::<T, F16, 1>(256, to_f16)
        + every_lane::<T, F16, 2>(256, to_f16)
        + every_lane::<T, F16, 4>(256, to_f16)
        + every_lane::<T, F16, 8>(256, to_f16)
        + every_lane::<T, F16, 16>(256, to_f16);
    covered(&format!("{what}, lanes of vectors"), encoded + decoded);
}

#[test]
fn vectors_of_e4m3b15_equal_scalars() {
    every_width(E4m3B15::<Standard>::to_f16, E4m3B15::from_f16, "e4m3b15 Standard");
    every_width(E4m3B15::<Extended>::to_f16, E4m3B15::from_f16, "e4m3b15 Extended");
}

#[test]
fn vectors_of_the_ocp_types_equal_scalars() {
    every_width(E4m3::to_f16, E4m3::from_f16, "e4m3");
    every_width(E5m2::to_f16, E5m2::from_f16, "e5m2");
}

#[test]
fn both_ways_to_decode_are_the_same() {
    for word in (0..=u16::MAX).map(|pair| (u32::from(pair) * 0x1_0001) ^ 0x5A00_0000) {
        assert_eq!(
            decode_by_bits::<Standard>(word),
            decode_by_instructions::<Standard>(word),
            "{word:#010x}"
        );
    }
    covered("words decoded in both ways", 65536);
}

/// The `f64` reference for a narrowing from `f32`.
fn narrows(format: &Format, encode: impl Fn(f32) -> u32) -> usize {
    let own = format.around_midpoints();
    let inputs = own.chain(reference::F16.around_midpoints()).chain(reference::F32_SPECIALS);
    let mut count = 0;
    for bits in inputs {
        let value = f32::from_bits(bits);
        assert_eq!(encode(value), format.nearest(f64::from(value)), "{value:e} ({bits:#010x}) in {format:?}");
        count += 1;
    }
    count
}

#[test]
fn narrowing_from_f32_is_to_the_nearest() {
    let count = narrows(&reference::F16, |value| F16::from_f32(value).to_word())
        + narrows(&reference::BF16, |value| Bf16::from_f32(value).to_word())
        + narrows(&reference::E4M3, |value| E4m3::from_f32(value).to_word())
        + narrows(&reference::E5M2, |value| E5m2::from_f32(value).to_word());
    covered("f32 inputs around midpoints", count);
}

#[test]
fn every_f16_narrows_to_the_nearest_ocp_code() {
    for bits in 0..=u16::MAX {
        let (half, value) = (F16::from_bits(bits), reference::F16.value(bits.into()));
        assert_eq!(half.to_f32().is_nan(), value.is_nan());
        assert!(value.is_nan() || f64::from(half.to_f32()) == value, "{bits:#06x}");
        assert_eq!(E4m3::from_f16(half).to_word(), reference::E4M3.nearest(value), "{bits:#06x}");
        assert_eq!(E5m2::from_f16(half).to_word(), reference::E5M2.nearest(value), "{bits:#06x}");
    }
    covered("f16 inputs of e4m3 and e5m2", 2 * 65536);
}

#[test]
fn every_ocp_code_has_its_value() {
    for code in 0..=u8::MAX {
        let pairs = [
            (E4m3::from_bits(code).to_f32(), reference::E4M3.value(code.into())),
            (E5m2::from_bits(code).to_f32(), reference::E5M2.value(code.into())),
        ];
        for (seen, expected) in pairs {
            assert!(seen.is_nan() && expected.is_nan() || f64::from(seen) == expected, "{code:#04x}");
        }
    }
    covered("codes of e4m3 and e5m2", 2 * 256);
}
