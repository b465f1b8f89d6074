//! Arithmetic on packed words: two 16-bit elements, four bytes.
//!
//! ```text
//! add{.rnd}.f16x2         d, a, b;      PTX 4.2 (.rnd 6.0), sm_53
//! fma.rn.bf16x2           d, a, b, c;   PTX 7.0, sm_80          add.rn.bf16x2   PTX 7.8, sm_90
//! min{.NaN}.type          d, a, b;      max likewise; .type: f16x2, bf16x2 (PTX 7.0, sm_80), f32
//! abs.f16x2               d, a;         PTX 6.5, sm_53
//! mul.rn.f16x2            d, a, b;      PTX 4.2, sm_53
//! prmt.b32                d, a, b, c;   PTX 2.0
//! ```
//!
//! None flushes subnormal values. `min` and `max` take the number where one operand is NaN, and order -0 before +0; a NaN
//! result is 0x7FFF in each half.
//!
//! Source: "Half Precision Floating Point Instructions", "Floating-Point Instructions: min", "Data Movement and Conversion
//! Instructions: prmt", PTX ISA 8.7.

use core::arch::asm;

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $ptx:literal;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(a: u32, b: u32) -> u32 {
            let result: u32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!(concat!($ptx, ";"), d = out(reg32) result, a = in(reg32) a, b = in(reg32) b,
                     options(pure, nomem, nostack, preserves_flags))
            };
            result
        }
    )* };
}

binary! {
    /// The sums of two `f16` pairs.
    add_f16x2 = "add.rn.f16x2 {d}, {a}, {b}";
    /// The products of two `f16` pairs.
    mul_f16x2 = "mul.rn.f16x2 {d}, {a}, {b}";
    /// The lesser of each `f16`.
    min_f16x2 = "min.f16x2 {d}, {a}, {b}";
    /// The lesser of each `f16`, NaN where either is NaN.
    min_nan_f16x2 = "min.NaN.f16x2 {d}, {a}, {b}";
    /// The greater of each `f16`.
    max_f16x2 = "max.f16x2 {d}, {a}, {b}";
    /// The lesser of each `bf16`.
    min_bf16x2 = "min.bf16x2 {d}, {a}, {b}";
    /// The greater of each `bf16`.
    max_bf16x2 = "max.bf16x2 {d}, {a}, {b}";
    /// The lesser `f32`, of and as bits.
    min_f32 = "min.f32 {d}, {a}, {b}";
    /// The greater `f32`, of and as bits.
    max_f32 = "max.f32 {d}, {a}, {b}";
}

#[cfg(warpwire_sm90)]
binary! {
    /// The sums of two `bf16` pairs.
    add_bf16x2 = "add.rn.bf16x2 {d}, {a}, {b}";
}

/// The sums of two `bf16` pairs: `a * 1 + b`, rounded once.
#[cfg(not(warpwire_sm90))]
#[inline(always)]
pub fn add_bf16x2(a: u32, b: u32) -> u32 {
    let result: u32;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("fma.rn.bf16x2 {}, {}, {}, {};", out(reg32) result, in(reg32) a, in(reg32) 0x3F80_3F80u32, in(reg32) b,
             options(pure, nomem, nostack, preserves_flags))
    };
    result
}

/// Each `f16` without its sign. An instruction of its own, not a mask, which `min` takes as a modifier of its operand.
#[inline(always)]
pub fn abs_f16x2(a: u32) -> u32 {
    let result: u32;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("abs.f16x2 {}, {};", out(reg32) result, in(reg32) a, options(pure, nomem, nostack, preserves_flags))
    };
    result
}

/// Four bytes chosen out of eight: hexadecimal digit `i` of `SELECTOR` says which byte of `b:a` becomes byte `i`, 0 to 3 those
/// of `a`, 4 to 7 those of `b`; with 8 added, that byte's sign bit eight times.
#[inline(always)]
pub fn permute_bytes<const SELECTOR: u32>(a: u32, b: u32) -> u32 {
    let result: u32;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("prmt.b32 {}, {}, {}, {};", out(reg32) result, in(reg32) a, in(reg32) b, const SELECTOR,
             options(pure, nomem, nostack, preserves_flags))
    };
    result
}
