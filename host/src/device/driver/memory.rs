//! What a device's memory has to be able to do: allocations, the handles that they leave the process by, and multicast.

use std::any::Any;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::{AddressRange, HandleKinds, MemoryInfo, MemoryKind};
use crate::error::{Error, HandleKind, MemoryError, Result};

/// The memory of one device.
pub(crate) trait MemoryDriver: Debug + Send + Sync {
    /// New memory, aligned to at least 256.
    fn allocate(&self, request: MemoryRequest) -> Result<Arc<dyn DriverMemory>>;

    /// Memory that the program has from elsewhere, so that it can be exported. Fails for memory that cannot be.
    ///
    /// # Safety
    ///
    /// Where the driver has no reference to take (plain allocations), the memory stays until the value and all that was
    /// exported from it are dropped.
    unsafe fn adopt(&self, range: AddressRange) -> Result<Arc<dyn DriverMemory>>;

    /// Maps what another process has exported: an allocation of `bytes` bytes.
    fn import(&self, payload: Payload, bytes: u64) -> Result<Arc<dyn DriverMemory>>;

    /// Memory of another device of this process, so that this one reaches it.
    fn reach(&self, memory: &Arc<dyn DriverMemory>) -> Result<Arc<dyn DriverMemory>>;

    /// Copies from the host, and returns when the bytes are there.
    ///
    /// # Safety
    ///
    /// `destination` is this device's, live, `source.len()` bytes long, and no work in flight touches it.
    unsafe fn write(&self, destination: u64, source: &[u8]) -> Result<()>;

    /// Copies to the host, and returns when the bytes are there.
    ///
    /// # Safety
    ///
    /// `source` is this device's, live, `destination.len()` bytes long, and no work in flight writes it.
    unsafe fn read(&self, source: u64, destination: &mut [u8]) -> Result<()>;

    /// Sets `bytes` bytes to `value`, and returns when they are.
    ///
    /// # Safety
    ///
    /// As for [`MemoryDriver::write`].
    unsafe fn fill(&self, destination: u64, value: u8, bytes: usize) -> Result<()>;

    /// How much there is, and how much of it is free.
    fn memory_info(&self) -> Result<MemoryInfo>;

    /// The allocation that an address lies in; `None` for any other number.
    fn range_of(&self, address: u64) -> Option<AddressRange>;

    /// Whether an address lies in memory mapped through the virtual-memory API. Any number may be asked about.
    fn is_virtual(&self, address: u64) -> bool;

    /// A DMA-BUF of some of this device's memory, in whole pages, by which an adapter reaches it without the host.
    #[cfg_attr(not(feature = "ib"), allow(dead_code, reason = "RDMA alone makes use of it"))]
    fn dma_buf(&self, range: AddressRange) -> Result<OwnedFd>;

    /// Waits until what adapters have written to this device's memory so far is visible to its kernels. Where the device
    /// cannot say, it answers so.
    #[cfg_attr(not(feature = "ib"), allow(dead_code, reason = "RDMA alone makes use of it"))]
    fn flush_adapter_writes(&self) -> Result<()>;

    /// Tries whether handles of this kind can be made, by making one. The caller remembers the answer.
    fn probe_handle(&self, kind: HandleKind) -> Result<()>;

    /// Asks whether the device does multicast. The caller remembers the answer.
    fn probe_multicast(&self) -> bool;

    /// What offsets and lengths in a multicast object of so many devices have to be multiples of.
    fn multicast_granularity(&self, shape: MulticastShape) -> Result<u64>;

    /// A new multicast object.
    fn create_multicast(
        &self,
        shape: MulticastShape,
        handles: HandleKinds,
    ) -> Result<Arc<dyn DriverMulticast>>;

    /// This device's view of a multicast object that was exported.
    fn import_multicast(&self, payload: Payload, shape: MulticastShape) -> Result<Arc<dyn DriverMulticast>>;
}

/// What memory is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryRequest {
    /// Never 0.
    pub(crate) bytes: usize,
    /// Where it lies. Not [`MemoryKind::Imported`].
    pub(crate) kind: MemoryKind,
    /// Whether it has to be zero.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the CPU device's memory always is"))]
    pub(crate) zeroed: bool,
    /// For [`MemoryKind::Virtual`]: the kinds of handle that it can be exported as.
    pub(crate) handles: HandleKinds,
}

/// Some memory; given back when it is dropped.
///
/// It is [`Any`] for the driver that made it, which finds its own type again.
pub(crate) trait DriverMemory: Any + Debug + Send + Sync {
    /// Where the device sees it.
    fn address(&self) -> u64;

    /// Where the host sees it; null where it does not.
    fn host_pointer(&self) -> *mut u8 {
        ptr::null_mut()
    }

    /// What it is.
    fn kind(&self) -> MemoryKind;

    /// Where it lies in what another process would map.
    fn allocation(&self) -> Allocated;

    /// The kinds of handle that it can be exported as.
    fn handle_kinds(&self) -> HandleKinds {
        HandleKinds::empty()
    }

    /// A handle of the whole allocation, of one of those kinds.
    fn export(&self, _kind: HandleKind) -> Result<Payload> {
        Err(self.not_shareable())
    }

    /// The error of memory that cannot be handed over.
    fn not_shareable(&self) -> Error {
        let (kind, address) = (self.kind(), self.address());
        MemoryError::NotShareable { memory: kind.words(), address, remedy: kind.sharing_remedy() }.into()
    }
}

/// The allocation behind some memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocated {
    /// Which.
    pub(crate) id: AllocationId,
    /// Its length.
    pub(crate) bytes: u64,
    /// Where in it the memory begins.
    pub(crate) offset: u64,
}

/// An allocation, or another thing that can be exported, among all of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AllocationId {
    /// Made by this library.
    Own(u64),
    /// Made by others, by the driver's number for it.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "other libraries allocate on GPUs alone"))]
    Foreign(u64),
}

impl AllocationId {
    /// A number that no other has.
    pub(crate) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self::Own(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// Bytes of a fabric handle, and of a CUDA IPC handle.
pub(crate) const OPAQUE_BYTES: usize = 64;

/// What leaves the process.
#[derive(Debug)]
pub(crate) enum Payload {
    /// See [`HandleKind::Fabric`].
    Fabric([u8; OPAQUE_BYTES]),
    /// See [`HandleKind::PosixFd`].
    PosixFd(OwnedFd),
    /// See [`HandleKind::CudaIpc`].
    CudaIpc([u8; OPAQUE_BYTES]),
}

impl Payload {
    /// Its kind.
    pub(crate) fn kind(&self) -> HandleKind {
        match self {
            Self::Fabric(_) => HandleKind::Fabric,
            Self::PosixFd(_) => HandleKind::PosixFd,
            Self::CudaIpc(_) => HandleKind::CudaIpc,
        }
    }
}

/// A multicast object's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MulticastShape {
    /// How much each member may bind.
    pub(crate) bytes: u64,
    /// How many devices take part.
    pub(crate) devices: u32,
}

/// Where memory is bound in a multicast object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MulticastPlace {
    /// In the object.
    pub(crate) offset: u64,
    /// In the memory.
    pub(crate) memory_offset: u64,
    /// How much.
    pub(crate) bytes: u64,
}

/// Gives a handle, in its wire form, of memory that is about to be bound.
pub(crate) type ShareMember<'a> = &'a mut dyn FnMut() -> Result<Vec<u8>>;
/// Maps memory that a member has bound, from that wire form: what keeps it mapped, and where it lies.
pub(crate) type OpenMember<'a> = &'a dyn Fn(&[u8]) -> Result<(Arc<dyn DriverMemory>, AddressRange)>;

/// One device's view of a multicast object; let go of when it is dropped. A GPU's hardware knows all members; where it is
/// emulated, each process has to map them, by the handles that the binders leave in the object.
pub(crate) trait DriverMulticast: Debug + Send + Sync {
    /// What it is in this process.
    fn id(&self) -> AllocationId;

    /// The kinds of handle that it can be exported as.
    fn handle_kinds(&self) -> HandleKinds;

    /// A handle of one of those kinds.
    fn export(&self, kind: HandleKind) -> Result<Payload>;

    /// Makes this device a member.
    fn add_device(&self) -> Result<()>;

    /// Binds this device's memory. The caller has checked that the place is aligned and inside both, and keeps the memory
    /// and what `share` made until it is unbound.
    fn bind(&self, place: MulticastPlace, memory: &dyn DriverMemory, share: ShareMember<'_>) -> Result<()>;

    /// Ends a binding of this device's.
    fn unbind(&self, place: MulticastPlace);

    /// Maps the whole range.
    fn map(&self, open: OpenMember<'_>) -> Result<Box<dyn DriverMulticastMapping>>;
}

/// A mapped multicast range; unmapped when it is dropped.
pub(crate) trait DriverMulticastMapping: Debug + Send + Sync {
    /// Where it begins.
    fn address(&self) -> u64;
}
