//! Shared mappings of memfds, which other processes can map as well.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::device::driver::{AllocationId, Payload};
use crate::error::{Error, MemoryError, Result};

/// From here on the host is asked for its free memory first: pages come when they are touched, and a process that then gets
/// none is killed.
const LARGE_BYTES: usize = 1 << 20;

/// A memfd whose length is settled: without these seals, whoever has it could shorten it, and the next access by anybody
/// else would end that process.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A mapped memfd, unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    address: NonNull<u8>,
    bytes: usize,
    id: AllocationId,
    file: OwnedFd,
}

// SAFETY: an address range of the process', owned by this value and used by raw accesses alone.
unsafe impl Send for Mapping {}
// SAFETY: as above; the value has no method that changes it.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `bytes` zeroed bytes, for `device`.
    pub(super) fn new(device: &str, bytes: usize) -> Result<Self> {
        let out_of_memory =
            |detail| Error::OutOfMemory { device: device.to_owned(), bytes: bytes as u64, detail };
        if bytes >= LARGE_BYTES
            && let Some(available) = host_bytes("MemAvailable:")
            && bytes as u64 > available
        {
            return Err(out_of_memory(format!("; the host has {available} available")));
        }
        let failed = |operation: &str, source: Errno| match source {
            Errno::NOMEM | Errno::NOSPC | Errno::FBIG => out_of_memory(String::new()),
            _ => Error::system(operation, source),
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("warpwire", flags).map_err(|e| failed("creating a memfd", e))?;
        ftruncate(&file, bytes as u64).map_err(|e| failed("sizing a memfd", e))?;
        fcntl_add_seals(&file, SEALS).map_err(|e| failed("sealing a memfd", e))?;
        Self::of(file, bytes).map_err(|e| failed("mapping a memfd", e))
    }

    /// Maps a memfd that another process has handed over, if it is one of this library's and `bytes` bytes long.
    pub(super) fn import(file: OwnedFd, bytes: u64) -> Result<Self> {
        let malformed = |reason: String| {
            Error::from(MemoryError::MalformedHandle { bytes: 0, expected: "shared memory", reason })
        };
        let sealed = fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS));
        let length = fstat(&file).map_err(|e| Error::system("looking at a file", e))?.st_size;
        match usize::try_from(bytes) {
            Ok(bytes) if sealed && length >= 0 && length as usize == bytes && bytes != 0 => {
                Self::of(file, bytes).map_err(|e| Error::system("mapping a memfd", e))
            }
            _ if !sealed => Err(malformed("the file handed over is not a sealed memfd".to_owned())),
            _ => Err(malformed(format!("the file handed over has {length} bytes, not {bytes}"))),
        }
    }

    fn of(file: OwnedFd, bytes: usize) -> Result<Self, Errno> {
        // SAFETY: a new mapping, at an address of the kernel's choosing; the file's seals keep its length.
        let address = unsafe {
            mmap(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)
        }?;
        let address = NonNull::new(address.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { address, bytes, id: AllocationId::new(), file })
    }

    pub(super) fn address(&self) -> NonNull<u8> {
        self.address
    }

    pub(super) fn id(&self) -> AllocationId {
        self.id
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The handle by which another process maps the same pages.
    pub(super) fn export(&self) -> Result<Payload> {
        let duplicate = fcntl_dupfd_cloexec(self.file.as_fd(), 0);
        Ok(Payload::PosixFd(duplicate.map_err(|e| Error::system("duplicating a memfd's descriptor", e))?))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range that `of` mapped, whose users hold this value.
        if let Err(error) = unsafe { munmap(self.address.as_ptr().cast(), self.bytes) } {
            tracing::warn!(%error, bytes = self.bytes, "unmapping device memory failed");
        }
    }
}

/// A line of what the kernel tells about the host's memory, in bytes; `None` where it does not say.
pub(super) fn host_bytes(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}
