//! Read-modify-writes.
//!
//! ```text
//! red.sem.scope.global.add.type     [a], b;         .sem: relaxed, release                     PTX 6.0, sm_70
//! atom.sem.scope.global.op.type     d, [a], b{, c}; .sem: relaxed, acquire, release, acq_rel   PTX 6.0, sm_70
//! ```
//!
//! Source: "Parallel Synchronization and Communication Instructions: atom" and ": red", PTX ISA 8.7.

use core::arch::asm;

use super::{by_order_and_scope, fence};
use crate::abi::Global;
use crate::arch::{FenceOrder, RmwKind, RmwOrder, Scope, StoreKind, StoreOrder};

macro_rules! emit_red {
    ($order:literal, $scope:literal, ($ptx:literal, $reg:ident, $value:ident, $at:ident)) => {
        // SAFETY: the caller's contract.
        unsafe {
            asm!(concat!("red.", $order, ".", $scope, ".global.add.", $ptx, " [{}], {};"),
                 in(reg64) $at.address(), in($reg) $value, options(nostack))
        }
    };
}

macro_rules! emit_atom {
    ($order:literal, $scope:literal, ($op:literal, $ptx:literal, $reg:ident, $old:ident, $at:ident, $value:ident)) => {
        // SAFETY: the caller's contract.
        unsafe {
            asm!(concat!("atom.", $order, ".", $scope, ".global.", $op, ".", $ptx, " {}, [{}], {};"),
                 out($reg) $old, in(reg64) $at.address(), in($reg) $value, options(nostack))
        }
    };
}

macro_rules! emit_cas {
    ($order:literal, $scope:literal, ($ptx:literal, $reg:ident, $old:ident, $at:ident, $compare:ident, $value:ident)) => {
        // SAFETY: the caller's contract.
        unsafe {
            asm!(concat!("atom.", $order, ".", $scope, ".global.cas.", $ptx, " {}, [{}], {}, {};"),
                 out($reg) $old, in(reg64) $at.address(), in($reg) $compare, in($reg) $value, options(nostack))
        }
    };
}

macro_rules! rmw {
    ($t:ty, $ptx:literal, $bits:literal, $reg:ident, $red_add:ident, $atom_add:ident, $atom_exch:ident, $atom_cas:ident) => {
        /// `red.O.S.global.add`: adds and returns nothing, so the thread does not wait for it. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live.
        #[inline(always)]
        pub unsafe fn $red_add<O: StoreOrder, S: Scope>(at: Global<$t>, value: $t) {
            by_order_and_scope!(O: StoreKind [Relaxed "relaxed", Release "release"], S,
                emit_red!($ptx, $reg, value, at));
        }

        /// `atom.O.S.global.add`: adds and returns the value before. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live.
        #[inline(always)]
        pub unsafe fn $atom_add<O: RmwOrder, S: Scope>(at: Global<$t>, value: $t) -> $t {
            let old: $t;
            by_order_and_scope!(
                O: RmwKind [Relaxed "relaxed", Acquire "acquire", Release "release", AcqRel "acq_rel"], S,
                emit_atom!("add", $ptx, $reg, old, at, value));
            old
        }

        /// `atom.O.S.global.exch`: stores and returns the value before. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live.
        #[inline(always)]
        pub unsafe fn $atom_exch<O: RmwOrder, S: Scope>(at: Global<$t>, value: $t) -> $t {
            let old: $t;
            by_order_and_scope!(
                O: RmwKind [Relaxed "relaxed", Acquire "acquire", Release "release", AcqRel "acq_rel"], S,
                emit_atom!("exch", $bits, $reg, old, at, value));
            old
        }

        /// `atom.O.S.global.cas`: stores `value` where `compare` stood; returns the value before. Called by a thread.
        ///
        /// # Safety
        ///
        /// `at` is aligned, mapped and live.
        #[inline(always)]
        pub unsafe fn $atom_cas<O: RmwOrder, S: Scope>(at: Global<$t>, compare: $t, value: $t) -> $t {
            let old: $t;
            by_order_and_scope!(
                O: RmwKind [Relaxed "relaxed", Acquire "acquire", Release "release", AcqRel "acq_rel"], S,
                emit_cas!($bits, $reg, old, at, compare, value));
            old
        }
    };
}

rmw!(u32, "u32", "b32", reg32, red_add_u32, atom_add_u32, atom_exch_u32, atom_cas_u32);
rmw!(u64, "u64", "b64", reg64, red_add_u64, atom_add_u64, atom_exch_u64, atom_cas_u64);

/// `atom.O.S.global.add`, then `fence.F.FS`, the one on its way while the other is. Called by a thread.
///
/// Written one after the other they would not be: the assembler makes one addition of a warp's additions and shares its result
/// out by shuffles, and works with the result ahead of the fence, so the fence would wait for both.
///
/// # Safety
///
/// `at` is aligned, mapped and live.
#[inline(always)]
pub unsafe fn atom_add_fence_u64<O: RmwOrder, S: Scope, F: FenceOrder, FS: Scope>(
    at: Global<u64>,
    value: u64,
) -> u64 {
    let own: u64;
    // `lane * (lane + 1)` is even. The assembler does not know that, and gathers additions only where all lanes add the same.
    // SAFETY: works with registers.
    unsafe {
        asm!("{{ .reg .b32 even; mov.u32 even, %laneid; mad.lo.u32 even, even, even, even; and.b32 even, even, 1;",
             "cvt.u64.u32 {0}, even; add.u64 {0}, {0}, {1}; }}",
             out(reg64) own, in(reg64) value, options(pure, nomem, nostack))
    };
    // SAFETY: the caller's contract.
    let before = unsafe { atom_add_u64::<O, S>(at, own) };
    fence::<F, FS>();
    let after: u64;
    // The lanes that are here are never none: nothing is added, but not before the fence.
    // SAFETY: works with registers.
    unsafe {
        asm!("{{ .reg .b32 lanes; .reg .pred none; activemask.b32 lanes; setp.eq.u32 none, lanes, 0;",
             "selp.b32 lanes, 1, 0, none; cvt.u64.u32 {0}, lanes; add.u64 {0}, {0}, {1}; }}",
             out(reg64) after, in(reg64) before, options(nostack))
    };
    after
}
