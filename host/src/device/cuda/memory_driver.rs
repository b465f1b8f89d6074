//! The GPU's memory as the layers above see it.

use std::any::Any;
use std::ffi::c_int;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use super::CudaDevice;
use super::failure::Failure;
use super::multicast::{self, CudaMulticast};
use super::peers;
use super::physical::{self, Physical};
use super::pointer::{self, AdoptedMemory};
use super::shared_memory::{IpcMemory, PlainMemory, VirtualMemory};
use crate::device::driver::{
    DriverMemory, DriverMulticast, MemoryDriver, MemoryRequest, MulticastShape, Payload,
};
use crate::device::{AddressRange, HandleKinds, MemoryInfo, MemoryKind};
use crate::error::{Error, HandleKind, Result};

/// `CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD`.
const DMA_BUF: c_int = 1;
/// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX`.
const CURRENT_CONTEXT: c_int = 0;
/// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER`.
const TO_OWNER: c_int = 100;

impl MemoryDriver for CudaDevice {
    fn allocate(&self, request: MemoryRequest) -> Result<Arc<dyn DriverMemory>> {
        Ok(match request.kind {
            MemoryKind::Device => Arc::new(self.heap.allocate(request)?),
            MemoryKind::Plain => Arc::new(PlainMemory::new(&self.heap, request)?),
            MemoryKind::Virtual => Arc::new(VirtualMemory::new(&self.heap, request)?),
            MemoryKind::Host => Arc::new(self.heap.allocate_host(request.bytes)?),
            MemoryKind::Imported => {
                let (device, memory) = (self.context.properties().name.clone(), request.kind.words());
                return Err(Error::NoSuchMemory { device, memory, remedy: "open a handle of it" });
            }
        })
    }

    unsafe fn adopt(&self, range: AddressRange) -> Result<Arc<dyn DriverMemory>> {
        let _current = self.context.enter()?;
        Ok(Arc::new(AdoptedMemory::new(&self.context, range)?))
    }

    fn import(&self, payload: Payload, bytes: u64) -> Result<Arc<dyn DriverMemory>> {
        Ok(match payload {
            Payload::CudaIpc(handle) => Arc::new(IpcMemory::open(&self.context, handle, bytes)?),
            payload => Arc::new(VirtualMemory::import(&self.context, &payload, bytes)?),
        })
    }

    fn reach(&self, memory: &Arc<dyn DriverMemory>) -> Result<Arc<dyn DriverMemory>> {
        let any: &dyn Any = &**memory;
        if let Some(plain) = any.downcast_ref::<PlainMemory>() {
            if !plain.context().is(&self.context) {
                peers::enable(&self.context, plain.context())?;
            }
        } else if let Some(memory) = any.downcast_ref::<VirtualMemory>() {
            if !memory.context().is(&self.context) {
                let _current = self.context.enter()?;
                let allowed = memory.mapped().allow(&self.context);
                allowed.map_err(|failure| failure.during("reach another GPU's memory"))?;
            }
        } else {
            return Err(memory.not_shareable());
        }
        Ok(Arc::clone(memory))
    }

    unsafe fn write(&self, destination: u64, source: &[u8]) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { self.heap.write(destination, source) }
    }

    unsafe fn read(&self, source: u64, destination: &mut [u8]) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { self.heap.read(source, destination) }
    }

    unsafe fn fill(&self, destination: u64, value: u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { self.heap.fill(destination, value, bytes) }
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        let _current = self.context.enter()?;
        self.heap.info().map_err(|failure| failure.during("ask for the GPU's free memory"))
    }

    fn range_of(&self, address: u64) -> Option<AddressRange> {
        let _current = self.context.enter().ok()?;
        pointer::range_of(address)
    }

    fn is_virtual(&self, address: u64) -> bool {
        let Ok(_current) = self.context.enter() else { return false };
        // The reference goes at once.
        Physical::retain(&self.context, address).is_ok()
    }

    fn dma_buf(&self, range: AddressRange) -> Result<OwnedFd> {
        let _current = self.context.enter()?;
        let mut file: c_int = -1;
        let place = (&raw mut file).cast();
        let late = self.context.late();
        // SAFETY: for this kind the driver writes an `int` to the place given, and this is a live one; it checks the range.
        unsafe {
            late.mem_get_handle_for_address_range(place, range.address, range.bytes as usize, DMA_BUF, 0)
        }
        .map_err(|failure| failure.during("make a DMA-BUF of GPU memory"))?;
        // SAFETY: the driver gave a new descriptor, which nobody else has.
        Ok(unsafe { OwnedFd::from_raw_fd(file) })
    }

    fn flush_adapter_writes(&self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the context is current; the numbers are two of cuda.h's.
        unsafe { self.context.late().flush_gpu_direct_rdma_writes(CURRENT_CONTEXT, TO_OWNER) }
            .map_err(|failure| failure.during("wait for the writes of adapters"))
    }

    fn probe_handle(&self, kind: HandleKind) -> Result<()> {
        if kind == HandleKind::CudaIpc {
            let (kind, handles) = (MemoryKind::Plain, HandleKinds::empty());
            let request = MemoryRequest { bytes: 1, kind, zeroed: false, handles };
            return PlainMemory::new(&self.heap, request)?.export(HandleKind::CudaIpc).map(drop);
        }
        let _current = self.context.enter()?;
        let try_it = || -> Result<(), Failure> {
            let granularity = physical::granularity(&self.context, kind.into())?;
            Physical::create(&self.context, granularity, kind.into())?.export(kind).map(drop)
        };
        try_it().map_err(|failure| failure.during(&format!("make a {kind} handle")))
    }

    fn probe_multicast(&self) -> bool {
        multicast::is_supported(&self.context)
    }

    fn multicast_granularity(&self, shape: MulticastShape) -> Result<u64> {
        multicast::granularity(&self.context, shape, HandleKinds::POSIX_FD)
    }

    fn create_multicast(
        &self,
        shape: MulticastShape,
        handles: HandleKinds,
    ) -> Result<Arc<dyn DriverMulticast>> {
        Ok(Arc::new(CudaMulticast::create(&self.context, shape, handles)?))
    }

    fn import_multicast(&self, payload: Payload, shape: MulticastShape) -> Result<Arc<dyn DriverMulticast>> {
        Ok(Arc::new(CudaMulticast::import(&self.context, &payload, shape)?))
    }
}
