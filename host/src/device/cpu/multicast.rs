//! Multicast as a switch does it on a GPU, emulated.
//!
//! The object is a memfd with a directory in it: how many devices take part, and for each binding the place and a handle of
//! the member's memory. Whoever maps the object opens all those handles and tells the device crate's `multimem` accesses
//! where each member's memory lies in this process. So the members may be in several processes, as on a GPU.

use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use warpwire_device::arch::{MulticastSegment, map_multicast, unmap_multicast};

use super::mapping::Mapping;
use crate::device::HandleKinds;
use crate::device::driver::{
    AllocationId, DriverMemory, DriverMulticast, DriverMulticastMapping, MulticastPlace, MulticastShape,
    OpenMember, Payload, ShareMember,
};
use crate::error::{Error, HandleKind, MemoryError, Result};

/// The most bindings of an object, all members' together.
const ENTRIES: usize = 256;
/// Room for a handle's wire form, in 8-byte words.
const HANDLE_WORDS: usize = 64;

/// What the object's memfd holds. Several processes touch it at once, so each field is an atomic. All zero: no devices, all
/// entries free.
#[repr(C)]
struct Directory {
    bytes: AtomicU64,
    devices: AtomicU32,
    added: AtomicU32,
    entries: [Entry; ENTRIES],
}

/// One binding.
#[repr(C)]
struct Entry {
    /// [`FREE`], [`WRITING`] or [`BOUND`]. The other fields are the binder's while it writes, and settled while bound.
    state: AtomicU32,
    member: AtomicU32,
    offset: AtomicU64,
    memory_offset: AtomicU64,
    bytes: AtomicU64,
    handle_bytes: AtomicU64,
    handle: [AtomicU64; HANDLE_WORDS],
}

const FREE: u32 = 0;
const WRITING: u32 = 1;
const BOUND: u32 = 2;

const DIRECTORY_BYTES: usize = size_of::<Directory>();

impl Entry {
    fn place(&self) -> MulticastPlace {
        let read = |field: &AtomicU64| field.load(Ordering::Relaxed);
        MulticastPlace {
            offset: read(&self.offset),
            memory_offset: read(&self.memory_offset),
            bytes: read(&self.bytes),
        }
    }

    fn write(&self, member: u32, place: MulticastPlace, handle: &[u8]) {
        self.member.store(member, Ordering::Relaxed);
        self.offset.store(place.offset, Ordering::Relaxed);
        self.memory_offset.store(place.memory_offset, Ordering::Relaxed);
        self.bytes.store(place.bytes, Ordering::Relaxed);
        self.handle_bytes.store(handle.len() as u64, Ordering::Relaxed);
        for (word, bytes) in self.handle.iter().zip(handle.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
        self.state.store(BOUND, Ordering::Release);
    }

    /// Its handle; `None` where it is not bound.
    fn handle(&self) -> Option<Vec<u8>> {
        if self.state.load(Ordering::Acquire) != BOUND {
            return None;
        }
        let mut bytes: Vec<u8> =
            self.handle.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        bytes.truncate(self.handle_bytes.load(Ordering::Relaxed) as usize);
        Some(bytes)
    }
}

/// One device's view of an object.
#[derive(Debug)]
pub(super) struct CpuMulticast {
    mapping: Arc<Mapping>,
    shape: MulticastShape,
    handles: HandleKinds,
    member: OnceLock<u32>,
}

fn state(operation: &'static str, reason: String) -> Error {
    MemoryError::MulticastState { operation, reason }.into()
}

impl CpuMulticast {
    pub(super) fn create(device: &str, shape: MulticastShape, handles: HandleKinds) -> Result<Self> {
        let object = Self {
            mapping: Arc::new(Mapping::new(device, DIRECTORY_BYTES)?),
            shape,
            handles: handles & HandleKinds::POSIX_FD,
            member: OnceLock::new(),
        };
        object.directory().bytes.store(shape.bytes, Ordering::Relaxed);
        object.directory().devices.store(shape.devices, Ordering::Relaxed);
        Ok(object)
    }

    pub(super) fn import(file: OwnedFd, shape: MulticastShape) -> Result<Self> {
        let mapping = Arc::new(Mapping::import(file, DIRECTORY_BYTES as u64)?);
        let object = Self { mapping, shape, handles: HandleKinds::empty(), member: OnceLock::new() };
        let found = MulticastShape {
            bytes: object.directory().bytes.load(Ordering::Relaxed),
            devices: object.directory().devices.load(Ordering::Relaxed),
        };
        if found == shape {
            return Ok(object);
        }
        let reason = format!("the object is of {found:?}, the handle says {shape:?}");
        Err(MemoryError::MalformedHandle { bytes: DIRECTORY_BYTES, expected: "a multicast object", reason }
            .into())
    }

    fn directory(&self) -> &Directory {
        // SAFETY: the mapping is of that length (given in `create`, checked in `import`), page-aligned and live as long as
        // `self`. Every bit pattern is a valid `Directory`, and its fields are atomics, so others may write meanwhile.
        unsafe { self.mapping.address().cast::<Directory>().as_ref() }
    }

    fn member(&self, operation: &'static str) -> Result<u32> {
        let added = self.directory().added.load(Ordering::Acquire);
        let member = self.member.get().copied();
        let member = member.ok_or_else(|| state(operation, "this device has not been added".to_owned()))?;
        if added != self.shape.devices {
            let reason = format!("{added} of the {} devices have been added", self.shape.devices);
            return Err(state(operation, reason));
        }
        Ok(member)
    }
}

impl DriverMulticast for CpuMulticast {
    fn id(&self) -> AllocationId {
        self.mapping.id()
    }

    fn handle_kinds(&self) -> HandleKinds {
        self.handles
    }

    fn export(&self, _kind: HandleKind) -> Result<Payload> {
        self.mapping.export()
    }

    fn add_device(&self) -> Result<()> {
        const OPERATION: &str = "add a device to the multicast object";
        if self.member.get().is_some() {
            return Err(state(OPERATION, "this device has been added already".to_owned()));
        }
        let next = |added: u32| (added < self.shape.devices).then_some(added + 1);
        let added = self.directory().added.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        let member =
            added.map_err(|all| state(OPERATION, format!("all of its {all} devices have been added")))?;
        self.member
            .set(member)
            .map_err(|_| state(OPERATION, "another thread is adding this device as well".to_owned()))
    }

    fn bind(&self, place: MulticastPlace, _memory: &dyn DriverMemory, share: ShareMember<'_>) -> Result<()> {
        const OPERATION: &str = "bind memory to the multicast object";
        let member = self.member(OPERATION)?;
        let overlaps = |entry: &&Entry| {
            let other = entry.place();
            entry.state.load(Ordering::Acquire) == BOUND
                && entry.member.load(Ordering::Relaxed) == member
                && other.offset < place.offset + place.bytes
                && place.offset < other.offset + other.bytes
        };
        let entries = &self.directory().entries;
        if let Some(entry) = entries.iter().find(overlaps) {
            let MulticastPlace { offset, bytes, .. } = entry.place();
            return Err(state(OPERATION, format!("this device has {bytes} bytes bound at offset {offset}")));
        }
        let handle = share()?;
        if handle.len() > HANDLE_WORDS * 8 {
            return Err(state(OPERATION, format!("the memory's handle has {} bytes", handle.len())));
        }
        let take = |entry: &&Entry| {
            entry.state.compare_exchange(FREE, WRITING, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let Some(entry) = entries.iter().find(take) else {
            return Err(state(OPERATION, format!("it has {ENTRIES} bindings already")));
        };
        entry.write(member, place, &handle);
        Ok(())
    }

    fn unbind(&self, place: MulticastPlace) {
        let own = |entry: &&Entry| {
            entry.state.load(Ordering::Acquire) == BOUND
                && self.member.get() == Some(&entry.member.load(Ordering::Relaxed))
                && entry.place().offset == place.offset
        };
        if let Some(entry) = self.directory().entries.iter().find(own) {
            entry.state.store(FREE, Ordering::Release);
        }
    }

    fn map(&self, open: OpenMember<'_>) -> Result<Box<dyn DriverMulticastMapping>> {
        self.member("map the multicast object")?;
        let mut members = vec![Vec::new(); self.shape.devices as usize];
        let mut memory = Vec::new();
        for entry in &self.directory().entries {
            let Some(handle) = entry.handle() else { continue };
            let MulticastPlace { offset, memory_offset, bytes } = entry.place();
            let (opened, range) = open(&handle)?;
            let inside = memory_offset.checked_add(bytes).is_some_and(|end| end <= range.bytes);
            let segments = members.get_mut(entry.member.load(Ordering::Relaxed) as usize);
            let Some(segments) = segments.filter(|_| inside) else {
                let reason =
                    format!("the binding at offset {offset} is of no member, or longer than its memory");
                return Err(state("map the multicast object", reason));
            };
            segments.push(MulticastSegment { offset, bytes, address: range.address + memory_offset });
            memory.push(opened);
        }
        Ok(Box::new(CpuMulticastMapping::new(self.shape.bytes, members, memory)?))
    }
}

/// A mapped range: addresses that no memory lies at, so that an access other than by `multimem` ends the process here, where
/// on a GPU it is undefined.
#[derive(Debug)]
struct CpuMulticastMapping {
    address: u64,
    bytes: usize,
    /// Keeps the members' memory mapped.
    _memory: Vec<Arc<dyn DriverMemory>>,
}

impl CpuMulticastMapping {
    fn new(
        bytes: u64,
        members: Vec<Vec<MulticastSegment>>,
        memory: Vec<Arc<dyn DriverMemory>>,
    ) -> Result<Self> {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, at an address of the kernel's choosing.
        let address = unsafe { mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), flags) }
            .map_err(|error| Error::system("reserving addresses for a multicast object", error))?
            as u64;
        // SAFETY: the addresses were reserved just now, and stay so until `drop`, which takes this back first; the segments
        // lie in `memory`, which is kept as long.
        unsafe { map_multicast(address, bytes, members) };
        Ok(Self { address, bytes: length, _memory: memory })
    }
}

impl DriverMulticastMapping for CpuMulticastMapping {
    fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for CpuMulticastMapping {
    fn drop(&mut self) {
        unmap_multicast(self.address);
        // SAFETY: the range that `new` reserved.
        if let Err(error) = unsafe { munmap(self.address as *mut _, self.bytes) } {
            tracing::warn!(%error, "giving back a multicast object's addresses failed");
        }
    }
}
