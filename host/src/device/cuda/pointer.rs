//! What lies behind an address that the program has from elsewhere.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use cust::sys::CUpointer_attribute as Attribute;

use super::context::Context;
use super::physical::{Physical, handle_kinds};
use super::shared_memory::ipc_handle;
use super::sys::call;
use crate::device::driver::{Allocated, AllocationId, DriverMemory, Payload};
use crate::device::{AddressRange, HandleKinds, MemoryKind};
use crate::error::{HandleKind, MemoryError, Result};

/// An attribute of an address; `None` where the driver has none to give. The context is current.
///
/// # Safety
///
/// `T` is the type that cuda.h states for the attribute, and every bit pattern is a value of it.
unsafe fn attribute<T: Default>(which: Attribute, address: u64) -> Option<T> {
    let mut value = T::default();
    // SAFETY: a live place of the attribute's type, by the caller's contract; the driver looks the address up.
    unsafe { call!(cuPointerGetAttribute((&raw mut value).cast::<c_void>(), which, address)) }.ok()?;
    Some(value)
}

/// The allocation that an address lies in.
pub(super) fn range_of(address: u64) -> Option<AddressRange> {
    let (mut base, mut bytes) = (0, 0);
    // SAFETY: both are live places for the results; the driver looks the address up.
    unsafe { call!(cuMemGetAddressRange_v2(&mut base, &mut bytes, address)) }.ok()?;
    Some(AddressRange { address: base, bytes: bytes as u64 })
}

/// Somebody else's memory, for export.
#[derive(Debug)]
pub(super) struct AdoptedMemory {
    /// A reference to virtual memory. The driver has none for plain allocations.
    physical: Option<Physical>,
    context: Arc<Context>,
    range: AddressRange,
    id: AllocationId,
    handles: HandleKinds,
}

impl AdoptedMemory {
    /// The allocation that `range` lies in. The context is current.
    pub(super) fn new(context: &Arc<Context>, range: AddressRange) -> Result<Self> {
        let AddressRange { address, bytes } = range;
        let refused = |memory, remedy| Err(MemoryError::NotShareable { memory, address, remedy }.into());
        let copy = "copy it to memory of the device that can be shared (Device::allocate_shareable)";
        // SAFETY: cuda.h gives these attributes the types `unsigned int`, `int` (here and below: 4 and 8 bytes at most, all
        // bit patterns valid), and a pointer.
        let (kind, managed, pool) = unsafe {
            (
                attribute::<c_uint>(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
                attribute::<c_int>(Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED, address),
                attribute::<u64>(Attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address),
            )
        };
        match kind {
            None | Some(0) => return refused("ordinary host memory", copy),
            _ if managed.is_some_and(|managed| managed != 0) => return refused("managed memory", copy),
            Some(HOST) => return refused(MemoryKind::Host.words(), copy),
            _ if pool.is_some_and(|pool| pool != 0) => {
                return refused(
                    "memory of a stream-ordered pool",
                    "allocate it with cuMemAlloc or cuMemCreate, or copy it",
                );
            }
            Some(_) => {}
        }
        let allocation = range_of(address);
        let Some(found) = allocation.filter(|found| found.contains(range)) else {
            let allocation = allocation.map(|found| (found.address, found.bytes));
            return Err(MemoryError::NotOneAllocation { address, bytes, allocation }.into());
        };
        let physical = Physical::retain(context, address).ok();
        // SAFETY: as above: `unsigned long long`, `int`.
        let (types, legacy, number) = unsafe {
            (
                attribute::<u64>(Attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address),
                attribute::<c_int>(Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address),
                attribute::<u64>(Attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID, address),
            )
        };
        let handles = match physical {
            Some(_) => handle_kinds(types.unwrap_or(0)),
            None if legacy == Some(0) => HandleKinds::empty(),
            None => HandleKinds::CUDA_IPC,
        };
        let id = number.map_or_else(AllocationId::new, AllocationId::Foreign);
        let memory = Self { physical, context: Arc::clone(context), range: found, id, handles };
        if handles.is_empty() { Err(memory.not_shareable()) } else { Ok(memory) }
    }
}

/// `CU_MEMORYTYPE_HOST`.
const HOST: c_uint = 1;

impl DriverMemory for AdoptedMemory {
    fn address(&self) -> u64 {
        self.range.address
    }

    fn kind(&self) -> MemoryKind {
        if self.physical.is_some() { MemoryKind::Virtual } else { MemoryKind::Plain }
    }

    fn allocation(&self) -> Allocated {
        Allocated { id: self.id, bytes: self.range.bytes, offset: 0 }
    }

    fn handle_kinds(&self) -> HandleKinds {
        self.handles
    }

    fn export(&self, kind: HandleKind) -> Result<Payload> {
        if !self.handles.contains(kind.into()) {
            return Err(self.not_shareable());
        }
        let _current = self.context.enter()?;
        let exported = match &self.physical {
            Some(physical) => physical.export(kind),
            None => ipc_handle(self.range.address),
        };
        exported.map_err(|failure| failure.during(&format!("make a {kind} handle")))
    }
}
