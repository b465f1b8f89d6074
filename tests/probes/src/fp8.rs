//! One conversion of a vector of four for each block of one thread.

use warpwire_device::abi::Global;
use warpwire_device::arch;
use warpwire_device::kernel;
use warpwire_device::types::{E4m3, E4m3B15, E5m2, Extended, F16, Float, Lanes, Number, Standard, Vector};

/// Arguments of the conversion probes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ConvertArgs {
    /// Four elements a block.
    pub from: Global<u8>,
    /// As many.
    pub to: Global<u8>,
}

/// # Safety
///
/// As for the probes' launches.
#[inline(always)]
unsafe fn convert<T: Float + Lanes<4>, U: Float + Lanes<4>>(args: &ConvertArgs) {
    let at = |bytes: usize| u64::from(arch::block_index()) * 4 * bytes as u64;
    // SAFETY: the caller's contract.
    unsafe {
        let from = Vector::<T, 4>::load(args.from.byte_add(at(size_of::<T>())).cast());
        from.convert::<U>().store(args.to.byte_add(at(size_of::<U>())).cast());
    }
}

/// # Safety
///
/// As for the probes' launches.
#[inline(always)]
unsafe fn sum<T: Number + Lanes<4>>(args: &ConvertArgs) {
    let at = u64::from(arch::block_index()) * Vector::<T, 4>::BYTES as u64;
    let (from, to) = (args.from.byte_add(at).cast(), args.to.byte_add(at).cast());
    // SAFETY: the caller's contract.
    unsafe { Vector::<T, 4>::load(from).sum(Vector::load(to)).store(to) }
}

macro_rules! probe {
    ($($(#[$meta:meta])* $Name:ident = $entry:literal: $body:expr;)*) => { $(
        kernel! {
            $(#[$meta])*
            pub struct $Name = $entry, max_threads = 1024, min_blocks = 1;
            unsafe fn(args: ConvertArgs) {
                // SAFETY: compiled and looked at, never launched.
                unsafe { $body(&args) }
            }
        }
    )* };
}

probe! {
    /// `f16` to e4m3b15, the range `Standard`.
    F16ToE4m3B15 = "probe_f16x4_to_e4m3b15x4": convert::<F16, E4m3B15<Standard>>;
    /// Back.
    E4m3B15ToF16 = "probe_e4m3b15x4_to_f16x4": convert::<E4m3B15<Standard>, F16>;
    /// `f32` to e4m3b15.
    F32ToE4m3B15 = "probe_f32x4_to_e4m3b15x4": convert::<f32, E4m3B15<Standard>>;
    /// Back.
    E4m3B15ToF32 = "probe_e4m3b15x4_to_f32x4": convert::<E4m3B15<Standard>, f32>;
    /// `f16` to e4m3b15, the range `Extended`.
    F16ToExtended = "probe_f16x4_to_e4m3b15_extendedx4": convert::<F16, E4m3B15<Extended>>;
    /// Back.
    ExtendedToF16 = "probe_e4m3b15_extendedx4_to_f16x4": convert::<E4m3B15<Extended>, F16>;
    /// `f32` to e4m3b15, the range `Extended`.
    F32ToExtended = "probe_f32x4_to_e4m3b15_extendedx4": convert::<f32, E4m3B15<Extended>>;
    /// Back.
    ExtendedToF32 = "probe_e4m3b15_extendedx4_to_f32x4": convert::<E4m3B15<Extended>, f32>;
    /// `f32` to e4m3.
    F32ToE4m3 = "probe_f32x4_to_e4m3x4": convert::<f32, E4m3>;
    /// `f16` from e5m2.
    E5m2ToF16 = "probe_e5m2x4_to_f16x4": convert::<E5m2, F16>;
    /// The sums of four bytes.
    SumU8 = "probe_sum_u8x4": sum::<u8>;
    /// The sums of four e4m3b15.
    SumE4m3B15 = "probe_sum_e4m3b15x4": sum::<E4m3B15<Standard>>;
}
