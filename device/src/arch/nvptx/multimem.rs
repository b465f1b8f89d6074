//! Accesses to multicast addresses: one instruction that reaches every member's memory.
//!
//! ```text
//! multimem.ld_reduce.ldsem.scope.global.add.type    d, [a];     .ldsem: relaxed, acquire      PTX 8.1, sm_90
//! multimem.st.stsem.scope.global.type               [a], b;     .stsem: relaxed, release      PTX 8.1, sm_90
//! multimem.red.redsem.scope.global.add.type         [a], b;     .redsem: relaxed, release     PTX 8.1, sm_90
//! multimem.ld_reduce.weak.global.add.v4.f32         d, [a];     multimem.st likewise          PTX 8.1, sm_90
//! ```
//!
//! Source: "Data Movement and Conversion Instructions: multimem.ld_reduce, multimem.st, multimem.red", PTX ISA 8.7. An
//! address of a multicast object may be accessed by these alone, and these take no other address. The order in which a
//! reducing load adds floating-point members is not stated.

use core::arch::asm;

use super::by_order_and_scope;
use crate::abi::Global;
use crate::arch::{LoadKind, LoadOrder, Scope, StoreKind, StoreOrder};

macro_rules! emit_load {
    ($order:literal, $scope:literal, ($ptx:literal, $value:ident, $at:ident)) => {
        // SAFETY: the caller's contract.
        unsafe {
            asm!(concat!("multimem.ld_reduce.", $order, ".", $scope, ".global.add.", $ptx, " {}, [{}];"),
                 out(reg32) $value, in(reg64) $at.address(), options(nostack))
        }
    };
}

macro_rules! emit_store {
    ($order:literal, $scope:literal, ($operation:literal, $ptx:literal, $value:ident, $at:ident)) => {
        // SAFETY: the caller's contract.
        unsafe {
            asm!(concat!("multimem.", $operation, ".", $order, ".", $scope, ".global.", $ptx, " [{}], {};"),
                 in(reg64) $at.address(), in(reg32) $value, options(nostack))
        }
    };
}

macro_rules! multimem {
    ($t:ty, $ptx:literal, $add:literal: $ld_reduce_add:ident, $st:ident, $red_add:ident) => {
        /// `multimem.ld_reduce.O.S.global.add`: the sum of all members' words. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is an aligned address of a mapped multicast object, to which every member has bound memory.
        #[inline(always)]
        pub unsafe fn $ld_reduce_add<O: LoadOrder, S: Scope>(at: Global<$t>) -> $t {
            let value: $t;
            by_order_and_scope!(O: LoadKind [Relaxed "relaxed", Acquire "acquire"], S, emit_load!($ptx, value, at));
            value
        }

        /// `multimem.st.O.S.global`: writes every member's word. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is an aligned address of a mapped multicast object, to which every member has bound memory.
        #[inline(always)]
        pub unsafe fn $st<O: StoreOrder, S: Scope>(at: Global<$t>, value: $t) {
            by_order_and_scope!(O: StoreKind [Relaxed "relaxed", Release "release"], S,
                emit_store!("st", $ptx, value, at));
        }

        /// `multimem.red.O.S.global.add`: adds to every member's word and returns nothing. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is an aligned address of a mapped multicast object, to which every member has bound memory.
        #[inline(always)]
        pub unsafe fn $red_add<O: StoreOrder, S: Scope>(at: Global<$t>, value: $t) {
            by_order_and_scope!(O: StoreKind [Relaxed "relaxed", Release "release"], S,
                emit_store!("red", $add, value, at));
        }
    };
}

multimem!(u32, "u32", "add.u32": multimem_ld_reduce_add_u32, multimem_st_u32, multimem_red_add_u32);
multimem!(f32, "f32", "add.f32": multimem_ld_reduce_add_f32, multimem_st_f32, multimem_red_add_f32);

/// `multimem.ld_reduce.weak.global.add.v4.f32`: the sums of all members' words, four at once. Called by a thread.
///
/// # Safety
///
/// `at` is a multicast address aligned to 16 bytes, to which every member has bound memory, whose writers are ordered
/// before.
#[inline(always)]
pub unsafe fn multimem_ld_reduce_add_v4_f32(at: Global<[f32; 4]>) -> [f32; 4] {
    let (a, b, c, d): (f32, f32, f32, f32);
    // SAFETY: the caller's contract.
    unsafe {
        asm!("multimem.ld_reduce.weak.global.add.v4.f32 {{{0}, {1}, {2}, {3}}}, [{4}];",
             out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg64) at.address(), options(nostack))
    };
    [a, b, c, d]
}

/// `multimem.st.weak.global.v4.f32`: writes every member's words, four at once. Called by a thread.
///
/// # Safety
///
/// `at` is a multicast address aligned to 16 bytes, to which every member has bound memory, which nobody else touches before
/// the release that publishes it.
#[inline(always)]
pub unsafe fn multimem_st_v4_f32(at: Global<[f32; 4]>, value: [f32; 4]) {
    let [a, b, c, d] = value;
    // SAFETY: the caller's contract.
    unsafe {
        asm!("multimem.st.weak.global.v4.f32 [{0}], {{{1}, {2}, {3}, {4}}};",
             in(reg64) at.address(), in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d, options(nostack))
    };
}
