//! `fp8`: conversions of buffers between `f32`, `f16` and e4m3b15.

use anyhow::ensure;
use warpwire::Error;
use warpwire::abi::{ElementType, Global};
use warpwire::device::{Buffer, LaunchConfig};
use warpwire::types::{E4m3B15, Extended, F16, Standard};
use warpwire_kernels::convert::{
    ConvertArgs, E4m3B15ExtendedToF16, E4m3B15ExtendedToF32, E4m3B15ToF16, E4m3B15ToF32, F16ToE4m3B15,
    F16ToE4m3B15Extended, F32ToE4m3B15, F32ToE4m3B15Extended,
};

use crate::bench::case::{Case, Contestant, Row};
use crate::bench::kernels::HasBaseline;
use crate::bench::setup::Bench;
use crate::bench::transfer::{Transfer, Value};

/// The row.
pub const ROW: Row = Row {
    name: "fp8",
    about: "conversions to and from fp8_e4m3b15; GB/s count what is read and what is written, as the copy of as many bytes does",
    cases,
};

/// Elements that are checked at each end of a buffer.
const CHECKED: usize = 1 << 18;
/// The least that a device has to have room for.
const LEAST: usize = 1 << 18;

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    use ElementType::{E4m3B15, E4m3B15Extended, F16, F32};
    let elements = bench.pick(1 << 30, 1 << 18);
    Ok(vec![
        case::<F32ToE4m3B15>(bench, elements, F32, E4m3B15, 4160.0),
        case::<E4m3B15ToF32>(bench, elements, E4m3B15, F32, 4000.0),
        case::<F16ToE4m3B15>(bench, elements, F16, E4m3B15, 4120.0),
        case::<E4m3B15ToF16>(bench, elements, E4m3B15, F16, 4000.0),
        case::<F32ToE4m3B15Extended>(bench, elements, F32, E4m3B15Extended, 4160.0),
        case::<E4m3B15ExtendedToF32>(bench, elements, E4m3B15Extended, F32, 4000.0),
        case::<F16ToE4m3B15Extended>(bench, elements, F16, E4m3B15Extended, 4120.0),
        case::<E4m3B15ExtendedToF16>(bench, elements, E4m3B15Extended, F16, 4000.0),
    ])
}

fn case<'b, K: HasBaseline<Args = ConvertArgs>>(
    bench: &Bench,
    elements: usize,
    from: ElementType,
    to: ElementType,
    aim: f64,
) -> Case<'b> {
    let configuration = format!("2^{} elements, best grid", elements.ilog2());
    let value = Value::Rate(elements * (from.bytes() + to.bytes()));
    Case::new(format!("{from} to {to}"), configuration, value.unit(), move |bench| {
        let pair = Pair::new(bench, elements, from, to)?;
        contestants::<K>(bench, pair)
    })
    .aim(bench.aim(aim))
}

/// The elements of both types in one buffer, so that a copy of half of it moves as many bytes as a conversion does.
struct Pair {
    memory: Buffer<u8>,
    elements: usize,
    source: ElementType,
    target: ElementType,
}

impl Pair {
    /// Room for `elements` of each, or half as many as often as it takes to fit the device; the source with a pattern in it.
    fn new(bench: &Bench, elements: usize, source: ElementType, target: ElementType) -> anyhow::Result<Self> {
        let bytes = source.bytes() + target.bytes();
        let mut elements = elements;
        let memory = loop {
            match bench.device.allocate(elements * bytes) {
                Err(Error::OutOfMemory { .. }) if elements > LEAST => elements /= 2,
                allocated => break allocated?,
            }
        };
        let pair = Self { memory, elements, source, target };
        let pattern: Vec<u8> = (0..CHECKED as u32)
            .flat_map(|i| pair.element(i).to_le_bytes()[..source.bytes()].to_vec())
            .collect();
        pair.memory.write_at(0, &pattern)?;
        // The pattern over and over, each copy as long as what is there.
        let mut filled = pattern.len();
        while filled < elements * source.bytes() {
            let length = filled.min(elements * source.bytes() - filled);
            let (from, to) = (pair.memory.address(), pair.memory.address().byte_add(filled as u64));
            // SAFETY: two ranges of the buffer, one behind the other; the stream is waited for below.
            unsafe { bench.stream.copy(to, from, length) }?;
            filled += length;
        }
        bench.stream.synchronize()?;
        Ok(pair)
    }

    /// Source element `i` of the pattern.
    fn element(&self, i: u32) -> u32 {
        // A step without a common divisor comes by all values, neighbours far apart.
        let scattered = i.wrapping_mul(0x9E37_79B1);
        match self.source {
            ElementType::F32 => F16::from_bits((scattered >> 16) as u16).to_f32().to_bits(),
            _ => scattered >> 16,
        }
    }

    /// What it is converted to.
    fn expected(&self, i: u32) -> u32 {
        let bits = self.element(i);
        let half = match self.source {
            ElementType::F32 => F16::from_f32(f32::from_bits(bits)),
            ElementType::F16 => F16::from_bits(bits as u16),
            ElementType::E4m3B15 => E4m3B15::<Standard>::from_bits(bits as u8).to_f16(),
            _ => E4m3B15::<Extended>::from_bits(bits as u8).to_f16(),
        };
        match self.target {
            ElementType::F32 => half.to_f32().to_bits(),
            ElementType::F16 => half.to_bits().into(),
            ElementType::E4m3B15 => E4m3B15::<Standard>::from_f16(half).to_bits().into(),
            _ => E4m3B15::<Extended>::from_f16(half).to_bits().into(),
        }
    }

    fn source(&self) -> Global<u8> {
        self.memory.address()
    }

    fn target_offset(&self) -> usize {
        self.elements * self.source.bytes()
    }

    /// Makes the ends of the target hold nothing that a conversion could have written.
    fn poison(&self) -> anyhow::Result<()> {
        for first in self.checked() {
            let poison = vec![0xA5; CHECKED.min(self.elements) * self.target.bytes()];
            self.memory.write_at(self.target_offset() + first * self.target.bytes(), &poison)?;
        }
        Ok(())
    }

    /// Fails unless both ends of the target are what the source's are converted to.
    fn check(&self) -> anyhow::Result<()> {
        let size = self.target.bytes();
        for first in self.checked() {
            let mut seen = vec![0; CHECKED.min(self.elements) * size];
            self.memory.read_at(self.target_offset() + first * size, &mut seen)?;
            for (i, seen) in (first..).zip(seen.chunks_exact(size)) {
                let expected = self.expected((i % CHECKED) as u32).to_le_bytes();
                ensure!(
                    seen == &expected[..size],
                    "element {i} became {seen:02x?}, not {:02x?}",
                    &expected[..size]
                );
            }
        }
        Ok(())
    }

    /// The first elements of what is checked.
    fn checked(&self) -> [usize; 2] {
        [0, self.elements.saturating_sub(CHECKED)]
    }
}

fn contestants<K: HasBaseline<Args = ConvertArgs>>(
    bench: &Bench,
    pair: Pair,
) -> anyhow::Result<Vec<Contestant<'_>>> {
    let value = Value::Rate(pair.elements * (pair.source.bytes() + pair.target.bytes()));
    let (source, target) = (pair.source(), pair.source().byte_add(pair.target_offset() as u64));
    let transfer = Transfer {
        args: ConvertArgs { from: source, to: target, count: pair.elements as u64 },
        shapes: &shapes(bench),
        arrange: &|| pair.poison(),
        check: &|| pair.check(),
        value,
    };
    // SAFETY: both types' elements lie in the pair's memory, which the last contestant keeps as long as there are any.
    let mut contestants = unsafe { transfer.contestants(bench, bench.entries::<K>()?) }?;
    let half = (pair.memory.len() / 2) & !15;
    // SAFETY: the lower and the upper half of the pair's memory, kept as above. What was checked may go.
    let mut driver = unsafe { transfer.driver_copy(bench, source.byte_add(half as u64), source, half) }?;
    let mut measure = driver.measure;
    driver.measure = Box::new(move || {
        let _alive = &pair;
        measure()
    });
    contestants.push(driver);
    Ok(contestants)
}

/// Shapes worth a trial: the kernels take 512 threads a block at the most. The CPU device's threads only take turns.
fn shapes(bench: &Bench) -> Vec<LaunchConfig> {
    const GPU: [(u32, u32); 8] = [
        (1056, 512),
        (4224, 512),
        (16384, 256),
        (16384, 512),
        (65536, 256),
        (65536, 512),
        (131_072, 512),
        (262_144, 256),
    ];
    const CPU: [(u32, u32); 1] = [(2, 64)];
    let all = if bench.is_gpu() { &GPU[..] } else { &CPU[..] };
    all.iter().map(|&(blocks, threads)| LaunchConfig::new(blocks, threads)).collect()
}
