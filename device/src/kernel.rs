//! Kernels: what ties an entry's name to its arguments, so that a launch is typed on both devices, and the macros that
//! declare them.

use crate::abi::LaunchLimits;
use crate::arch::Params;

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

/// What the builder has to know of a kernel beside its code: the launch bounds, for which rustc has no attribute, and the
/// path of the Rust module that declares it, by which a crate's PTX can be split into several files. Made by
/// [`kernel!`](crate::kernel!) as a static of the PTX, which the builder takes out again.
#[cfg(target_arch = "nvptx64")]
#[repr(C)]
pub struct Description<const PATH_BYTES: usize> {
    /// The bounds.
    pub limits: LaunchLimits,
    /// The module's path, `kernels::transfer`.
    pub module: [u8; PATH_BYTES],
}

#[cfg(target_arch = "nvptx64")]
impl<const PATH_BYTES: usize> Description<PATH_BYTES> {
    /// For a kernel with these bounds, declared in this module. A path of another length does not compile.
    #[must_use]
    pub const fn new(limits: LaunchLimits, module: &str) -> Self {
        match module.as_bytes().first_chunk() {
            Some(module) if module.len() == PATH_BYTES => Self { limits, module: *module },
            _ => panic!("the path is not as long as the type says"),
        }
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

/// Declares a kernel: a type that stands for it, its entry's name, its launch bounds, its argument, its body.
///
/// ```
/// use warpwire_device::abi::Global;
/// use warpwire_device::{arch, kernel};
///
/// /// The fill kernel's arguments.
/// #[repr(C)]
/// #[derive(Clone, Copy)]
/// pub struct FillArgs {
///     /// Where to write, `count` words.
///     pub out: Global<u32>,
///     /// How many words.
///     pub count: u32,
/// }
///
/// kernel! {
///     /// Numbers the words of a buffer.
///     pub struct Fill = "my_fill", max_threads = 256, min_blocks = 1;
///     unsafe fn(args: FillArgs) {
///         let i = arch::block_index() * arch::block_size() + arch::thread_index();
///         if i < args.count {
///             // SAFETY: the launch's contract: `out` holds `count` words.
///             unsafe { arch::store_weak_u32(args.out.add(u64::from(i)), i) };
///         }
///     }
/// }
/// # fn main() {}
/// ```
///
/// Compiled for a GPU, it exports the entry `my_fill`, taking one `FillArgs` by value. Elsewhere, the type goes into the
/// module's table (see [`module!`](crate::module!)) and the CPU device runs the same body.
#[macro_export]
macro_rules! kernel {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Name:ident = $entry:literal, max_threads = $max_threads:literal, min_blocks = $min_blocks:literal;
        unsafe fn($args:ident : $Args:ty) $body:block
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $Name;

        // SAFETY: the entry below has this name and takes this one argument by value; the check of `repr(C)` is the
        // host's, which compares the size with the PTX's parameter before it launches.
        unsafe impl $crate::kernel::Kernel for $Name {
            const NAME: &'static str = $entry;
            const LIMITS: $crate::abi::LaunchLimits =
                $crate::abi::LaunchLimits { max_threads: $max_threads, min_blocks: $min_blocks };
            type Args = $Args;

            #[inline(always)]
            unsafe fn run($args: $crate::arch::Params<$Args>) $body
        }

        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            #[unsafe(export_name = $entry)]
            unsafe extern "ptx-kernel" fn entry(args: $Args) {
                let params = $crate::params!(args, $entry);
                // SAFETY: the launch's contract, passed on.
                unsafe { <$Name as $crate::kernel::Kernel>::run(params) }
            }

            // What rustc writes nowhere else: the builder reads this static, and removes it.
            #[used]
            #[unsafe(export_name = concat!("__warpwire_kernel_", $entry))]
            static DESCRIPTION: $crate::kernel::Description<{ module_path!().len() }> =
                $crate::kernel::Description::new(<$Name as $crate::kernel::Kernel>::LIMITS, module_path!());
        };
    };
}

/// Declares a crate's table of kernels, which the CPU device runs by name: `module! { pub static MODULE = [Fill, Drain]; }`.
/// Compiled for a GPU it is nothing.
#[macro_export]
macro_rules! module {
    ($(#[$meta:meta])* $vis:vis static $name:ident = [$($Kernel:ty),* $(,)?];) => {
        #[cfg(not(target_arch = "nvptx64"))]
        $(#[$meta])*
        $vis static $name: &[$crate::kernel::KernelEntry] = &[$($crate::kernel::KernelEntry::of::<$Kernel>()),*];
    };
}
