//! Reductions against `f64` arithmetic, on every pair of elements where they are of 8 bits.

use std::io::Write;

use warpwire_device::abi::ElementType;
use warpwire_device::reduce::{Accumulator, Max, Min, Operation, Reduction, Sum, reduce};
use warpwire_device::types::{
    Bf16, E4m3, E4m3B15, E5m2, Extended, F16, Lanes, Number, Range, Standard, Vector,
};
use warpwire_tests::accuracy::{Random, table};
use warpwire_tests::reference::{self, Format};
use warpwire_tests::tables::{Reading, decoded, encoded};

/// Says how much a test covered, past the harness.
fn covered(what: &str, count: usize) {
    // Where nobody reads standard error, nobody misses the line.
    let _ = writeln!(std::io::stderr(), "{what}: {count} covered");
}

/// `O` of every pair of codes, 4 pairs at a time, against `expected`.
fn every_pair<T: Lanes<4>, O: Operation>(what: &str, expected: impl Fn(u32, u32) -> u32) {
    for a in 0..256 {
        for b in (0..256).step_by(4) {
            let left = Vector::<T, 4>::from_elements([T::from_word(a); 4]);
            let right: [T; 4] = std::array::from_fn(|lane| T::from_word(b + lane as u32));
            let result = left.zip(Vector::from_elements(right), O::apply::<T>).to_elements();
            for (lane, seen) in (0..).zip(result) {
                let expected = expected(a, b + lane);
                assert_eq!(seen.to_word(), expected, "{what} of {a:#04x} and {:#04x}", b + lane);
            }
        }
    }
    covered(what, 65536);
}

/// A format's values and how a value becomes a code.
struct Arithmetic<'f> {
    value: &'f dyn Fn(u32) -> f64,
    encode: &'f dyn Fn(f64) -> u32,
}

/// The minimum or maximum that takes the number where one is NaN, and orders -0 before +0.
fn ordered(a: f64, b: f64, least: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() { b } else { a };
    }
    let a_first = a < b || a == b && a.is_sign_negative();
    if a_first == least { a } else { b }
}

fn fp8<T: Lanes<4>>(what: &str, Arithmetic { value, encode }: Arithmetic<'_>) {
    every_pair::<T, Sum>(&format!("sums of {what}"), |a, b| encode(value(a) + value(b)));
    every_pair::<T, Min>(&format!("minima of {what}"), |a, b| encode(ordered(value(a), value(b), true)));
    every_pair::<T, Max>(&format!("maxima of {what}"), |a, b| encode(ordered(value(a), value(b), false)));
}

#[test]
fn every_pair_of_ocp_elements() {
    let arithmetic =
        |format: &'static Format| (move |code| format.value(code), move |value| format.nearest(value));
    let (value, encode) = arithmetic(&reference::E4M3);
    fp8::<E4m3>("e4m3", Arithmetic { value: &value, encode: &encode });
    let (value, encode) = arithmetic(&reference::E5M2);
    fp8::<E5m2>("e5m2", Arithmetic { value: &value, encode: &encode });
}

#[test]
fn every_pair_of_e4m3b15_elements() {
    fn check<R: Range>(reading: Reading, what: &str) {
        let (values, codes) = (decoded(reading), encoded(reading));
        let value = |code: u32| reference::F16.value(values[code as usize].into());
        let encode = |value: f64| u32::from(codes[reference::F16.nearest(value) as usize]);
        fp8::<E4m3B15<R>>(what, Arithmetic { value: &value, encode: &encode });
    }
    check::<Standard>(Reading::Standard, "e4m3b15");
    check::<Extended>(Reading::Extended, "e4m3b15 Extended");
}

#[test]
fn every_pair_of_bytes() {
    every_pair::<u8, Sum>("sums of u8", |a, b| (a + b) % 256);
    every_pair::<u8, Min>("minima of u8", Ord::min);
    every_pair::<u8, Max>("maxima of u8", Ord::max);
}

/// Random pairs of 16 bits, in both halves of a word.
fn random_halves<T: Lanes<2>>(format: &Format, what: &str) {
    let mut random = Random::new(u64::from(format.mantissa));
    const PAIRS: usize = 400_000;
    for _ in 0..PAIRS {
        let bits = random.next();
        let (a, b) = ([bits as u16, (bits >> 16) as u16], [(bits >> 32) as u16, (bits >> 48) as u16]);
        let vector =
            |halves: [u16; 2]| Vector::<T, 2>::from_elements(halves.map(|half| T::from_word(half.into())));
        let words = |vector: Vector<T, 2>| vector.to_elements().map(Number::to_word);
        let expect = |f: &dyn Fn(f64, f64) -> f64| {
            let each = |k: usize| f(format.value(a[k].into()), format.value(b[k].into()));
            [format.nearest(each(0)), format.nearest(each(1))]
        };
        let (left, right) = (vector(a), vector(b));
        assert_eq!(words(left.sum(right)), expect(&|a, b| a + b), "{a:04x?} + {b:04x?}");
        assert_eq!(words(left.min(right)), expect(&|a, b| ordered(a, b, true)), "{a:04x?}, {b:04x?}");
        assert_eq!(words(left.max(right)), expect(&|a, b| ordered(a, b, false)), "{a:04x?}, {b:04x?}");
    }
    covered(what, 2 * PAIRS);
}

#[test]
fn pairs_of_halves() {
    random_halves::<F16>(&reference::F16, "sums, minima and maxima of f16");
    random_halves::<Bf16>(&reference::BF16, "sums, minima and maxima of bf16");
}

#[test]
fn integers_wrap_and_are_compared_by_sign() {
    let (a, b) = (Vector::<i32, 2>::from_elements([i32::MAX, -5]), Vector::from_elements([1, 3]));
    assert_eq!(a.sum(b).to_elements(), [i32::MIN, -2]);
    assert_eq!(a.min(b).to_elements(), [1, -5]);
    assert_eq!(a.max(b).to_elements(), [i32::MAX, 3]);
    let (a, b) = (Vector::<u32, 2>::from_elements([u32::MAX, 7]), Vector::from_elements([1, 3]));
    assert_eq!(a.sum(b).to_elements(), [0, 10]);
    assert_eq!(a.min(b).to_elements(), [1, 3]);
    assert_eq!(a.max(b).to_elements(), [u32::MAX, 7]);
}

/// What changes nothing changes nothing, and none of it is combined into nothing else.
fn identity<T: Lanes<4>, A: Accumulator<T> + Lanes<4>, O: Operation>(codes: impl Iterator<Item = u32>) {
    for code in codes {
        let term = Vector::<T, 4>::from_elements([T::from_word(code); 4]);
        let alone = Reduction::<T, O, A, 4>::new(term).finish();
        assert_eq!(Reduction::<T, O, A, 4>::empty().with(term).finish(), alone, "{term:?}");
    }
}

/// What is allowed at run time is what compiles.
#[test]
fn accumulators_by_name_are_those_by_type() {
    fn pair<T: Number, A: Accumulator<T>>() -> (ElementType, ElementType) {
        (T::TYPE, A::TYPE)
    }
    macro_rules! pairs {
        ($($T:ty: $($A:ty),*;)*) => { [$($(pair::<$T, $A>()),*),*] };
    }
    let by_type = warpwire_check_kernels::for_each_accumulator!(pairs);
    let by_name =
        ElementType::ALL.into_iter().flat_map(|of| of.accumulators().iter().map(move |&wide| (of, wide)));
    assert_eq!(by_name.collect::<Vec<_>>(), by_type);
}

#[test]
fn an_empty_reduction_changes_nothing() {
    macro_rules! all {
        ($($T:ty: $($A:ty),* => $codes:expr;)*) => { $($(
            identity::<$T, $A, Sum>($codes);
            identity::<$T, $A, Min>($codes);
            identity::<$T, $A, Max>($codes);
        )*)* };
    }
    all! {
        // NaN becomes the one NaN of its type where it is combined: left out, as codes that are no number's.
        E4m3: E4m3, F16, f32 => (0..256).filter(|code| code & 0x7F != 0x7F);
        E5m2: F16, f32 => (0..256).filter(|code| code & 0x7F <= 0x7C);
        E5m2: E5m2 => (0..256).filter(|code| code & 0x7F < 0x7C);
        E4m3B15<Standard>: E4m3B15<Standard>, F16, f32 => (0..256).filter(|code| code & 0x7F < 0x78 && *code != 0x80);
        E4m3B15<Extended>: E4m3B15<Extended>, F16, f32 => 0..256;
        F16: F16, f32 => (0..65536).filter(|bits| bits & 0x7FFF <= 0x7C00);
        Bf16: Bf16, f32 => (0..65536).filter(|bits| bits & 0x7FFF <= 0x7F80);
        f32: f32 => [0, 1 << 31, 0x3F80_0000, 0xFF7F_FFFF, 0x7F80_0000].into_iter();
        u8: u8 => 0..256;
        i32: i32 => [0, 1, u32::MAX, 1 << 31, i32::MAX as u32].into_iter();
        u32: u32 => [0, 1, u32::MAX, 1 << 31].into_iter();
    }
}

#[test]
fn a_wider_accumulator_rounds_once() {
    let sum = |terms: &[f32]| {
        let vector = |term: &f32| Vector::<_, 1>::from_elements([E4m3B15::<Extended>::from_f32(*term)]);
        let terms: Vec<_> = terms.iter().map(vector).collect();
        let native = terms.iter().copied().reduce(Vector::sum).unwrap();
        let fold = |terms: &[Vector<E4m3B15<Extended>, 1>]| {
            let first = Reduction::<_, Sum, f32, 1>::new(terms[0]);
            terms[1..].iter().fold(first, |sum, &term| sum.with(term)).finish()
        };
        [native, fold(&terms)].map(|sum| sum.to_elements()[0].to_f32())
    };
    assert_eq!(sum(&[1.0, 1.0, -1.0]), [0.875, 1.0]);
    assert_eq!(sum(&[&[1.0][..], &[0.03125; 8]].concat()), [1.0, 1.25]);
    assert_eq!(sum(&[&[1.0][..], &[0.0625; 4]].concat()), [1.5, 1.25]);
}

#[test]
fn a_reduction_of_an_array_is_that_of_its_terms() {
    let terms: [Vector<F16, 8>; 3] = std::array::from_fn(|k| {
        Vector::from_elements(std::array::from_fn(|i| F16::from_f32((k * 8 + i) as f32)))
    });
    let sum = reduce::<F16, Sum, f32, 8, 3>(terms).to_elements().map(F16::to_f32);
    assert_eq!(sum, std::array::from_fn(|i| (24 + 3 * i) as f32));
    assert_eq!(reduce::<u8, Sum, u8, 4, 0>([]), Vector::ZERO);
}

#[test]
fn errors_do_not_grow_with_the_accumulator() {
    for line in table() {
        let [native, half, single] = line.errors;
        let order = |a: f64, b: f64, c: f64| a >= b && b >= c;
        assert!(order(native.mean, half.mean, single.mean), "{line:?}");
        assert!(order(native.largest, half.largest, single.largest), "{line:?}");
    }
}
