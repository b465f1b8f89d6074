//! What Mellanox's and NVIDIA's adapters do beyond the verbs: mlx5 Direct Verbs, where that library is.
//!
//! Data-direct is a path between such an adapter and a GPU that goes past the processor's host bridge.
//!
//! Source: rdma-core 55, `providers/mlx5/mlx5dv.h`.

use std::ffi::{c_char, c_int};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::{Arc, OnceLock};

use ibverbs_sys as ffi;
use libloading::Library;

use super::context::Context;
use super::domain::Domain;

const NAME: &str = "libmlx5.so.1";

/// `MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT`.
const ACCESS_DATA_DIRECT: c_int = 1 << 0;

/// A range of a DMA-BUF.
#[derive(Clone, Copy, Debug)]
pub(super) struct DmaBufRange {
    /// Where in the DMA-BUF it begins.
    pub(super) offset: u64,
    /// Its length.
    pub(super) bytes: u64,
    /// The address that requests name it by.
    pub(super) address: u64,
}

type IsSupported = unsafe extern "C" fn(*mut ffi::ibv_device) -> bool;
type SysfsPath = unsafe extern "C" fn(*mut ffi::ibv_context, *mut c_char, usize) -> c_int;
type Register =
    unsafe extern "C" fn(*mut ffi::ibv_pd, u64, usize, u64, c_int, c_int, c_int) -> *mut ffi::ibv_mr;

struct Mlx5 {
    is_supported: IsSupported,
    data_direct_path: SysfsPath,
    register: Register,
    /// Keeps the pointers above valid.
    _library: Library,
}

impl Mlx5 {
    /// The library; `None` where it is not there, or is too old for data-direct.
    fn get() -> Option<&'static Self> {
        static LOADED: OnceLock<Option<Mlx5>> = OnceLock::new();
        LOADED.get_or_init(Self::load).as_ref()
    }

    fn load() -> Option<Self> {
        // SAFETY: loading the provider's library runs its initialisers, which ask nothing of the program.
        let library = unsafe { Library::new(NAME) }.ok()?;
        // SAFETY: the types are those of mlx5dv.h; the pointers are kept no longer than the library.
        let (is_supported, data_direct_path, register) = unsafe {
            (
                *library.get::<IsSupported>(b"mlx5dv_is_supported").ok()?,
                *library.get::<SysfsPath>(b"mlx5dv_get_data_direct_sysfs_path").ok()?,
                *library.get::<Register>(b"mlx5dv_reg_dmabuf_mr").ok()?,
            )
        };
        Some(Self { is_supported, data_direct_path, register, _library: library })
    }
}

/// Whether the adapter has a data-direct path.
pub(super) fn has_data_direct(context: &Context) -> bool {
    let Some(mlx5) = Mlx5::get() else { return false };
    let mut path = [0; libc::PATH_MAX as usize];
    // SAFETY: an open context, whose device is live with it; room for a path of that length.
    unsafe {
        let raw = context.raw.as_ptr();
        (mlx5.is_supported)((*raw).device) && (mlx5.data_direct_path)(raw, path.as_mut_ptr(), path.len()) == 0
    }
}

/// Registers a range of a DMA-BUF for the data-direct path. Null where that fails, with the reason in `errno`.
pub(super) fn register(
    domain: &Arc<Domain>,
    buffer: &OwnedFd,
    range: DmaBufRange,
    access: u32,
) -> *mut ffi::ibv_mr {
    let Some(mlx5) = Mlx5::get() else { return ptr::null_mut() };
    // SAFETY: a live domain and an open descriptor; the kernel checks the range.
    unsafe {
        (mlx5.register)(
            domain.raw.as_ptr(),
            range.offset,
            range.bytes as usize,
            range.address,
            buffer.as_raw_fd(),
            access as c_int,
            ACCESS_DATA_DIRECT,
        )
    }
}
