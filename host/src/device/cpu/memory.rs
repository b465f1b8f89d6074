//! Memory: shared mappings of memfds, which another process could map as well.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::super::driver::DriverMemory;
use super::monitor::Monitor;
use crate::error::{Error, Result};

/// Allocations up to this share a slab: each mapping has a file descriptor, of which a process may have few.
const SMALL_BYTES: usize = 64 << 10;
const SLAB_BYTES: usize = 1 << 20;
/// Where an allocation may begin in a slab.
const ALIGNMENT: usize = 256;
/// From here on the host is asked for its free memory first: pages come when they are touched, and a process that then gets
/// none is killed.
const LARGE_BYTES: usize = 1 << 20;

/// A device's memory.
#[derive(Debug)]
pub(super) struct Memory {
    device: String,
    /// The slab that small allocations come from, and how much of it is given out. Nothing in a slab is given out twice, so
    /// it is zero; a slab is freed with the last allocation in it.
    slab: Monitor<Option<(Arc<Mapping>, usize)>>,
}

impl Memory {
    pub(super) fn new(device: &str) -> Self {
        Self { device: device.to_owned(), slab: Monitor::new(None) }
    }

    /// `bytes` zeroed bytes.
    pub(super) fn allocate(&self, bytes: usize) -> Result<CpuMemory> {
        if bytes > SMALL_BYTES {
            return Ok(CpuMemory { mapping: Arc::new(self.map(bytes)?), offset: 0 });
        }
        let taken = bytes.next_multiple_of(ALIGNMENT);
        self.slab.with(|slab| {
            let (mapping, offset) = match slab {
                Some((mapping, used)) if *used + taken <= SLAB_BYTES => (Arc::clone(mapping), *used),
                _ => (Arc::new(self.map(SLAB_BYTES)?), 0),
            };
            *slab = Some((Arc::clone(&mapping), offset + taken));
            Ok(CpuMemory { mapping, offset })
        })
    }

    fn map(&self, bytes: usize) -> Result<Mapping> {
        let out_of_memory =
            |detail| Error::OutOfMemory { device: self.device.clone(), bytes: bytes as u64, detail };
        if bytes >= LARGE_BYTES
            && let Some(available) = available_bytes()
            && bytes as u64 > available
        {
            return Err(out_of_memory(format!("; the host has {available} available")));
        }
        let failed = |operation: &str, source: rustix::io::Errno| match source {
            rustix::io::Errno::NOMEM | rustix::io::Errno::NOSPC | rustix::io::Errno::FBIG => {
                out_of_memory(String::new())
            }
            _ => Error::System { operation: operation.to_owned(), source: io::Error::from(source) },
        };
        let file =
            memfd_create("warpwire", MemfdFlags::CLOEXEC).map_err(|e| failed("creating a memfd", e))?;
        ftruncate(&file, bytes as u64).map_err(|e| failed("sizing a memfd", e))?;
        // SAFETY: a new mapping, at an address of the kernel's choosing.
        let address = unsafe {
            mmap(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)
        };
        let address = address.map_err(|e| failed("mapping a memfd", e))?;
        let address = NonNull::new(address.cast()).ok_or_else(|| out_of_memory(String::new()))?;
        Ok(Mapping { address, bytes, _file: file })
    }
}

/// What the kernel thinks that it can still give; `None` where it does not say.
fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A mapped memfd, unmapped on drop.
#[derive(Debug)]
struct Mapping {
    address: NonNull<u8>,
    bytes: usize,
    /// What the mapping is of: the handle by which another process can map the same pages.
    _file: OwnedFd,
}

// SAFETY: an address range of the process', owned by this value and used by raw accesses alone.
unsafe impl Send for Mapping {}
// SAFETY: as above; the value has no method that changes it.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range that `map` mapped, whose users hold this value by `Arc`.
        if let Err(error) = unsafe { munmap(self.address.as_ptr().cast(), self.bytes) } {
            tracing::warn!(%error, bytes = self.bytes, "unmapping device memory failed");
        }
    }
}

/// An allocation: a mapping, or a piece of one.
#[derive(Debug)]
pub(super) struct CpuMemory {
    mapping: Arc<Mapping>,
    offset: usize,
}

impl DriverMemory for CpuMemory {
    fn address(&self) -> u64 {
        self.host_pointer() as u64
    }

    fn host_pointer(&self) -> *mut u8 {
        self.mapping.address.as_ptr().wrapping_add(self.offset)
    }
}

/// Bytes of the host's heap, zeroed and aligned for any argument block and for shared memory.
#[derive(Debug)]
pub(super) struct Aligned {
    chunks: Vec<Chunk>,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
struct Chunk([u8; 128]);

impl Aligned {
    pub(super) const ALIGNMENT: usize = align_of::<Chunk>();

    pub(super) fn zeroed(bytes: usize) -> Self {
        Self { chunks: vec![Chunk([0; 128]); bytes.div_ceil(size_of::<Chunk>())] }
    }

    pub(super) fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = Self::zeroed(bytes.len());
        // SAFETY: `zeroed` made room for all of them, in a new allocation.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), copy.as_mut_ptr().as_ptr(), bytes.len()) };
        copy
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.chunks.as_ptr().cast()
    }

    /// Never null, and aligned also where there are no bytes.
    pub(super) fn as_mut_ptr(&mut self) -> NonNull<u8> {
        NonNull::from(self.chunks.as_mut_slice()).cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_allocations_are_apart_and_zero() {
        let memory = Memory::new("test");
        let allocations: Vec<_> = (0..3000).map(|i| memory.allocate(1 + i % 700).unwrap()).collect();
        for (i, allocation) in allocations.iter().enumerate() {
            let bytes = 1 + i % 700;
            assert!(allocation.address().is_multiple_of(ALIGNMENT as u64));
            for at in 0..bytes {
                // SAFETY: inside the allocation, which nobody else touches.
                unsafe {
                    let byte = allocation.host_pointer().add(at);
                    assert_eq!(byte.read(), 0);
                    byte.write(0xA5);
                }
            }
        }
    }

    #[test]
    fn what_the_host_does_not_have_is_an_error() {
        let error = Memory::new("test").allocate(1 << 50).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { bytes, .. } if bytes == 1 << 50), "{error}");
        let error = Memory::new("test").allocate(isize::MAX as usize).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    }

    #[test]
    fn aligned_bytes_are_aligned() {
        for bytes in [0, 1, 127, 128, 129, 1000] {
            assert!(Aligned::zeroed(bytes).as_mut_ptr().as_ptr().addr().is_multiple_of(Aligned::ALIGNMENT));
        }
        let copy = Aligned::copy_of(&[1, 2, 3]);
        // SAFETY: three bytes were copied there.
        assert_eq!(unsafe { std::slice::from_raw_parts(copy.as_ptr(), 3) }, [1, 2, 3]);
    }
}
