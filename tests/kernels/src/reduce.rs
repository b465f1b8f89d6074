//! Element-wise reductions of several rows into one, in an accumulator of a chosen type.

use core::mem::offset_of;

use static_assertions::const_assert_eq;
use warpwire_device::abi::Global;
use warpwire_device::coop::{Grid, Group};
use warpwire_device::kernel;
use warpwire_device::reduce::{Accumulator, Max, Min, Operation, Reduction, Sum};
use warpwire_device::types::{Bf16, E4m3, E4m3B15, E5m2, Extended, F16, Lanes, Number, Standard, Vector};

/// Arguments of [`ReduceRows`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ReduceRowsArgs {
    /// `rows` rows of `count` elements, aligned to an element.
    pub rows_at: Global<u8>,
    /// Bytes from one row to the next: a multiple of an element's.
    pub stride: u64,
    /// Room for `count` elements, aligned to one; does not overlap the rows.
    pub to: Global<u8>,
    /// Elements of a row.
    pub count: u64,
    /// How many rows, at least 1.
    pub rows: u32,
    /// The number of the elements' [`ElementType`](warpwire_device::abi::ElementType).
    pub element: u32,
    /// The number of the accumulator's, for a sum: one that [`Accumulator`] allows. Minimum and maximum are exact in any.
    pub accumulator: u32,
    /// [`SUM`], [`MIN`] or [`MAX`].
    pub operation: u32,
}
const_assert_eq!(size_of::<ReduceRowsArgs>(), 48);
const_assert_eq!(offset_of!(ReduceRowsArgs, rows), 32);

/// The sum.
pub const SUM: u32 = 0;
/// The minimum.
pub const MIN: u32 = 1;
/// The maximum.
pub const MAX: u32 = 2;

/// Elements that a thread reduces at once.
const WIDTH: usize = 4;

/// Reduces the elements of each thread, [`WIDTH`] at a time, and what is left behind the last whole vector one by one.
///
/// # Safety
///
/// As for the kernel's launch.
#[inline(always)]
unsafe fn reduce_rows<T, O, A>(args: &ReduceRowsArgs)
where
    T: Lanes<WIDTH> + Lanes<1>,
    O: Operation,
    A: Accumulator<T> + Lanes<WIDTH> + Lanes<1>,
{
    let bytes = Vector::<T, WIDTH>::BYTES as u64;
    let aligned = (args.rows_at.address() | args.stride | args.to.address()).is_multiple_of(bytes);
    let vectors = if aligned { args.count / WIDTH as u64 } else { 0 };
    // SAFETY: the launch's contract: whole vectors, then what is left.
    unsafe {
        each::<T, O, A, WIDTH>(args, 0, vectors);
        each::<T, O, A, 1>(args, vectors * WIDTH as u64, args.count);
    }
}

/// Reduces the vectors from `first` up to `end`.
///
/// # Safety
///
/// Rows and result are aligned to a vector and hold `end` of them.
#[inline(always)]
unsafe fn each<T: Lanes<N>, O: Operation, A: Accumulator<T> + Lanes<N>, const N: usize>(
    args: &ReduceRowsArgs,
    first: u64,
    end: u64,
) {
    let size = Vector::<T, N>::BYTES as u64;
    let mut i = first + u64::from(Grid.rank());
    while i < end {
        let mut at = args.rows_at.byte_add(i * size);
        // SAFETY: vector `i` of each row, and of the result.
        unsafe {
            let mut reduction = Reduction::<T, O, A, N>::new(Vector::load(at.cast()));
            for _ in 1..args.rows {
                at = at.byte_add(args.stride);
                reduction = reduction.with(Vector::load(at.cast()));
            }
            reduction.finish().store(args.to.byte_add(i * size).cast());
        }
        i += u64::from(Grid.size());
    }
}

/// Hands every element type, with the accumulators that a sum of it may have, to the macro `$with`: one list for the kernel and for
/// what checks it. Whoever calls this has the types' names in scope.
#[macro_export]
macro_rules! for_each_accumulator {
    ($with:ident) => {
        $with! {
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
    };
}

macro_rules! reductions {
    ($($T:ty: $($A:ty),*;)*) => {
        /// # Safety
        ///
        /// As for the kernel's launch.
        #[inline(always)]
        unsafe fn reduce_any(args: &ReduceRowsArgs) {
            $(
                if args.element == <$T>::TYPE as u32 {
                    // SAFETY: the caller's contract.
                    unsafe {
                        match args.operation {
                            MIN => reduce_rows::<$T, Min, $T>(args),
                            MAX => reduce_rows::<$T, Max, $T>(args),
                            _ => {
                                $(
                                    if args.accumulator == <$A>::TYPE as u32 {
                                        reduce_rows::<$T, Sum, $A>(args);
                                    }
                                )*
                            }
                        }
                    }
                }
            )*
        }
    };
}

for_each_accumulator!(reductions);

kernel! {
    /// Combines the rows element by element, in their order, with any grid.
    pub struct ReduceRows = "check_reduce_rows", max_threads = 512, min_blocks = 1;
    unsafe fn(args: ReduceRowsArgs) {
        // SAFETY: the launch's contract, passed on.
        unsafe { reduce_any(&args) }
    }
}
