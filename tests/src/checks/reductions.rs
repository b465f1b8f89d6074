//! Reductions of rows, in every type and accumulator.

use warpwire::abi::ElementType;
use warpwire::device::{Device, DeviceKind, Function, LaunchConfig, Stream};
use warpwire_check_kernels::reduce::{MAX, MIN, ReduceRows, ReduceRowsArgs, SUM};
use warpwire_device::reduce::{Accumulator, Max, Min, Operation, Reduction, Sum};
use warpwire_device::types::{Bf16, E4m3, E4m3B15, E5m2, Extended, F16, Lanes, Standard, Vector};

use super::check_module::check_module;
use super::rig::{POISON, filled};
use crate::accuracy::Random;

/// The check's kernel on one device.
struct Rows {
    device: Device,
    stream: Stream,
    function: Function<ReduceRows>,
}

/// Which reduction.
#[derive(Clone, Copy, Debug)]
struct Kind {
    element: ElementType,
    accumulator: ElementType,
    operation: u32,
}

impl Rows {
    fn new(device: &Device, check: &str) -> Option<Self> {
        let module = check_module(device, check)?;
        Some(Self {
            device: device.clone(),
            stream: device.stream().unwrap(),
            function: module.function::<ReduceRows>().unwrap(),
        })
    }

    /// The kernel's reduction of `rows` rows, `stride` bytes apart.
    fn run(&self, kind: Kind, data: &[u8], stride: usize, count: usize) -> Vec<u8> {
        let from = filled(&self.device, data);
        let to = filled(&self.device, &vec![POISON; count * kind.element.bytes() + 16]);
        let args = ReduceRowsArgs {
            rows_at: from.address(),
            stride: stride as u64,
            to: to.address(),
            count: count as u64,
            rows: (data.len() / stride) as u32,
            element: kind.element as u32,
            accumulator: kind.accumulator as u32,
            operation: kind.operation,
        };
        // SAFETY: the rows and the result lie in buffers that outlive the launch.
        unsafe { self.stream.launch(&self.function, LaunchConfig::new(2, 32), args) }.unwrap();
        self.stream.synchronize().unwrap();
        let mut seen = to.read().unwrap();
        let behind = seen.split_off(count * kind.element.bytes());
        assert!(behind.iter().all(|&byte| byte == POISON), "{kind:?} wrote behind the result");
        seen
    }
}

/// Elements of a row: whole vectors, and a tail.
const COUNT: usize = 1003;

/// One type in one accumulator, in rows with and without a gap between them.
fn check<T, O, A>(rows: &Rows, operation: u32)
where
    T: Lanes<1>,
    O: Operation,
    A: Accumulator<T> + Lanes<1>,
{
    for (ranks, gap) in [(1, 0), (2, 1), (5, 5), (8, 0)] {
        check_rows::<T, O, A>(rows, operation, Shape { ranks, count: COUNT, gap });
    }
}

/// A row for each rank, and elements between one and the next.
#[derive(Clone, Copy, Debug)]
struct Shape {
    ranks: usize,
    count: usize,
    gap: usize,
}

/// The kernel's result is that of one element after the other here, and nothing is written behind it.
fn check_rows<T, O, A>(rows: &Rows, operation: u32, shape: Shape)
where
    T: Lanes<1>,
    O: Operation,
    A: Accumulator<T> + Lanes<1>,
{
    let Shape { ranks, count, gap } = shape;
    let kind = Kind { element: T::TYPE, accumulator: A::TYPE, operation };
    let size = size_of::<T>();
    let mut random = Random::new(u64::from(operation) << 32 | (ranks * 100 + size) as u64);
    let stride = (count + gap) * size;
    let data: Vec<u8> = (0..stride * ranks).map(|_| random.next() as u8).collect();
    let seen = rows.run(kind, &data, stride, count);
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word[..size].copy_from_slice(&bytes[..size]);
        u32::from_le_bytes(word)
    };
    for i in 0..count {
        let term = |row: usize| {
            Vector::<T, 1>::from_elements([T::from_word(word(&data[row * stride + i * size..]))])
        };
        let first = Reduction::<T, O, A, 1>::new(term(0));
        let result = (1..ranks).fold(first, |reduction, row| reduction.with(term(row))).finish();
        let expected = result.to_elements()[0].to_word();
        let seen = word(&seen[i * size..]);
        // The bits of an f32 sum's NaN are not stated.
        let is_nan = |bits: u32| T::TYPE == ElementType::F32 && f32::from_bits(bits).is_nan();
        let same = seen == expected || is_nan(seen) && is_nan(expected);
        assert!(same, "{kind:?}, {shape:?}, element {i}: {seen:#x}, not {expected:#x}");
    }
}

/// Sum, minimum and maximum of every type; sums in every accumulator that it has.
pub fn every_type_in_every_accumulator(device: &Device) {
    let Some(rows) = Rows::new(device, "every_type_in_every_accumulator") else { return };
    macro_rules! all {
        ($($T:ty: $($A:ty),*;)*) => { $(
            $( check::<$T, Sum, $A>(&rows, SUM); )*
            check::<$T, Min, $T>(&rows, MIN);
            check::<$T, Max, $T>(&rows, MAX);
        )* };
    }
    warpwire_check_kernels::for_each_accumulator!(all);
}

/// C26: counts that no vector, thread or block divides, in every width of element, among 2, 3 and 8 ranks' rows.
pub fn rows_of_counts_that_do_not_divide(device: &Device) {
    let Some(rows) = Rows::new(device, "rows_of_counts_that_do_not_divide") else { return };
    let sums = |ranks, count| {
        let shape = Shape { ranks, count, gap: 0 };
        check_rows::<u8, Sum, u8>(&rows, SUM, shape);
        check_rows::<F16, Sum, F16>(&rows, SUM, shape);
        check_rows::<Bf16, Sum, f32>(&rows, SUM, shape);
        check_rows::<f32, Sum, f32>(&rows, SUM, shape);
    };
    for ranks in [2, 3, 8] {
        for count in [1, 2, 3, 5, 6, 7, 63, 127, 16_385, 65_537] {
            sums(ranks, count);
        }
    }
    // Coroutines would take minutes for it.
    if device.properties().kind == DeviceKind::Cuda {
        sums(2, 10_556_587);
    }
}

/// Sums that come out differently where each step is rounded to e4m3b15.
pub fn a_wider_accumulator_changes_the_sum(device: &Device) {
    let Some(rows) = Rows::new(device, "a_wider_accumulator_changes_the_sum") else { return };
    let terms = |first: f32, count: usize, rest: f32| [vec![first], vec![rest; count]].concat();
    for (terms, native, wide) in [
        (vec![1.0, 1.0, -1.0], 0.875, 1.0),
        (terms(1.0, 8, 0.03125), 1.0, 1.25),
        (terms(1.0, 4, 0.0625), 1.5, 1.25),
    ] {
        let codes: Vec<u8> =
            terms.iter().map(|&term| E4m3B15::<Extended>::from_f32(term).to_bits()).collect();
        for (accumulator, expected) in
            [(ElementType::E4m3B15Extended, native), (ElementType::F16, wide), (ElementType::F32, wide)]
        {
            let kind = Kind { element: ElementType::E4m3B15Extended, accumulator, operation: SUM };
            let sum = rows.run(kind, &codes, 1, 1)[0];
            let sum = E4m3B15::<Extended>::from_bits(sum).to_f32();
            assert_eq!(sum, expected, "{terms:?} in {accumulator}");
        }
    }
}
