//! Loads and stores.
//!
//! ```text
//! ld{.weak}{.level::eviction_priority}.global{.vec}.type   d, [a];     st likewise
//! ld.sem.scope.global{.vec}.type          d, [a];   .sem: relaxed, acquire     PTX 6.0, sm_70
//! st.sem.scope.global{.vec}.type          [a], b;   .sem: relaxed, release     PTX 6.0, sm_70
//! ld.volatile.global{.vec}.type           d, [a];   as relaxed.sys, never merged, moved or dropped
//! ```
//!
//! Source: "Data Movement and Conversion Instructions: ld" and ": st", PTX ISA 8.7.

use core::arch::asm;

use super::by_order_and_scope;
use crate::abi::Global;
use crate::arch::{LoadKind, LoadOrder, Scope, StoreKind, StoreOrder};

macro_rules! emit_load {
    ($order:literal, $scope:literal, ($ptx:literal, $reg:ident, $value:ident, $at:ident)) => {
        // SAFETY: the caller's contract: a word that this type may be read from lies there.
        unsafe {
            asm!(concat!("ld.", $order, ".", $scope, ".global.", $ptx, " {}, [{}];"),
                 out($reg) $value, in(reg64) $at.address(), options(nostack))
        }
    };
}

macro_rules! emit_store {
    ($order:literal, $scope:literal, ($ptx:literal, $reg:ident, $value:ident, $at:ident)) => {
        // SAFETY: the caller's contract: a word that this type may be written to lies there.
        unsafe {
            asm!(concat!("st.", $order, ".", $scope, ".global.", $ptx, " [{}], {};"),
                 in(reg64) $at.address(), in($reg) $value, options(nostack))
        }
    };
}

macro_rules! ordered {
    ($t:ty, $ptx:literal, $reg:ident, $load:ident, $store:ident) => {
        /// `ld.O.S.global`. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped to this device and live.
        #[inline(always)]
        pub unsafe fn $load<O: LoadOrder, S: Scope>(at: Global<$t>) -> $t {
            let value: $t;
            by_order_and_scope!(O: LoadKind [Relaxed "relaxed", Acquire "acquire"], S,
                emit_load!($ptx, $reg, value, at));
            value
        }

        /// `st.O.S.global`. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped to this device and live.
        #[inline(always)]
        pub unsafe fn $store<O: StoreOrder, S: Scope>(at: Global<$t>, value: $t) {
            by_order_and_scope!(O: StoreKind [Relaxed "relaxed", Release "release"], S,
                emit_store!($ptx, $reg, value, at));
        }
    };
}

ordered!(u32, "u32", reg32, load_u32, store_u32);
ordered!(u64, "u64", reg64, load_u64, store_u64);

macro_rules! emit_load_pair {
    ($order:literal, $scope:literal, ($low:ident, $high:ident, $at:ident)) => {
        // SAFETY: the caller's contract: two words lie there.
        unsafe {
            asm!(concat!("ld.", $order, ".", $scope, ".global.v2.u64 {{{0}, {1}}}, [{2}];"),
                 out(reg64) $low, out(reg64) $high, in(reg64) $at.address(), options(nostack))
        }
    };
}

macro_rules! emit_store_pair {
    ($order:literal, $scope:literal, ($value:ident, $at:ident)) => {
        // SAFETY: the caller's contract: two words lie there.
        unsafe {
            asm!(concat!("st.", $order, ".", $scope, ".global.v2.u64 [{0}], {{{1}, {2}}};"),
                 in(reg64) $at.address(), in(reg64) $value[0], in(reg64) $value[1], options(nostack))
        }
    };
}

/// `ld.O.S.global.v2.u64`: two words by one access, each whole and of this order; the pair need not be. Called by a thread.
///
/// # Safety
///
/// `at` is aligned to 16 bytes, mapped to this device and live.
#[inline(always)]
pub unsafe fn load_v2_u64<O: LoadOrder, S: Scope>(at: Global<[u64; 2]>) -> [u64; 2] {
    let (low, high): (u64, u64);
    by_order_and_scope!(O: LoadKind [Relaxed "relaxed", Acquire "acquire"], S, emit_load_pair!(low, high, at));
    [low, high]
}

/// `st.O.S.global.v2.u64`: two words by one access, each arrives whole and of this order, in no stated order of the two. Called
/// by a thread.
///
/// # Safety
///
/// `at` is aligned to 16 bytes, mapped to this device and live.
#[inline(always)]
pub unsafe fn store_v2_u64<O: StoreOrder, S: Scope>(at: Global<[u64; 2]>, value: [u64; 2]) {
    by_order_and_scope!(O: StoreKind [Relaxed "relaxed", Release "release"], S, emit_store_pair!(value, at));
}

macro_rules! weak {
    ($t:ty, $level:literal $ptx:literal, $reg:ident, $load:ident, $store:ident) => {
        #[doc = concat!("A weak `ld.global", $level, ".", $ptx, "`: for data that no other thread writes meanwhile. Called by a thread.")]
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live, and its writers are ordered before this access.
        #[inline(always)]
        pub unsafe fn $load(at: Global<$t>) -> $t {
            let value: $t;
            // SAFETY: the caller's contract.
            unsafe {
                asm!(concat!("ld.global", $level, ".", $ptx, " {}, [{}];"),
                     out($reg) value, in(reg64) at.address(), options(nostack))
            };
            value
        }

        #[doc = concat!("A weak `st.global", $level, ".", $ptx, "`: published by the release that follows it. Called by a thread.")]
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live, and nobody else touches it before that release.
        #[inline(always)]
        pub unsafe fn $store(at: Global<$t>, value: $t) {
            // SAFETY: the caller's contract.
            unsafe {
                asm!(concat!("st.global", $level, ".", $ptx, " [{}], {};"),
                     in(reg64) at.address(), in($reg) value, options(nostack))
            };
        }
    };
}

weak!(u16, "" "u16", reg16, load_weak_u16, store_weak_u16);
weak!(u32, "" "u32", reg32, load_weak_u32, store_weak_u32);
weak!(u64, "" "u64", reg64, load_weak_u64, store_weak_u64);
// `.cs`, evict first: for data that streams through once.
weak!(u32, ".cs" "u32", reg32, load_streaming_u32, store_streaming_u32);

/// A weak load of one byte. Called by a thread.
///
/// # Safety
///
/// As for [`load_weak_u32`].
#[inline(always)]
pub unsafe fn load_weak_u8(at: Global<u8>) -> u8 {
    let value: u16;
    // SAFETY: the caller's contract. PTX lets the destination of a narrow load be wider than the type.
    unsafe { asm!("ld.global.u8 {}, [{}];", out(reg16) value, in(reg64) at.address(), options(nostack)) };
    value as u8
}

/// A weak store of one byte. Called by a thread.
///
/// # Safety
///
/// As for [`store_weak_u32`].
#[inline(always)]
pub unsafe fn store_weak_u8(at: Global<u8>, value: u8) {
    // SAFETY: the caller's contract.
    unsafe {
        asm!("st.global.u8 [{}], {};", in(reg64) at.address(), in(reg16) u16::from(value), options(nostack))
    };
}

/// A weak 16-byte load. Called by a thread.
///
/// # Safety
///
/// `at` is aligned to 16 bytes, mapped and live, and its writers are ordered before this access.
#[inline(always)]
pub unsafe fn load_weak_v2_u64(at: Global<[u64; 2]>) -> [u64; 2] {
    let (low, high): (u64, u64);
    // SAFETY: the caller's contract.
    unsafe {
        asm!("ld.global.v2.b64 {{{0}, {1}}}, [{2}];",
             out(reg64) low, out(reg64) high, in(reg64) at.address(), options(nostack))
    };
    [low, high]
}

/// A weak 16-byte store. Called by a thread.
///
/// # Safety
///
/// `at` is aligned to 16 bytes, mapped and live, and nobody else touches it before the release that publishes it.
#[inline(always)]
pub unsafe fn store_weak_v2_u64(at: Global<[u64; 2]>, value: [u64; 2]) {
    // SAFETY: the caller's contract.
    unsafe {
        asm!("st.global.v2.b64 [{0}], {{{1}, {2}}};",
             in(reg64) at.address(), in(reg64) value[0], in(reg64) value[1], options(nostack))
    };
}

/// `ld.volatile.global.b64`: reads a word that a peer writes meanwhile, as relaxed at system scope. Called by a thread.
///
/// # Safety
///
/// `at` is aligned, mapped and live.
#[inline(always)]
pub unsafe fn load_volatile_u64(at: Global<u64>) -> u64 {
    let value: u64;
    // SAFETY: the caller's contract.
    unsafe {
        asm!("ld.volatile.global.b64 {}, [{}];", out(reg64) value, in(reg64) at.address(), options(nostack))
    };
    value
}

/// `st.volatile.global.b64`: writes a word that a peer reads meanwhile, as relaxed at system scope. Called by a thread.
///
/// # Safety
///
/// `at` is aligned, mapped and live.
#[inline(always)]
pub unsafe fn store_volatile_u64(at: Global<u64>, value: u64) {
    // SAFETY: the caller's contract.
    unsafe {
        asm!("st.volatile.global.b64 [{}], {};", in(reg64) at.address(), in(reg64) value, options(nostack))
    };
}

/// `ld.volatile.global.v2.b64`: two words by one access; each word is whole, the pair need not be. Called by a thread.
///
/// # Safety
///
/// `at` is aligned to 16 bytes, mapped and live.
#[inline(always)]
pub unsafe fn load_volatile_v2_u64(at: Global<[u64; 2]>) -> [u64; 2] {
    let (low, high): (u64, u64);
    // SAFETY: the caller's contract.
    unsafe {
        asm!("ld.volatile.global.v2.b64 {{{0}, {1}}}, [{2}];",
             out(reg64) low, out(reg64) high, in(reg64) at.address(), options(nostack))
    };
    [low, high]
}

/// `st.volatile.global.v2.b64`: two words by one access; each arrives whole, in no stated order. Called by a thread.
///
/// # Safety
///
/// `at` is aligned to 16 bytes, mapped and live.
#[inline(always)]
pub unsafe fn store_volatile_v2_u64(at: Global<[u64; 2]>, value: [u64; 2]) {
    // SAFETY: the caller's contract.
    unsafe {
        asm!("st.volatile.global.v2.b64 [{0}], {{{1}, {2}}};",
             in(reg64) at.address(), in(reg64) value[0], in(reg64) value[1], options(nostack))
    };
}

/// [`load_volatile_u64`] where `condition`, else `otherwise`: a predicated load, no branch. Called by a thread.
///
/// # Safety
///
/// Where `condition`, as for [`load_volatile_u64`].
#[inline(always)]
pub unsafe fn load_volatile_u64_if(condition: bool, at: Global<u64>, otherwise: u64) -> u64 {
    let mut value = otherwise;
    // SAFETY: the caller's contract.
    unsafe {
        asm!("{{ .reg .pred p; setp.ne.u32 p, {2}, 0; @p ld.volatile.global.b64 {0}, [{1}]; }}",
             inout(reg64) value, in(reg64) at.address(), in(reg32) u32::from(condition), options(nostack))
    };
    value
}

/// [`load_volatile_v2_u64`] where `condition`, else `otherwise`: a predicated load, no branch. Called by a thread.
///
/// # Safety
///
/// Where `condition`, as for [`load_volatile_v2_u64`].
#[inline(always)]
pub unsafe fn load_volatile_v2_u64_if(
    condition: bool,
    at: Global<[u64; 2]>,
    otherwise: [u64; 2],
) -> [u64; 2] {
    let [mut low, mut high] = otherwise;
    // SAFETY: the caller's contract.
    unsafe {
        asm!("{{ .reg .pred p; setp.ne.u32 p, {3}, 0; @p ld.volatile.global.v2.b64 {{{0}, {1}}}, [{2}]; }}",
             inout(reg64) low, inout(reg64) high, in(reg64) at.address(), in(reg32) u32::from(condition),
             options(nostack))
    };
    [low, high]
}
