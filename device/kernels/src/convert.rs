//! Conversions of whole buffers between element types, for data that streams through.
//!
//! Each thread has several vectors in flight, of 16 bytes on the wider side. Any number of elements: what is left behind the
//! last whole vector goes one by one, and so does everything where a buffer is not aligned to its vector.

use static_assertions::const_assert_eq;
use warpwire_device::abi::Global;
use warpwire_device::arch;
use warpwire_device::coop::{Grid, Group, Team};
use warpwire_device::kernel;
use warpwire_device::mem::Steps;
use warpwire_device::types::{E4m3B15, Extended, F16, Float, Lanes, Standard, Vector};

/// Arguments of the conversions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConvertArgs {
    /// `count` elements of the one type, aligned to their size.
    pub from: Global<u8>,
    /// Room for as many of the other, aligned to their size; does not overlap them.
    pub to: Global<u8>,
    /// How many.
    pub count: u64,
}
const_assert_eq!(size_of::<ConvertArgs>(), 24);

/// Vectors that a thread has in flight where the source is the wider side.
pub const IN_FLIGHT: usize = 4;

/// And where the destination is: what is in flight are the loads, which are small then.
const IN_FLIGHT_WIDENING: usize = 2;

/// Converts in vectors of `N`, `K` of them in flight, by the whole grid.
///
/// # Safety
///
/// As for the kernels' launches.
#[inline(always)]
unsafe fn convert<T, U, const N: usize, const K: usize>(args: &ConvertArgs)
where
    T: Float + Lanes<N> + Lanes<1>,
    U: Float + Lanes<N> + Lanes<1>,
{
    let (from, to): (Global<T>, Global<U>) = (args.from.cast(), args.to.cast());
    let aligned = Vector::<T, N>::is_aligned(from) && Vector::<U, N>::is_aligned(to);
    let vectors = if aligned { args.count / N as u64 } else { 0 };
    // SAFETY: the launch's contract: whole vectors, then what is left.
    unsafe {
        stream::<T, U, N, K>(from.cast(), to.cast(), vectors);
        let mut i = vectors * N as u64 + u64::from(Grid.rank());
        while i < args.count {
            Vector::<T, 1>::load(from.add(i)).convert::<U>().store(to.add(i));
            i = arch::advance(i, u64::from(Grid.size())); // a few turns at most: not unrolled
        }
    }
}

/// Converts `vectors` vectors: in turns of neighbouring ones, `K` a thread, as [`copy`](warpwire_device::copy)
/// moves its words.
///
/// # Safety
///
/// Both sides are aligned and hold as many vectors.
#[inline(always)]
unsafe fn stream<T: Float + Lanes<N>, U: Float + Lanes<N>, const N: usize, const K: usize>(
    from: Global<[T; N]>,
    to: Global<[U; N]>,
    vectors: u64,
) {
    let Team { rank, size, index, teams } = Grid.team();
    let turn = K as u32 * size;
    let first = u64::from(index) * u64::from(turn) + u64::from(rank);
    let (mut from, mut to) = (from.add(first), to.add(first));
    let stride = u64::from(turn) * u64::from(teams);
    let step = |bytes: usize| u64::from(size) * bytes as u64;
    let (from_step, to_step) = (step(Vector::<T, N>::BYTES), step(Vector::<U, N>::BYTES));
    // Vectors from this thread's first on; below 1 there is nothing left for it.
    let mut left = vectors as i64 - first as i64;
    while left > i64::from(turn - size) {
        let mut at = Steps::from(from, from_step);
        // SAFETY: the places are below `vectors`.
        let values: [Vector<T, N>; K] =
            core::array::from_fn(|_| unsafe { Vector::load_streaming(at.next_address()) });
        let mut at = Steps::from(to, to_step);
        for k in 0..K {
            // SAFETY: as above.
            unsafe { put(values[k].convert::<U>(), at.next_address(), size_of::<T>()) };
        }
        (from, to) = (from.add(stride), to.add(stride));
        left -= stride as i64;
    }
    // The last turn, which is not whole.
    let (mut from, mut to) = (Steps::from(from, from_step), Steps::from(to, to_step));
    let mut left = Steps::left(left, size);
    while left.next_is_left() {
        // SAFETY: the place is below `vectors`.
        unsafe {
            let value = Vector::<T, N>::load_streaming(from.next_address());
            put(value.convert::<U>(), to.next_address(), size_of::<T>());
        }
    }
}

/// Stores a vector: to be evicted first where it is the narrower side. The wider side's stores are most of what such a
/// conversion moves, and reach the memory faster in the cache's usual order.
///
/// # Safety
///
/// As for [`Vector::store`].
#[inline(always)]
unsafe fn put<U: Float + Lanes<N>, const N: usize>(vector: Vector<U, N>, at: Global<U>, source_bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe { if size_of::<U>() > source_bytes { vector.store(at) } else { vector.store_streaming(at) } }
}

macro_rules! conversions {
    ($($(#[$meta:meta])* $Name:ident = $entry:literal: $T:ty => $U:ty, $n:literal, $in_flight:expr, min_blocks = $min_blocks:literal;)*) => { $(
        kernel! {
            $(#[$meta])*
            pub struct $Name = $entry, max_threads = 512, min_blocks = $min_blocks;
            unsafe fn(args: ConvertArgs) {
                // SAFETY: the launch's contract, passed on.
                unsafe { convert::<$T, $U, $n, { $in_flight }>(&args) }
            }
        }
    )* };
}

conversions! {
    /// `f32` to e4m3b15, the range `Standard`.
    F32ToE4m3B15 = "warpwire_f32_to_e4m3b15": f32 => E4m3B15<Standard>, 4, IN_FLIGHT, min_blocks = 3;
    /// e4m3b15, the range `Standard`, to `f32`.
    E4m3B15ToF32 = "warpwire_e4m3b15_to_f32": E4m3B15<Standard> => f32, 4, IN_FLIGHT_WIDENING, min_blocks = 4;
    /// `f16` to e4m3b15, the range `Standard`.
    F16ToE4m3B15 = "warpwire_f16_to_e4m3b15": F16 => E4m3B15<Standard>, 8, IN_FLIGHT, min_blocks = 3;
    /// e4m3b15, the range `Standard`, to `f16`.
    E4m3B15ToF16 = "warpwire_e4m3b15_to_f16": E4m3B15<Standard> => F16, 8, IN_FLIGHT_WIDENING, min_blocks = 4;
    /// `f32` to e4m3b15, the range `Extended`.
    F32ToE4m3B15Extended = "warpwire_f32_to_e4m3b15_extended": f32 => E4m3B15<Extended>, 4, IN_FLIGHT, min_blocks = 3;
    /// e4m3b15, the range `Extended`, to `f32`.
    E4m3B15ExtendedToF32 = "warpwire_e4m3b15_extended_to_f32": E4m3B15<Extended> => f32, 4, IN_FLIGHT_WIDENING, min_blocks = 4;
    /// `f16` to e4m3b15, the range `Extended`.
    F16ToE4m3B15Extended = "warpwire_f16_to_e4m3b15_extended": F16 => E4m3B15<Extended>, 8, IN_FLIGHT, min_blocks = 3;
    /// e4m3b15, the range `Extended`, to `f16`.
    E4m3B15ExtendedToF16 = "warpwire_e4m3b15_extended_to_f16": E4m3B15<Extended> => F16, 8, IN_FLIGHT_WIDENING, min_blocks = 4;
}
