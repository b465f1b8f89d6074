//! Every pair of order and scope that each ordered instruction has, one after the other: scope by scope (`cta`, `gpu`,
//! `sys`), in each the orders as they are listed, in each the 32-bit and the 64-bit form.

use warpwire_device::abi::Global;
use warpwire_device::arch::{self, AcqRel, Acquire, Cta, Gpu, Relaxed, Release, SeqCst, Sys};
use warpwire_device::kernel;

/// Arguments of the instruction probes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InstructionArgs {
    /// A 32-bit word.
    pub narrow: Global<u32>,
    /// A 64-bit word.
    pub wide: Global<u64>,
    /// An operand.
    pub value: u64,
}

macro_rules! by_scope {
    ($args:ident, [$($Order:ident),*], $each:ident $names:tt) => {
        by_scope!(@scope $args, Cta, [$($Order),*], $each $names);
        by_scope!(@scope $args, Gpu, [$($Order),*], $each $names);
        by_scope!(@scope $args, Sys, [$($Order),*], $each $names);
    };
    (@scope $args:ident, $Scope:ident, [$($Order:ident),*], $each:ident $names:tt) => {
        $( $each!($args, $Order, $Scope, $names); )*
    };
}

macro_rules! load {
    ($args:ident, $Order:ident, $Scope:ident, ($narrow:ident, $wide:ident)) => {
        arch::$narrow::<$Order, $Scope>($args.narrow);
        arch::$wide::<$Order, $Scope>($args.wide);
    };
}

macro_rules! store {
    ($args:ident, $Order:ident, $Scope:ident, ($narrow:ident, $wide:ident)) => {
        arch::$narrow::<$Order, $Scope>($args.narrow, $args.value as u32);
        arch::$wide::<$Order, $Scope>($args.wide, $args.value);
    };
}

macro_rules! cas {
    ($args:ident, $Order:ident, $Scope:ident, ($narrow:ident, $wide:ident)) => {
        arch::$narrow::<$Order, $Scope>($args.narrow, 1, $args.value as u32);
        arch::$wide::<$Order, $Scope>($args.wide, 1, $args.value);
    };
}

macro_rules! pair_load {
    ($args:ident, $Order:ident, $Scope:ident, ()) => {
        arch::load_v2_u64::<$Order, $Scope>($args.wide.cast());
    };
}

macro_rules! pair_store {
    ($args:ident, $Order:ident, $Scope:ident, ()) => {
        arch::store_v2_u64::<$Order, $Scope>($args.wide.cast(), [$args.value; 2]);
    };
}

macro_rules! fence {
    ($args:ident, $Order:ident, $Scope:ident, ()) => {
        arch::fence::<$Order, $Scope>();
    };
}

macro_rules! probe {
    ($($Name:ident = $entry:literal: $each:ident $names:tt in $orders:tt;)*) => { $(
        kernel! {
            #[doc = concat!("Every order and scope of `", stringify!($each), "`.")]
            pub struct $Name = $entry, max_threads = 1024, min_blocks = 1;
            unsafe fn(args: InstructionArgs) {
                let _ = args.value;
                // SAFETY: compiled and looked at, never launched.
                #[allow(unused_unsafe, reason = "a fence is safe")]
                unsafe { by_scope!(args, $orders, $each $names); }
            }
        }
    )* };
}

probe! {
    Loads = "probe_loads": load(load_u32, load_u64) in [Relaxed, Acquire];
    Stores = "probe_stores": store(store_u32, store_u64) in [Relaxed, Release];
    Reds = "probe_reds": store(red_add_u32, red_add_u64) in [Relaxed, Release];
    AtomAdds = "probe_atom_adds": store(atom_add_u32, atom_add_u64) in [Relaxed, Acquire, Release, AcqRel];
    AtomExchs = "probe_atom_exchs": store(atom_exch_u32, atom_exch_u64) in [Relaxed, Acquire, Release, AcqRel];
    AtomCass = "probe_atom_cass": cas(atom_cas_u32, atom_cas_u64) in [Relaxed, Acquire, Release, AcqRel];
    LoadPairs = "probe_load_pairs": pair_load() in [Relaxed, Acquire];
    StorePairs = "probe_store_pairs": pair_store() in [Relaxed, Release];
    Fences = "probe_fences": fence() in [AcqRel, SeqCst];
}
