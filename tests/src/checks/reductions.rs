//! Reductions of rows, in every type and accumulator.

use warpwire::abi::ElementType;
use warpwire::device::{Device, Function, LaunchConfig, Stream};
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

/// One type in one accumulator: the kernel's result is that of one element after the other here.
fn check<T, O, A>(rows: &Rows, operation: u32)
where
    T: Lanes<1>,
    O: Operation,
    A: Accumulator<T> + Lanes<1>,
{
    let kind = Kind { element: T::TYPE, accumulator: A::TYPE, operation };
    let size = size_of::<T>();
    for (count_rows, stride) in [(1, COUNT), (2, COUNT + 1), (5, COUNT + 5), (8, COUNT)] {
        let mut random = Random::new(u64::from(operation) << 32 | (count_rows * 100 + size) as u64);
        let stride = stride * size;
        let data: Vec<u8> = (0..stride * count_rows).map(|_| random.next() as u8).collect();
        let seen = rows.run(kind, &data, stride, COUNT);
        for i in 0..COUNT {
            let term = |row: usize| {
                let mut word = [0; 4];
                word[..size].copy_from_slice(&data[row * stride + i * size..][..size]);
                Vector::<T, 1>::from_elements([T::from_word(u32::from_le_bytes(word))])
            };
            let first = Reduction::<T, O, A, 1>::new(term(0));
            let result = (1..count_rows).fold(first, |reduction, row| reduction.with(term(row))).finish();
            let expected = result.to_elements()[0].to_word();
            let mut word = [0; 4];
            word[..size].copy_from_slice(&seen[i * size..][..size]);
            let seen = u32::from_le_bytes(word);
            // The bits of an f32 sum's NaN are not stated.
            let is_nan = |bits: u32| T::TYPE == ElementType::F32 && f32::from_bits(bits).is_nan();
            let same = seen == expected || is_nan(seen) && is_nan(expected);
            assert!(same, "{kind:?}, {count_rows} rows, element {i}: {seen:#x}, not {expected:#x}");
        }
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
    all! {
        f32: f32;
        F16: F16, f32;
        Bf16: Bf16, f32;
        E4m3: E4m3, F16, f32;
        E5m2: E5m2, F16, f32;
        E4m3B15<Standard>: E4m3B15<Standard>, F16, f32;
        E4m3B15<Extended>: E4m3B15<Extended>, F16, f32;
        u8: u8;
        i32: i32;
        u32: u32;
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
