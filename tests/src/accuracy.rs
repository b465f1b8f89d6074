//! How far sums of fp8 elements are from the exact ones, by accumulator.

use warpwire_device::reduce::{Accumulator, Reduction, Sum};
use warpwire_device::types::{E4m3, E4m3B15, E5m2, Extended, F16, Float, Lanes, Number, Standard, Vector};

/// Numbers of ranks that are summed over.
pub const RANKS: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// Elements that each rank has.
pub const ELEMENTS: usize = 1 << 14;

/// Numbers without a pattern, the same in each run.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins with `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits: splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
    #[must_use]
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// The next number of [-1, 1).
    #[must_use]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Absolute errors of all elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Their mean.
    pub mean: f64,
    /// The largest.
    pub largest: f64,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Line {
    /// The elements' type.
    pub element: &'static str,
    /// How many ranks.
    pub ranks: usize,
    /// In the type itself, in `f16`, in `f32`.
    pub errors: [Errors; 3],
}

/// The sums over all ranks in one accumulator, and how far they are from `exact`.
fn errors<T, A>(terms: &[Vec<T>], exact: &[f64]) -> Errors
where
    T: Float + Lanes<1>,
    A: Accumulator<T> + Lanes<1>,
{
    let sum = |i: usize| {
        let term = |rank: usize| Vector::<T, 1>::from_elements([terms[rank][i]]);
        let first = Reduction::<T, Sum, A, 1>::new(term(0));
        let sum = (1..terms.len()).fold(first, |reduction, rank| reduction.with(term(rank))).finish();
        f64::from(sum.convert::<f32>().to_elements()[0])
    };
    let errors = exact.iter().enumerate().map(|(i, exact)| (sum(i) - exact).abs());
    let (total, largest) =
        errors.fold((0.0, 0.0f64), |(sum, largest), error| (sum + error, largest.max(error)));
    Errors { mean: total / exact.len() as f64, largest }
}

/// One type over one number of ranks: uniform data, so small that no sum leaves the type's range.
fn line<T>(element: &'static str, largest: f64, ranks: usize) -> Line
where
    T: Float + Lanes<1>,
    F16: Accumulator<T>,
    f32: Accumulator<T>,
    T: Accumulator<T>,
{
    let mut random = Random::new(ranks as u64);
    // Six standard deviations of the sum reach the largest value.
    let scale = largest / 6.0 / (ranks as f64 / 3.0).sqrt();
    let encode = |value: f64| Vector::<f32, 1>::from_elements([value as f32]).convert::<T>().to_elements()[0];
    let terms: Vec<Vec<T>> =
        (0..ranks).map(|_| (0..ELEMENTS).map(|_| encode(random.unit() * scale)).collect()).collect();
    let value =
        |element: T| f64::from(Vector::<T, 1>::from_elements([element]).convert::<f32>().to_elements()[0]);
    let exact: Vec<f64> =
        (0..ELEMENTS).map(|i| terms.iter().map(|elements| value(elements[i])).sum()).collect();
    let errors =
        [errors::<T, T>(&terms, &exact), errors::<T, F16>(&terms, &exact), errors::<T, f32>(&terms, &exact)];
    Line { element, ranks, errors }
}

/// The whole table.
#[must_use]
pub fn table() -> Vec<Line> {
    let rows = RANKS.into_iter();
    rows.flat_map(|ranks| {
        [
            line::<E4m3>(E4m3::TYPE.name(), 448.0, ranks),
            line::<E5m2>(E5m2::TYPE.name(), 57344.0, ranks),
            line::<E4m3B15<Standard>>(E4m3B15::<Standard>::TYPE.name(), 0.9375, ranks),
            line::<E4m3B15<Extended>>(E4m3B15::<Extended>::TYPE.name(), 1.875, ranks),
        ]
    })
    .collect()
}
