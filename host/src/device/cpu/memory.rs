//! Memory: whole mappings, or pieces of one.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use super::mapping::Mapping;
use crate::device::driver::{Allocated, DriverMemory, MemoryRequest, Payload};
use crate::device::{AddressRange, HandleKinds, MemoryKind};
use crate::error::{Error, HandleKind, MemoryError, Result};
use crate::monitor::Monitor;

/// Allocations up to this share a slab: each mapping has a file descriptor, of which a process may have few.
const SMALL_BYTES: usize = 64 << 10;
const SLAB_BYTES: usize = 1 << 20;
/// Where an allocation may begin in a slab.
const ALIGNMENT: usize = 256;
/// What virtual memory is rounded up to. Larger than a page, as on a GPU, so that what forgets to round fails here too.
pub(super) const GRANULARITY: usize = 64 << 10;

/// What of this process' address space is CPU devices' memory, by its first address. One table for all devices, since they
/// share the space.
static LISTED: Monitor<BTreeMap<u64, Listed>> = Monitor::new(BTreeMap::new());

#[derive(Clone, Debug)]
struct Listed {
    bytes: usize,
    offset: usize,
    kind: MemoryKind,
    handles: HandleKinds,
    mapping: Weak<Mapping>,
}

fn find(address: u64) -> Option<(AddressRange, Listed)> {
    LISTED.with(|listed| {
        let (&base, listed) = listed.range(..=address).next_back()?;
        let range = AddressRange { address: base, bytes: listed.bytes as u64 };
        (address - base < range.bytes).then(|| (range, listed.clone()))
    })
}

/// The allocation that an address lies in, and what it is.
pub(super) fn range_of(address: u64) -> Option<(AddressRange, MemoryKind)> {
    find(address).map(|(range, listed)| (range, listed.kind))
}

/// The allocation that `range` lies in, for export. It is kept as long as the value.
pub(super) fn adopt(range: AddressRange) -> Result<CpuMemory> {
    let AddressRange { address, bytes } = range;
    let Some((found, listed)) = find(address) else {
        let remedy = "copy it to memory of the device that can be shared (Device::allocate_shareable)";
        return Err(MemoryError::NotShareable { memory: "ordinary host memory", address, remedy }.into());
    };
    let allocation = Some((found.address, found.bytes));
    match listed.mapping.upgrade() {
        Some(mapping) if found.contains(range) => {
            let Listed { offset, kind, handles, .. } = listed;
            let memory = CpuMemory { _listing: None, mapping, offset, kind, handles };
            if handles.is_empty() { Err(memory.not_shareable()) } else { Ok(memory) }
        }
        _ => Err(MemoryError::NotOneAllocation { address, bytes, allocation }.into()),
    }
}

/// Memory that another process has handed over.
pub(super) fn import(file: OwnedFd, bytes: u64) -> Result<CpuMemory> {
    let mapping = Arc::new(Mapping::import(file, bytes)?);
    let (kind, handles) = (MemoryKind::Imported, HandleKinds::empty());
    let listed =
        Listed { bytes: mapping.bytes(), offset: 0, kind, handles, mapping: Arc::downgrade(&mapping) };
    Ok(CpuMemory::list(mapping, listed))
}

/// A device's memory.
#[derive(Debug)]
pub(super) struct Memory {
    device: String,
    /// Where small allocations come from that stay in the process.
    private: Slab,
    /// Where those come from that may be shared: a handle hands over the whole slab.
    plain: Slab,
}

/// A mapping that is being given out, and how much of it is. Nothing in a slab is given out twice, so it is zero; a slab is
/// freed with the last allocation in it.
type Slab = Monitor<Option<(Arc<Mapping>, usize)>>;

impl Memory {
    pub(super) fn new(device: &str) -> Self {
        Self { device: device.to_owned(), private: Monitor::new(None), plain: Monitor::new(None) }
    }

    /// New memory. It is zero whether or not that was asked for: the kernel gives no other.
    pub(super) fn allocate(&self, request: MemoryRequest) -> Result<CpuMemory> {
        let MemoryRequest { bytes, kind, handles, .. } = request;
        // Memory that a GPU could not hand over is not handed over here either, or a program would fail there first.
        let handles = match kind {
            MemoryKind::Plain => HandleKinds::POSIX_FD,
            MemoryKind::Virtual => handles & HandleKinds::POSIX_FD,
            MemoryKind::Device | MemoryKind::Host | MemoryKind::Imported => HandleKinds::empty(),
        };
        let (mapping, offset) = match kind {
            MemoryKind::Virtual => {
                let bytes = bytes.checked_next_multiple_of(GRANULARITY).ok_or_else(|| self.no_room(bytes))?;
                (Arc::new(self.map(bytes)?), 0)
            }
            _ if bytes > SMALL_BYTES => (Arc::new(self.map(bytes)?), 0),
            MemoryKind::Plain => self.small(&self.plain, bytes)?,
            _ => self.small(&self.private, bytes)?,
        };
        let bytes = if kind == MemoryKind::Virtual { mapping.bytes() } else { bytes };
        let listed = Listed { bytes, offset, kind, handles, mapping: Arc::downgrade(&mapping) };
        Ok(CpuMemory::list(mapping, listed))
    }

    fn small(&self, slab: &Slab, bytes: usize) -> Result<(Arc<Mapping>, usize)> {
        let taken = bytes.next_multiple_of(ALIGNMENT);
        slab.with(|slab| {
            let (mapping, offset) = match slab {
                Some((mapping, used)) if *used + taken <= SLAB_BYTES => (Arc::clone(mapping), *used),
                _ => (Arc::new(self.map(SLAB_BYTES)?), 0),
            };
            *slab = Some((Arc::clone(&mapping), offset + taken));
            Ok((mapping, offset))
        })
    }

    fn map(&self, bytes: usize) -> Result<Mapping> {
        Mapping::new(&self.device, bytes)
    }

    fn no_room(&self, bytes: usize) -> Error {
        Error::OutOfMemory { device: self.device.clone(), bytes: bytes as u64, detail: String::new() }
    }
}

/// An allocation, or a reference to one.
#[derive(Debug)]
pub(super) struct CpuMemory {
    /// An allocation's own entry in the list. Goes first: once the mapping has gone, the address may be another's.
    _listing: Option<Listing>,
    mapping: Arc<Mapping>,
    offset: usize,
    kind: MemoryKind,
    handles: HandleKinds,
}

impl CpuMemory {
    /// The allocation that `listed` describes, put on the list.
    fn list(mapping: Arc<Mapping>, listed: Listed) -> Self {
        let Listed { offset, kind, handles, .. } = listed;
        let address = at(&mapping, offset) as u64;
        LISTED.with(|all| all.insert(address, listed));
        Self { _listing: Some(Listing(address)), mapping, offset, kind, handles }
    }
}

/// An entry in the list of what is allocated.
#[derive(Debug)]
struct Listing(u64);

impl Drop for Listing {
    fn drop(&mut self) {
        LISTED.with(|listed| listed.remove(&self.0));
    }
}

fn at(mapping: &Mapping, offset: usize) -> *mut u8 {
    mapping.address().as_ptr().wrapping_add(offset)
}

impl DriverMemory for CpuMemory {
    fn address(&self) -> u64 {
        self.host_pointer() as u64
    }

    fn host_pointer(&self) -> *mut u8 {
        at(&self.mapping, self.offset)
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn allocation(&self) -> Allocated {
        let (bytes, offset) = (self.mapping.bytes() as u64, self.offset as u64);
        Allocated { id: self.mapping.id(), bytes, offset }
    }

    fn handle_kinds(&self) -> HandleKinds {
        self.handles
    }

    fn export(&self, kind: HandleKind) -> Result<Payload> {
        if self.handles.contains(kind.into()) {
            return self.mapping.export();
        }
        Err(self.not_shareable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize, kind: MemoryKind) -> MemoryRequest {
        MemoryRequest { bytes, kind, zeroed: true, handles: HandleKinds::all() }
    }

    fn allocate(memory: &Memory, bytes: usize) -> Result<CpuMemory> {
        memory.allocate(request(bytes, MemoryKind::Device))
    }

    #[test]
    fn small_allocations_are_apart_and_zero() {
        let memory = Memory::new("test");
        let allocations: Vec<_> = (0..3000).map(|i| allocate(&memory, 1 + i % 700).unwrap()).collect();
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
        for kind in [MemoryKind::Device, MemoryKind::Plain, MemoryKind::Virtual] {
            for bytes in [1 << 50, isize::MAX as usize] {
                let error = Memory::new("test").allocate(request(bytes, kind)).unwrap_err();
                assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
            }
        }
    }

    #[test]
    fn an_address_leads_to_its_allocation() {
        let memory = Memory::new("test");
        for kind in [MemoryKind::Device, MemoryKind::Plain, MemoryKind::Virtual] {
            let (before, it, after) = (
                memory.allocate(request(300, kind)).unwrap(),
                memory.allocate(request(300, kind)).unwrap(),
                memory.allocate(request(300, kind)).unwrap(),
            );
            let bytes = if kind == MemoryKind::Virtual { GRANULARITY as u64 } else { 300 };
            let range = AddressRange { address: it.address(), bytes };
            for at in [0, 1, bytes - 1] {
                assert_eq!(range_of(it.address() + at), Some((range, kind)));
            }
            assert_ne!(range_of(it.address() + bytes).map(|(range, _)| range), Some(range));
            let address = it.address();
            drop(it);
            assert_eq!(range_of(address), None);
            drop((before, after));
        }
        assert_eq!(range_of(0), None);
        assert_eq!(range_of(u64::MAX), None);
    }

    #[test]
    fn pool_memory_shares_no_mapping_with_memory_that_can_be_handed_over() {
        let memory = Memory::new("test");
        let id = |kind| memory.allocate(request(8, kind)).unwrap().allocation().id;
        assert_eq!(id(MemoryKind::Plain), id(MemoryKind::Plain));
        assert_ne!(id(MemoryKind::Plain), id(MemoryKind::Device));
        assert_ne!(id(MemoryKind::Virtual), id(MemoryKind::Virtual));
    }
}
