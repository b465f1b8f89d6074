//! Physical memory through the virtual-memory API: made, mapped, exported, imported; each handle released once.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use cust::sys::{
    CUdevice_attribute as Attribute, CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemLocationType,
};

use super::context::{Context, warn_on_failure};
use super::failure::Failure;
use super::late::AllocationProperties;
use super::sys::{INVALID_VALUE, call};
use crate::device::HandleKinds;
use crate::device::driver::{OPAQUE_BYTES, Payload};
use crate::error::{HandleKind, Result};

/// cuda.h's numbers of the kinds of handle.
const POSIX_FD: c_int = 1;
const FABRIC: c_int = 8;

/// As cuda.h numbers them. CUDA IPC has none: it is not for virtual memory.
pub(super) fn handle_types(kinds: HandleKinds) -> c_int {
    let number = |kind, number| if kinds.contains(kind) { number } else { 0 };
    number(HandleKinds::POSIX_FD, POSIX_FD) | number(HandleKinds::FABRIC, FABRIC)
}

/// The other way round.
pub(super) fn handle_kinds(types: u64) -> HandleKinds {
    let has = |number: c_int| types & number as u64 != 0;
    let mut kinds = HandleKinds::empty();
    kinds.set(HandleKinds::POSIX_FD, has(POSIX_FD));
    kinds.set(HandleKinds::FABRIC, has(FABRIC));
    kinds
}

/// A reference to physical memory, or to a multicast object. The driver frees what has no reference left.
#[derive(Debug)]
pub(super) struct Physical {
    context: Arc<Context>,
    handle: u64,
}

impl Physical {
    /// Takes charge of a handle that the driver gave.
    pub(super) fn new(context: &Arc<Context>, handle: u64) -> Self {
        Self { context: Arc::clone(context), handle }
    }

    /// Physical memory of the device, `bytes` bytes, a multiple of the granularity.
    pub(super) fn create(context: &Arc<Context>, bytes: usize, kinds: HandleKinds) -> Result<Self, Failure> {
        let properties = properties(context, kinds);
        let mut handle = 0;
        // SAFETY: `handle` is a live place for the result, and the properties are whole.
        unsafe { context.late().mem_create(&mut handle, bytes, &properties, 0) }?;
        Ok(Self::new(context, handle))
    }

    /// A reference to the memory that is mapped at an address; fails where none was mapped by the virtual-memory API.
    pub(super) fn retain(context: &Arc<Context>, address: u64) -> Result<Self, Failure> {
        let mut handle = 0;
        // SAFETY: `handle` is a live place for the result; the driver looks the address up and reads nothing there.
        unsafe { call!(cuMemRetainAllocationHandle(&mut handle, address as *mut c_void)) }?;
        Ok(Self::new(context, handle))
    }

    /// What another process has exported.
    pub(super) fn import(context: &Arc<Context>, payload: &Payload) -> Result<Self, Failure> {
        let mut handle = 0;
        let late = context.late();
        match payload {
            Payload::PosixFd(file) => {
                let file = file.as_raw_fd() as usize as *mut c_void;
                // SAFETY: `handle` is a live place for the result; by cuda.h's manual the descriptor itself is passed as the
                // pointer. It stays open during the call, and is the caller's to close.
                unsafe { late.mem_import(&mut handle, file, POSIX_FD) }?;
            }
            Payload::Fabric(bytes) => {
                let mut bytes = *bytes;
                // SAFETY: as above; a fabric handle is 64 bytes, which the driver reads.
                unsafe { late.mem_import(&mut handle, bytes.as_mut_ptr().cast(), FABRIC) }?;
            }
            // Of a plain allocation, which has no physical handle.
            Payload::CudaIpc(_) => {
                return Err(Failure { function: "cuMemImportFromShareableHandle", code: INVALID_VALUE });
            }
        }
        Ok(Self::new(context, handle))
    }

    /// The driver's handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    /// A handle for another process. Only a descriptor keeps the memory; a fabric handle is good as long as this is kept.
    pub(super) fn export(&self, kind: HandleKind) -> Result<Payload, Failure> {
        let late = self.context.late();
        if kind == HandleKind::PosixFd {
            let mut file: c_int = -1;
            // SAFETY: for this kind the driver writes an `int` to the place given, and this is a live one.
            unsafe { late.mem_export((&raw mut file).cast(), self.handle, POSIX_FD, 0) }?;
            // SAFETY: the driver gave a new descriptor, which nobody else has.
            return Ok(Payload::PosixFd(unsafe { OwnedFd::from_raw_fd(file) }));
        }
        let mut bytes = [0u8; OPAQUE_BYTES];
        // SAFETY: for this kind the driver writes 64 bytes to the place given, which is that long.
        unsafe { late.mem_export(bytes.as_mut_ptr().cast(), self.handle, FABRIC, 0) }?;
        Ok(Payload::Fabric(bytes))
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: the reference is this value's own; mappings of the memory have references of their own.
        warn_on_failure("release physical memory", unsafe { call!(cuMemRelease(self.handle)) });
    }
}

fn properties(context: &Context, kinds: HandleKinds) -> AllocationProperties {
    // For a network card's sake, where the two go together.
    let gpu_direct_rdma =
        context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED as c_int);
    AllocationProperties {
        allocation_type: 1,
        handle_types: handle_types(kinds),
        location_type: 1,
        device: context.device(),
        win32: std::ptr::null_mut(),
        compression: 0,
        gpu_direct_rdma: u8::from(gpu_direct_rdma.is_ok_and(|value| value != 0)),
        usage: 0,
        reserved: [0; 4],
    }
}

/// What lengths of physical memory are multiples of.
pub(super) fn granularity(context: &Context, kinds: HandleKinds) -> Result<usize, Failure> {
    let properties = properties(context, kinds);
    let mut granularity = 0;
    // SAFETY: `granularity` is a live place for the result, and the properties are whole. Option 0: the least.
    unsafe { context.late().mem_get_allocation_granularity(&mut granularity, &properties, 0) }?;
    Ok(granularity.max(1))
}

/// Addresses of the device's, given back on drop.
#[derive(Debug)]
struct Reservation {
    context: Arc<Context>,
    address: u64,
    bytes: usize,
}

impl Reservation {
    fn new(context: &Arc<Context>, bytes: usize, alignment: usize) -> Result<Self, Failure> {
        let mut address = 0;
        // SAFETY: `address` is a live place for the result.
        unsafe { call!(cuMemAddressReserve(&mut address, bytes, alignment, 0, 0)) }?;
        Ok(Self { context: Arc::clone(context), address, bytes })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: the range that `new` reserved, where nothing is mapped: a `Mapped` unmaps before its reservation goes.
        warn_on_failure("give back addresses", unsafe { call!(cuMemAddressFree(self.address, self.bytes)) });
    }
}

/// Physical memory, or a multicast object, mapped as a whole and from its beginning; unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapped {
    /// Whether there is something to unmap: `new` may fail half-way.
    mapped: bool,
    reservation: Reservation,
    physical: Arc<Physical>,
}

impl Mapped {
    /// Maps `bytes` bytes for the context's own device.
    pub(super) fn new(
        context: &Arc<Context>,
        physical: Arc<Physical>,
        bytes: usize,
        alignment: usize,
    ) -> Result<Self, Failure> {
        let reservation = Reservation::new(context, bytes, alignment)?;
        let address = reservation.address;
        let mut mapped = Self { mapped: false, reservation, physical };
        // SAFETY: the range is reserved and empty; the handle is live. Offset 0 is the only one that the driver takes.
        unsafe { call!(cuMemMap(address, bytes, 0, mapped.physical.handle, 0)) }?;
        mapped.mapped = true;
        mapped.allow(context)?;
        Ok(mapped)
    }

    /// Lets another device of this process reach it too.
    pub(super) fn allow(&self, context: &Context) -> Result<(), Failure> {
        let access = CUmemAccessDesc {
            location: CUmemLocation {
                type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: context.device(),
            },
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        let Reservation { address, bytes, .. } = self.reservation;
        // SAFETY: the range is mapped, and the description is one, as the count says.
        unsafe { call!(cuMemSetAccess(address, bytes, &access, 1)) }
    }

    pub(super) fn address(&self) -> u64 {
        self.reservation.address
    }

    pub(super) fn bytes(&self) -> usize {
        self.reservation.bytes
    }

    pub(super) fn physical(&self) -> &Physical {
        &self.physical
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if !self.mapped {
            return;
        }
        let Ok(_current) = self.reservation.context.enter() else { return };
        let Reservation { address, bytes, .. } = self.reservation;
        // SAFETY: the range that `new` mapped, which nothing uses once its owner is dropped.
        warn_on_failure("unmap memory", unsafe { call!(cuMemUnmap(address, bytes)) });
    }
}
