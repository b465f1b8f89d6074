//! PTX, one file for each family of instructions.
//!
//! Every access names `.global` and, where it has one, its order and scope. No memory instruction carries `nomem` or
//! `pure`: without them the compiler takes each for a read and write of all memory, and moves no other access across it.

mod atom;
#[cfg(warpwire_sm90)]
mod bulk;
mod cvt;
mod fence;
mod ldst;
mod ldst_words;
#[cfg(warpwire_sm90)]
mod multimem;
mod panic;
mod param;
mod simd;
mod sreg;
mod sync;

pub use atom::*;
#[cfg(warpwire_sm90)]
pub use bulk::*;
pub use cvt::*;
pub use fence::*;
pub use ldst::*;
pub use ldst_words::*;
#[cfg(warpwire_sm90)]
pub use multimem::*;
pub use param::*;
pub use simd::*;
pub use sreg::*;
pub use sync::*;

/// Expands `$emit!(order, scope, …)` once for each pair that the instruction has, and picks the one that the types name;
/// both are constants, so one instruction remains.
macro_rules! by_order_and_scope {
    ($O:ident: $Kind:ident [$($order:ident $spelled:literal),*], $S:ident, $emit:ident ! $args:tt) => {
        match <$O>::KIND {
            $($Kind::$order => match <$S>::KIND {
                $crate::arch::ScopeKind::Cta => $emit!($spelled, "cta", $args),
                $crate::arch::ScopeKind::Gpu => $emit!($spelled, "gpu", $args),
                $crate::arch::ScopeKind::Sys => $emit!($spelled, "sys", $args),
            },)*
        }
    };
}
use by_order_and_scope;
