//! What ties a kernel's name to its arguments, so that a launch is typed on both devices.

use super::MAX_RANKS;
use crate::arch::Params;

/// The bounds that a kernel is compiled for; the builder writes them into the PTX as `.maxntid` and `.minnctapersm`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchLimits {
    /// The most threads that a block may have.
    pub max_threads: u32,
    /// How many such blocks one multiprocessor has to be able to hold.
    pub min_blocks: u32,
}

/// A kernel: its entry's name, its one argument, its launch bounds and its body. Made by [`kernel!`](crate::kernel!).
///
/// # Safety
///
/// `NAME` is the entry that takes `Args`, and nothing else, by value; `Args` is `repr(C)`.
pub unsafe trait Kernel: Sized + Send + Sync + 'static {
    /// The entry's name in the PTX and in a module's table.
    const NAME: &'static str;
    /// The bounds it is compiled for.
    const LIMITS: LaunchLimits;
    /// The argument block.
    type Args: Copy + Send + Sync + 'static;

    /// The body, run by every thread of the grid.
    ///
    /// # Safety
    ///
    /// Each address in the arguments is valid for what the kernel's documentation says it does with it, for as long as
    /// the grid runs.
    unsafe fn run(args: Params<Self::Args>);
}

/// One entry per rank, inside an argument block. Read it through [`rank_entry!`](crate::rank_entry!), which indexes the parameter space
/// itself: an index into a by-value copy would move the whole table to local memory.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct RankTable<T>(pub [T; MAX_RANKS]);

impl<T: Copy + Default> RankTable<T> {
    /// The table with `entries` at the front and defaults behind; `None` where there are more than [`MAX_RANKS`].
    #[must_use]
    pub fn new(entries: &[T]) -> Option<Self> {
        let mut table = [T::default(); MAX_RANKS];
        table.get_mut(..entries.len())?.copy_from_slice(entries);
        Some(Self(table))
    }
}

/// A kernel in a module's table, for the CPU device: what the PTX is for a GPU.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy, Debug)]
pub struct KernelEntry {
    /// The entry's name.
    pub name: &'static str,
    /// The bounds.
    pub limits: LaunchLimits,
    /// Bytes of the argument block.
    pub args_size: usize,
    /// Its alignment.
    pub args_align: usize,
    /// Runs the body for the current lane (see [`crate::arch::Lane`]) with the argument block at this address.
    pub run: unsafe fn(*const u8),
}

#[cfg(not(target_arch = "nvptx64"))]
impl KernelEntry {
    /// The table entry of `K`.
    #[must_use]
    pub const fn of<K: Kernel>() -> Self {
        Self {
            name: K::NAME,
            limits: K::LIMITS,
            args_size: size_of::<K::Args>(),
            args_align: align_of::<K::Args>(),
            run: cpu_entry::<K>,
        }
    }
}

/// Runs `K` for the current lane.
///
/// # Safety
///
/// `args` points at a `K::Args` that outlives the call, and [`Kernel::run`]'s contract holds.
#[cfg(not(target_arch = "nvptx64"))]
pub unsafe fn cpu_entry<K: Kernel>(args: *const u8) {
    // SAFETY: the caller's contract: `args` is a live, aligned `K::Args`, which is all that `Params` asks for.
    let params = unsafe { Params::new(args.cast::<K::Args>()) };
    // SAFETY: the caller's contract.
    unsafe { K::run(params) }
}
