//! GPU memory in the host's address space, by GDRCopy, which is found at run time.
//!
//! Source: GDRCopy 2.4, `include/gdrapi.h`.

use std::ffi::{c_int, c_ulong, c_void};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use libloading::Library;

const NAMES: [&str; 2] = ["libgdrapi.so.2", "libgdrapi.so"];

/// `GPU_PAGE_SIZE`: what is mapped is whole pages of this size.
const PAGE: u64 = 1 << 16;

/// `gdr_mh_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Handle {
    handle: c_ulong,
}

type Raw = *mut c_void;
type Pin = unsafe extern "C" fn(Raw, c_ulong, usize, u64, u32, *mut Handle) -> c_int;
type Unpin = unsafe extern "C" fn(Raw, Handle) -> c_int;
type Map = unsafe extern "C" fn(Raw, Handle, *mut *mut c_void, usize) -> c_int;
type Unmap = unsafe extern "C" fn(Raw, Handle, *mut c_void, usize) -> c_int;

/// The library, open to its kernel module.
#[derive(Debug)]
pub(super) struct GdrCopy {
    raw: Raw,
    pin: Pin,
    unpin: Unpin,
    map: Map,
    unmap: Unmap,
    /// Keeps the pointers above valid.
    _library: Library,
}

// SAFETY: GDRCopy's calls on one handle may come from any thread (gdrapi.h); the handle is never closed.
unsafe impl Send for GdrCopy {}
// SAFETY: as above.
unsafe impl Sync for GdrCopy {}

impl GdrCopy {
    /// The library; `None` where it, or its kernel module, is not there.
    pub(super) fn get() -> Option<&'static Self> {
        static OPEN: OnceLock<Option<GdrCopy>> = OnceLock::new();
        OPEN.get_or_init(|| NAMES.iter().find_map(|name| Self::open(name))).as_ref()
    }

    fn open(name: &str) -> Option<Self> {
        // SAFETY: loading the library runs its initialisers, which ask nothing of the program.
        let library = unsafe { Library::new(name) }.ok()?;
        // SAFETY: the types are those of gdrapi.h; the pointers are kept no longer than the library.
        let (open, pin, unpin, map, unmap) = unsafe {
            (
                *library.get::<unsafe extern "C" fn() -> Raw>(b"gdr_open").ok()?,
                *library.get::<Pin>(b"gdr_pin_buffer").ok()?,
                *library.get::<Unpin>(b"gdr_unpin_buffer").ok()?,
                *library.get::<Map>(b"gdr_map").ok()?,
                *library.get::<Unmap>(b"gdr_unmap").ok()?,
            )
        };
        // SAFETY: takes nothing; null where the kernel module is not there.
        let raw = unsafe { open() };
        (!raw.is_null()).then_some(Self { raw, pin, unpin, map, unmap, _library: library })
    }

    /// Maps the page of the GPU's memory that `address` lies in.
    pub(super) fn map(&'static self, address: u64) -> io::Result<Mapping> {
        let (begin, offset) = (address - address % PAGE, address % PAGE);
        let mut handle = Handle { handle: 0 };
        // SAFETY: an open handle, and a live place for the result; the kernel module checks the range.
        check(unsafe { (self.pin)(self.raw, begin as c_ulong, PAGE as usize, 0, 0, &raw mut handle) })?;
        let mut base = std::ptr::null_mut();
        // SAFETY: what was pinned, and a live place for the result.
        let mapped = check(unsafe { (self.map)(self.raw, handle, &raw mut base, PAGE as usize) });
        if let Err(error) = mapped {
            // SAFETY: pinned above, and not mapped.
            unsafe { (self.unpin)(self.raw, handle) };
            return Err(error);
        }
        Ok(Mapping { library: self, handle, base, offset })
    }
}

fn check(code: c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code.abs())) }
}

/// A page of a GPU's memory, with one word of it; unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    library: &'static GdrCopy,
    handle: Handle,
    base: *mut c_void,
    offset: u64,
}

impl Mapping {
    /// The word.
    pub(super) fn word(&self) -> &AtomicU64 {
        // SAFETY: inside the mapped page, aligned (its caller has checked the address), mapped as long as `self`.
        unsafe { AtomicU64::from_ptr(self.base.add(self.offset as usize).cast()) }
    }

    /// Stores the word, and returns when it is on its way: the mapping combines writes.
    pub(super) fn store(&self, value: u64) {
        self.word().store(value, Ordering::Release);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE is part of the architecture.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
        #[cfg(not(target_arch = "x86_64"))]
        std::sync::atomic::fence(Ordering::SeqCst);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped and pinned in `GdrCopy::map`, undone only here.
        unsafe {
            (self.library.unmap)(self.library.raw, self.handle, self.base, PAGE as usize);
            (self.library.unpin)(self.library.raw, self.handle);
        }
    }
}
