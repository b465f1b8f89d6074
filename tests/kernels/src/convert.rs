//! Conversions between any two types, in vectors of any width.

use core::mem::offset_of;

use static_assertions::const_assert_eq;
use warpwire_device::abi::{ElementType, Global};
use warpwire_device::coop::{Grid, Group};
use warpwire_device::kernel;
use warpwire_device::types::{
    Bf16, E4m3, E4m3B15, E5m2, Extended, F16, Float, Lanes, Number, Standard, Vector,
};

/// Arguments of [`Convert`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConvertArgs {
    /// Whole vectors, aligned to one.
    pub from: Global<u8>,
    /// Room for as many.
    pub to: Global<u8>,
    /// How many vectors.
    pub vectors: u64,
    /// The number of the [`ElementType`] that is read.
    pub source: u32,
    /// The number of the one that is written.
    pub target: u32,
    /// Elements of a vector; see [`PAIRS`].
    pub width: u32,
    /// Padding, 0.
    pub reserved: u32,
}
const_assert_eq!(size_of::<ConvertArgs>(), 40);
const_assert_eq!(offset_of!(ConvertArgs, source), 24);

/// # Safety
///
/// As for the kernel's launch.
#[inline(always)]
unsafe fn convert<T: Float + Lanes<N>, U: Float + Lanes<N>, const N: usize>(args: &ConvertArgs) {
    let (from, to): (Global<[T; N]>, Global<[U; N]>) = (args.from.cast(), args.to.cast());
    let mut i = u64::from(Grid.rank());
    while i < args.vectors {
        // SAFETY: vector `i` of both sides.
        unsafe { Vector::<T, N>::load(from.add(i).cast()).convert::<U>().store(to.add(i).cast()) };
        i += u64::from(Grid.size());
    }
}

macro_rules! pairs {
    ($($T:ty => $U:ty: $($n:literal)*;)*) => {
        /// What [`Convert`] converts, and in vectors of which widths.
        pub static PAIRS: &[(ElementType, ElementType, &[u32])] = &[$((<$T>::TYPE, <$U>::TYPE, &[$($n),*])),*];

        /// # Safety
        ///
        /// As for the kernel's launch.
        #[inline(always)]
        unsafe fn convert_any(args: &ConvertArgs) {
            let asked = (args.source, args.target, args.width);
            $($(
                if asked == (<$T>::TYPE as u32, <$U>::TYPE as u32, $n) {
                    // SAFETY: the caller's contract.
                    unsafe { convert::<$T, $U, $n>(args) };
                    return;
                }
            )*)*
        }
    };
}

pairs! {
    F16 => E4m3B15<Standard>: 1 2 4 8 16;
    E4m3B15<Standard> => F16: 1 2 4 8 16;
    F16 => E4m3B15<Extended>: 1 2 4 8 16;
    E4m3B15<Extended> => F16: 1 2 4 8 16;
    f32 => E4m3B15<Standard>: 4;
    f32 => E4m3B15<Extended>: 4;
    E4m3B15<Standard> => f32: 4;
    E4m3B15<Extended> => f32: 4;
    Bf16 => E4m3B15<Standard>: 8;
    E4m3B15<Standard> => Bf16: 8;
    f32 => F16: 2;
    F16 => f32: 2;
    f32 => Bf16: 2;
    Bf16 => f32: 2;
    F16 => E4m3: 1 2 4 8 16;
    E4m3 => F16: 1 2 4 8 16;
    F16 => E5m2: 1 2 4 8 16;
    E5m2 => F16: 1 2 4 8 16;
    f32 => E4m3: 4;
    f32 => E5m2: 4;
    E4m3 => Bf16: 8;
    E4m3 => E5m2: 16;
    E5m2 => E4m3B15<Standard>: 16;
}

kernel! {
    /// Converts as one of [`PAIRS`], with any grid; nothing where it is none.
    pub struct Convert = "check_convert", max_threads = 512, min_blocks = 1;
    unsafe fn(args: ConvertArgs) {
        // SAFETY: the launch's contract, passed on.
        unsafe { convert_any(&args) }
    }
}
