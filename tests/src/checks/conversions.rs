//! Conversions between element types: the library's kernels, and every width of vector.

use warpwire::abi::ElementType;
use warpwire::device::{Buffer, Device, LaunchConfig, Stream};
use warpwire::kernel::Kernel;
use warpwire_check_kernels::convert::{Convert, ConvertArgs as CheckArgs, PAIRS};
use warpwire_device::types::{Bf16, E4m3, E4m3B15, E5m2, Extended, F16, Standard};
use warpwire_kernels::convert::{
    ConvertArgs, E4m3B15ExtendedToF16, E4m3B15ExtendedToF32, E4m3B15ToF16, E4m3B15ToF32, F16ToE4m3B15,
    F16ToE4m3B15Extended, F32ToE4m3B15, F32ToE4m3B15Extended,
};

use super::check_module::check_module;
use super::rig::{POISON, filled, function, zeroed};
use crate::reference::{self, through_f16};
use crate::tables::{Reading, decoded, encoded};

/// One of the library's conversions on one device.
struct Conversion<'d> {
    device: &'d Device,
    stream: Stream,
}

impl<'d> Conversion<'d> {
    fn new(device: &'d Device) -> Self {
        Self { device, stream: device.stream().unwrap() }
    }

    /// What `K` makes of `input`, with both buffers so many bytes off their alignment; nothing around may change.
    fn run<K: Kernel<Args = ConvertArgs>>(
        &self,
        input: &[u8],
        count: usize,
        result_bytes: usize,
        offsets: [usize; 2],
        shape: LaunchConfig,
    ) -> Vec<u8> {
        let from: Buffer<u8> = zeroed(self.device, offsets[0] + input.len().max(1));
        if !input.is_empty() {
            from.write_at(offsets[0], input).unwrap();
        }
        let bytes = count * result_bytes;
        let to = filled(self.device, &vec![POISON; 16 + offsets[1] + bytes + 16]);
        let args = ConvertArgs {
            from: from.address().byte_add(offsets[0] as u64),
            to: to.address().byte_add((16 + offsets[1]) as u64),
            count: count as u64,
        };
        // SAFETY: both ranges lie in buffers that outlive the launch.
        unsafe { self.stream.launch(&function::<K>(self.device), shape, args) }.unwrap();
        self.stream.synchronize().unwrap();
        let seen = to.read().unwrap();
        let (before, rest) = seen.split_at(16 + offsets[1]);
        let (result, behind) = rest.split_at(bytes);
        assert!(before.iter().chain(behind).all(|&byte| byte == POISON), "{} wrote outside", K::NAME);
        result.to_vec()
    }
}

/// 16-bit numbers as bytes.
fn bytes16(values: impl IntoIterator<Item = u16>) -> Vec<u8> {
    values.into_iter().flat_map(u16::to_le_bytes).collect()
}

/// 32-bit numbers as bytes.
fn bytes32(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Fails with the first element that differs.
fn assert_same(seen: &[u8], expected: &[u8], size: usize, what: &str) {
    assert_eq!(seen.len(), expected.len(), "{what}");
    if let Some(byte) = (0..seen.len()).find(|&i| seen[i] != expected[i]) {
        let element = byte / size;
        let range = element * size..(element + 1) * size;
        panic!("{what}: element {element} is {:02x?}, not {:02x?}", &seen[range.clone()], &expected[range]);
    }
}

/// A grid with several turns.
const SHAPE: LaunchConfig = LaunchConfig::new(3, 64);

/// All 65,536 `f16`, in both ranges.
pub fn every_f16_to_e4m3b15(device: &Device) {
    let conversion = Conversion::new(device);
    let input = bytes16(0..=u16::MAX);
    let standard = conversion.run::<F16ToE4m3B15>(&input, 65536, 1, [0, 0], SHAPE);
    assert_same(&standard, &encoded(Reading::Standard), 1, "f16 to e4m3b15");
    let extended = conversion.run::<F16ToE4m3B15Extended>(&input, 65536, 1, [0, 0], SHAPE);
    assert_same(&extended, &encoded(Reading::Extended), 1, "f16 to e4m3b15 Extended");
}

/// All 256 codes, in both ranges, to `f16` and to `f32`.
pub fn every_e4m3b15_to_f16(device: &Device) {
    let conversion = Conversion::new(device);
    let codes: Vec<u8> = (0..=u8::MAX).collect();
    let wide = |halves: &[u16]| bytes32(halves.iter().map(|&half| F16::from_bits(half).to_f32().to_bits()));
    let (standard, extended) = (decoded(Reading::Standard), decoded(Reading::Extended));
    let seen = conversion.run::<E4m3B15ToF16>(&codes, 256, 2, [0, 0], SHAPE);
    assert_same(&seen, &bytes16(standard.iter().copied()), 2, "e4m3b15 to f16");
    let seen = conversion.run::<E4m3B15ExtendedToF16>(&codes, 256, 2, [0, 0], SHAPE);
    assert_same(&seen, &bytes16(extended.iter().copied()), 2, "e4m3b15 Extended to f16");
    let seen = conversion.run::<E4m3B15ToF32>(&codes, 256, 4, [0, 0], SHAPE);
    assert_same(&seen, &wide(&standard), 4, "e4m3b15 to f32");
    let seen = conversion.run::<E4m3B15ExtendedToF32>(&codes, 256, 4, [0, 0], SHAPE);
    assert_same(&seen, &wide(&extended), 4, "e4m3b15 Extended to f32");
}

/// `f32` around the middle of every two neighbouring codes and of every two `f16`, and special ones, through `f16`.
pub fn f32_to_e4m3b15_and_back(device: &Device) {
    let conversion = Conversion::new(device);
    let inputs: Vec<u32> = f32_inputs();
    let through: Vec<u32> = inputs.iter().map(|&bits| through_f16(f32::from_bits(bits))).collect();
    let input = bytes32(inputs);
    let expected = |reading| -> Vec<u8> {
        let table = encoded(reading);
        through.iter().map(|&half| table[half as usize]).collect()
    };
    let seen = conversion.run::<F32ToE4m3B15>(&input, through.len(), 1, [0, 0], SHAPE);
    assert_same(&seen, &expected(Reading::Standard), 1, "f32 to e4m3b15");
    let seen = conversion.run::<F32ToE4m3B15Extended>(&input, through.len(), 1, [0, 0], SHAPE);
    assert_same(&seen, &expected(Reading::Extended), 1, "f32 to e4m3b15 Extended");
}

/// Lengths around a vector and a turn, and buffers that are aligned to an element alone: the right elements, and nothing
/// around them.
pub fn tails_and_misaligned_buffers(device: &Device) {
    let conversion = Conversion::new(device);
    let table = encoded(Reading::Standard);
    let values = decoded(Reading::Standard);
    let small = LaunchConfig::new(2, 7);
    for count in (0..=36).chain([55, 56, 57, 111, 112, 113, 448, 449, 1000]) {
        for offsets in [[0, 0], [2, 0], [0, 1], [6, 3], [14, 15]] {
            let halves: Vec<u16> = (0..count).map(|i| (i * 659 + count * 31) as u16).collect();
            let what = format!("{count} elements, offsets {offsets:?}");
            let input = bytes16(halves.iter().copied());
            let seen = conversion.run::<F16ToE4m3B15>(&input, count, 1, offsets, small);
            let expected: Vec<u8> = halves.iter().map(|&half| table[usize::from(half)]).collect();
            assert_same(&seen, &expected, 1, &what);

            let codes: Vec<u8> = halves.iter().map(|&half| half as u8).collect();
            let seen = conversion.run::<E4m3B15ToF16>(&codes, count, 2, [offsets[1], offsets[0]], small);
            let expected = bytes16(codes.iter().map(|&code| values[usize::from(code)]));
            assert_same(&seen, &expected, 2, &what);
        }
    }
}

/// Every pair of types that the check's kernel knows, in vectors of every width that it knows, on all inputs of 8 and of 16
/// bits; of 32 bits on those around the middle of every two values of a narrower type, and special ones.
pub fn every_pair_in_every_width(device: &Device) {
    let Some(module) = check_module(device, "every_pair_in_every_width") else { return };
    let function = module.function::<Convert>().unwrap();
    let stream = device.stream().unwrap();
    for &(source, target, widths) in PAIRS {
        let inputs: Vec<u32> = match source.bytes() {
            1 => (0..=0xFF).collect(),
            2 => (0..=0xFFFF).collect(),
            _ => f32_inputs(),
        };
        let expected: Vec<u8> =
            inputs.iter().flat_map(|&bits| word_bytes(target, convert(source, target, bits))).collect();
        let from =
            filled(device, &inputs.iter().flat_map(|&bits| word_bytes(source, bits)).collect::<Vec<u8>>());
        for &width in widths {
            let to = filled(device, &vec![POISON; expected.len()]);
            let args = CheckArgs {
                from: from.address(),
                to: to.address(),
                vectors: (inputs.len() / width as usize) as u64,
                source: source as u32,
                target: target as u32,
                width,
                reserved: 0,
            };
            // SAFETY: both ranges lie in buffers that outlive the launch.
            unsafe { stream.launch(&function, SHAPE, args) }.unwrap();
            stream.synchronize().unwrap();
            let what = format!("{source} to {target}, {width} at a time");
            assert_same(&to.read().unwrap(), &expected, target.bytes(), &what);
        }
    }
}

/// A multiple of 16 of them.
fn f32_inputs() -> Vec<u32> {
    let formats = [reference::E4M3B15, reference::E4M3, reference::E5M2, reference::F16];
    let mut inputs: Vec<u32> = formats.iter().flat_map(|format| format.around_midpoints()).collect();
    inputs.extend(reference::F32_SPECIALS);
    inputs.extend(reference::F32_SPECIALS.map(|bits| bits | 1 << 31));
    inputs.resize(inputs.len().next_multiple_of(16), 0);
    inputs
}

/// An element's bytes.
fn word_bytes(of: ElementType, bits: u32) -> Vec<u8> {
    bits.to_le_bytes()[..of.bytes()].to_vec()
}

/// The conversion of one element by the scalar functions.
fn convert(source: ElementType, target: ElementType, bits: u32) -> u32 {
    let half = F16::from_bits(bits as u16);
    match (source, target) {
        // From an `f16` itself: a NaN's sign counts in the range `Extended`.
        (ElementType::F16, ElementType::E4m3B15) => E4m3B15::<Standard>::from_f16(half).to_bits().into(),
        (ElementType::F16, ElementType::E4m3B15Extended) => {
            E4m3B15::<Extended>::from_f16(half).to_bits().into()
        }
        _ => narrow(target, widen(source, bits)),
    }
}

fn widen(source: ElementType, bits: u32) -> f32 {
    match source {
        ElementType::F32 => f32::from_bits(bits),
        ElementType::F16 => F16::from_bits(bits as u16).to_f32(),
        ElementType::Bf16 => Bf16::from_bits(bits as u16).to_f32(),
        ElementType::E4m3 => E4m3::from_bits(bits as u8).to_f32(),
        ElementType::E5m2 => E5m2::from_bits(bits as u8).to_f32(),
        ElementType::E4m3B15 => E4m3B15::<Standard>::from_bits(bits as u8).to_f32(),
        ElementType::E4m3B15Extended => E4m3B15::<Extended>::from_bits(bits as u8).to_f32(),
        ElementType::U8 | ElementType::I32 | ElementType::U32 => panic!("{source} does not convert"),
    }
}

fn narrow(target: ElementType, value: f32) -> u32 {
    match target {
        ElementType::F32 => value.to_bits(),
        ElementType::F16 => F16::from_f32(value).to_bits().into(),
        ElementType::Bf16 => Bf16::from_f32(value).to_bits().into(),
        ElementType::E4m3 => E4m3::from_f32(value).to_bits().into(),
        ElementType::E5m2 => E5m2::from_f32(value).to_bits().into(),
        ElementType::E4m3B15 => E4m3B15::<Standard>::from_f32(value).to_bits().into(),
        ElementType::E4m3B15Extended => E4m3B15::<Extended>::from_f32(value).to_bits().into(),
        ElementType::U8 | ElementType::I32 | ElementType::U32 => panic!("{target} does not convert"),
    }
}
