//! Element-wise reductions over vectors, with an accumulator as wide as the caller asks for.
//!
//! A [`Reduction`] takes terms of one type one by one: each is widened to the accumulator's type, combined there, and the
//! result is narrowed once at the end. The accumulator is the terms' own type, `f16` or `f32`, where it is no narrower:
//!
//! | terms                   | accumulators           |
//! |-------------------------|------------------------|
//! | `f32`                   | `f32`                  |
//! | `f16`                   | `f16`, `f32`           |
//! | `bf16`                  | `bf16`, `f32`          |
//! | e4m3, e5m2, e4m3b15     | their own, `f16`, `f32` |
//! | `u8`, `i32`, `u32`      | their own              |
//!
//! (`f16` is no wider than `bf16`: it has less range.) At run time these are
//! [`ElementType::accumulators`](crate::abi::ElementType::accumulators). Another pair does
//! not compile:
//!
//! ```compile_fail
//! use warpwire_device::reduce::{Reduction, Sum};
//! use warpwire_device::types::{Bf16, F16, Vector};
//! let sum = Reduction::<Bf16, Sum, F16, 8>::new(Vector::ZERO);
//! ```
//!
//! In its own type each step of a sum is rounded to it, which is what a chain of additions over a network would give; fp8
//! loses small terms beside large ones then, and e4m3b15 saturates at the largest value on the way.

use core::marker::PhantomData;

use crate::types::{Bf16, E4m3, E4m3B15, E5m2, F16, Lanes, Number, Range, Vector};

mod sealed {
    pub trait Sealed {}
}

/// How two elements combine: [`Sum`], [`Min`], [`Max`].
pub trait Operation: sealed::Sealed + Copy {
    /// A word of elements that change nothing when they are combined with others.
    #[must_use]
    fn identity<T: Number>() -> u32;
    /// The combined elements of two words.
    #[must_use]
    fn apply<T: Number>(a: u32, b: u32) -> u32;
}

macro_rules! operation {
    ($(#[$doc:meta])* $Name:ident: $apply:ident, $IDENTITY:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Name;

        impl sealed::Sealed for $Name {}
        impl Operation for $Name {
            #[inline(always)]
            fn identity<T: Number>() -> u32 {
                T::$IDENTITY
            }

            #[inline(always)]
            fn apply<T: Number>(a: u32, b: u32) -> u32 {
                T::$apply(a, b)
            }
        }
    };
}

operation! {
    /// The sum; of integers, modulo 2^bits.
    Sum: sum, SUM_IDENTITY
}
operation! {
    /// The minimum; a NaN gives way to any number.
    Min: min, MIN_IDENTITY
}
operation! {
    /// The maximum; a NaN gives way to any number.
    Max: max, MAX_IDENTITY
}

/// A type that terms of type `T` may be accumulated in.
pub trait Accumulator<T: Number>: Number {
    /// A term as the accumulator's type, exactly.
    #[must_use]
    fn widen<const N: usize>(term: Vector<T, N>) -> Vector<Self, N>
    where
        T: Lanes<N>,
        Self: Lanes<N>;

    /// A result as the terms' type, rounded once.
    #[must_use]
    fn narrow<const N: usize>(result: Vector<Self, N>) -> Vector<T, N>
    where
        T: Lanes<N>,
        Self: Lanes<N>;
}

macro_rules! accumulators {
    ($($T:ty $(, $R:ident)?: own $($A:ty),*;)*) => { $(
        impl$(<$R: Range>)? Accumulator<$T> for $T {
            #[inline(always)]
            fn widen<const N: usize>(term: Vector<Self, N>) -> Vector<Self, N>
            where
                Self: Lanes<N>,
            {
                term
            }

            #[inline(always)]
            fn narrow<const N: usize>(result: Vector<Self, N>) -> Vector<Self, N>
            where
                Self: Lanes<N>,
            {
                result
            }
        }
        accumulators!(@wider $T $(, $R)?: $($A),*);
    )* };
    (@wider $T:ty $(, $R:ident)?:) => {};
    (@wider $T:ty: $($A:ty),*) => { $(
        impl Accumulator<$T> for $A {
            accumulators!(@conversions $T);
        }
    )* };
    (@wider $T:ty, $R:ident: $($A:ty),*) => { $(
        impl<$R: Range> Accumulator<$T> for $A {
            accumulators!(@conversions $T);
        }
    )* };
    (@conversions $T:ty) => {
        #[inline(always)]
        fn widen<const N: usize>(term: Vector<$T, N>) -> Vector<Self, N>
        where
            $T: Lanes<N>,
            Self: Lanes<N>,
        {
            term.convert()
        }

        #[inline(always)]
        fn narrow<const N: usize>(result: Vector<Self, N>) -> Vector<$T, N>
        where
            $T: Lanes<N>,
            Self: Lanes<N>,
        {
            result.convert()
        }
    };
}

accumulators! {
    f32: own;
    F16: own f32;
    Bf16: own f32;
    E4m3: own F16, f32;
    E5m2: own F16, f32;
    E4m3B15<R>, R: own F16, f32;
    u8: own;
    i32: own;
    u32: own;
}

/// A reduction under way: terms of `T`, combined by `O` in `A`, `N` elements at a time. Used by a thread, for its elements.
#[derive(Clone, Copy, Debug)]
pub struct Reduction<T: Lanes<N>, O: Operation, A: Accumulator<T> + Lanes<N>, const N: usize> {
    accumulator: Vector<A, N>,
    kind: PhantomData<(T, O)>,
}

impl<T: Lanes<N>, O: Operation, A: Accumulator<T> + Lanes<N>, const N: usize> Reduction<T, O, A, N> {
    /// Begins with one term.
    #[inline(always)]
    #[must_use]
    pub fn new(first: Vector<T, N>) -> Self {
        Self { accumulator: A::widen(first), kind: PhantomData }
    }

    /// Begins with none.
    #[inline(always)]
    #[must_use]
    pub fn empty() -> Self {
        let accumulator = Vector::ZERO.zip(Vector::ZERO, |_, _| O::identity::<A>());
        Self { accumulator, kind: PhantomData }
    }

    /// With one term more.
    #[inline(always)]
    #[must_use]
    pub fn with(self, term: Vector<T, N>) -> Self {
        Self { accumulator: self.accumulator.zip(A::widen(term), O::apply::<A>), ..self }
    }

    /// The result.
    #[inline(always)]
    #[must_use]
    pub fn finish(self) -> Vector<T, N> {
        A::narrow(self.accumulator)
    }
}

/// The reduction of `M` terms, in their order; of none, what changes nothing. Called by a thread.
#[inline(always)]
#[must_use]
pub fn reduce<T: Lanes<N>, O: Operation, A: Accumulator<T> + Lanes<N>, const N: usize, const M: usize>(
    terms: [Vector<T, N>; M],
) -> Vector<T, N> {
    let mut reduction = Reduction::<T, O, A, N>::empty();
    for k in 0..M {
        reduction = if k == 0 { Reduction::new(terms[0]) } else { reduction.with(terms[k]) };
    }
    reduction.finish()
}

/// What changes nothing when it is added, -0.0 among the other operands: two `f32` of -0.0.
pub const IDENTITY_F32X2: u64 = (f32::SUM_IDENTITY as u64) << 32 | f32::SUM_IDENTITY as u64;

/// The element-wise sum of two words that each hold two `f32`, the first in the low half. Called by a thread.
#[inline(always)]
#[must_use]
pub fn sum_f32x2(a: u64, b: u64) -> u64 {
    let sum = |a: u64, b: u64| u64::from(f32::sum(a as u32, b as u32));
    sum(a, b) | sum(a >> 32, b >> 32) << 32
}
