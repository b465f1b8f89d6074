//! What memory there is, and what is asked of it.

use std::fmt;

use bitflags::bitflags;

use crate::error::HandleKind;

/// Where memory lies, and what can be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// In the device, from a pool of this process': the quickest to allocate and to free, also while kernels run. It cannot
    /// be shared with other processes.
    Device,
    /// In the device, by the driver's plain allocation. Shared by CUDA IPC. Freeing it may wait for all kernels of the
    /// device. Small ones may lie in one block, which a handle hands over as a whole.
    Plain,
    /// In the device, through the virtual-memory API: whole granules (2 MiB, say). Shared by file descriptor or fabric
    /// handle, and what a multicast object binds. Freeing it may wait for all kernels of the device.
    Virtual,
    /// In the host, pinned and mapped to the device: both reach it while kernels run.
    Host,
    /// Another process', mapped here.
    Imported,
}

impl MemoryKind {
    /// What an error calls it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Device => "memory of the device's pool",
            Self::Plain => "plain device memory",
            Self::Virtual => "virtual memory",
            Self::Host => "pinned host memory",
            Self::Imported => "memory imported from another process",
        }
    }

    /// What to do where it cannot be shared.
    pub(crate) const fn sharing_remedy(self) -> &'static str {
        match self {
            Self::Device => {
                "allocate it with MemoryKind::Virtual or MemoryKind::Plain (Device::allocate_shareable)"
            }
            Self::Virtual => {
                "make it exportable when it is allocated (MemoryOptions::exportable, or the handle types of cuMemCreate)"
            }
            Self::Plain => "this device makes no CUDA IPC handles: allocate it with MemoryKind::Virtual",
            Self::Host => "copy it to memory of the device that can be shared (Device::allocate_shareable)",
            Self::Imported => "share it from the process that it belongs to",
        }
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// What memory is to be like: see [`Device::allocate_with`](super::Device::allocate_with).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    pub(super) kind: MemoryKind,
    pub(super) zeroed: bool,
    pub(super) exportable: bool,
}

impl MemoryOptions {
    /// Zeroed memory of this kind that can be exported as far as the kind can be.
    #[must_use]
    pub const fn new(kind: MemoryKind) -> Self {
        Self { kind, zeroed: true, exportable: true }
    }

    /// Whether it has to be zero at first; else it holds anything. It is by default.
    #[must_use]
    pub const fn zeroed(mut self, zeroed: bool) -> Self {
        self.zeroed = zeroed;
        self
    }

    /// Whether virtual memory is made for export. It is by default.
    #[must_use]
    pub const fn exportable(mut self, exportable: bool) -> Self {
        self.exportable = exportable;
        self
    }
}

bitflags! {
    /// A set of [`HandleKind`]s.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct HandleKinds: u8 {
        /// [`HandleKind::Fabric`].
        const FABRIC = 1 << HandleKind::Fabric as u8;
        /// [`HandleKind::PosixFd`].
        const POSIX_FD = 1 << HandleKind::PosixFd as u8;
        /// [`HandleKind::CudaIpc`].
        const CUDA_IPC = 1 << HandleKind::CudaIpc as u8;
    }
}

impl From<HandleKind> for HandleKinds {
    fn from(kind: HandleKind) -> Self {
        Self::from_bits_retain(1 << kind as u8)
    }
}

impl fmt::Display for HandleKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names =
            HandleKind::ALL.into_iter().filter(|&kind| self.contains(kind.into())).map(HandleKind::name);
        f.write_str(names.next().unwrap_or("no kind of handle"))?;
        names.try_for_each(|name| write!(f, ", {name}"))
    }
}

/// A range of a device's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    /// Where it begins.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl AddressRange {
    /// Whether all of `other` lies in it.
    #[must_use]
    pub fn contains(&self, other: Self) -> bool {
        other
            .address
            .checked_sub(self.address)
            .is_some_and(|offset| offset.checked_add(other.bytes).is_some_and(|end| end <= self.bytes))
    }
}

/// A device's memory as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes that can still be allocated.
    pub free_bytes: u64,
    /// Bytes that there are.
    pub total_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_their_kinds() {
        for kind in HandleKind::ALL {
            assert!(HandleKinds::all().contains(kind.into()));
            assert_eq!(HandleKinds::from(kind).bits().count_ones(), 1);
            assert_eq!(HandleKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(HandleKinds::from(HandleKind::PosixFd), HandleKinds::POSIX_FD);
        assert_eq!(HandleKinds::all().to_string(), "fabric, fd, ipc");
        assert_eq!(HandleKinds::empty().to_string(), "no kind of handle");
    }

    #[test]
    fn ranges_contain_what_lies_inside() {
        let range = AddressRange { address: 100, bytes: 50 };
        let inside = |address, bytes| range.contains(AddressRange { address, bytes });
        assert!(inside(100, 50) && inside(149, 1) && inside(150, 0));
        assert!(!inside(99, 2) && !inside(100, 51) && !inside(120, u64::MAX));
    }
}
