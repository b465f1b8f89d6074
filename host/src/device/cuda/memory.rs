//! Memory of the GPU, and memory of the host that the GPU sees.
//!
//! Nothing here waits for kernels that run, save that a fill needs room on a multiprocessor. One rank may free or copy while
//! another's kernel spins, waiting for a third whose launch has yet to come; `cuMemFree` and `cuMemFreeHost` may wait for
//! the whole device, and that launch behind them. So:
//! - device memory comes from a pool of the device's own, allocated and freed in the order of a private stream;
//! - copies go through the same stream, never the default one;
//! - small host blocks (boards, semaphores' words) are kept for the next that asks.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard};

use cust::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUmemAllocationHandleType, CUmemAllocationType,
    CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps, CUmemoryPool, CUstream,
};

use super::context::{Context, warn_on_failure};
use super::failure::Failure;
use super::stream::create_stream;
use super::sys::{OUT_OF_MEMORY, call};
use crate::device::driver::{Allocated, AllocationId, DriverMemory, MemoryRequest};
use crate::device::{MemoryInfo, MemoryKind};
use crate::error::{Error, Result};

/// Host blocks are whole pages: the driver pins no less.
const PAGE: usize = 4096;
/// Host blocks up to this size are kept for reuse; larger ones go back to the system, though that may wait for the device.
const KEPT: usize = 64 << 10;

/// A device's memory: its private stream, its pool, and the host blocks that wait for reuse.
#[derive(Debug)]
pub(super) struct Heap {
    context: Arc<Context>,
    stream: CUstream,
    /// Null where the GPU has no pools; allocations are the driver's plain ones then.
    pool: CUmemoryPool,
    spare: Mutex<HashMap<usize, Vec<HostBlock>>>,
}

// SAFETY: stream and pool are handles of the driver's, which belong to no thread and are locked behind the handle.
unsafe impl Send for Heap {}
// SAFETY: as above; the spare blocks are behind a mutex.
unsafe impl Sync for Heap {}

impl Heap {
    /// The heap of a device.
    pub(super) fn new(context: Arc<Context>) -> Result<Self> {
        let entered = Arc::clone(&context);
        let current = entered.enter()?;
        let stream =
            create_stream(&current).map_err(|failure| failure.opening("create a stream for copies"))?;
        // From here on, dropping the heap destroys what there is of it.
        let mut heap = Self { context, stream, pool: std::ptr::null_mut(), spare: Mutex::default() };
        if heap.context.has_pools() {
            heap.pool = heap.create_pool().map_err(|failure| failure.opening("create a memory pool"))?;
        }
        Ok(heap)
    }

    fn create_pool(&self) -> std::result::Result<CUmemoryPool, Failure> {
        let properties = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: CUmemLocation {
                type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: self.context.device(),
            },
            win32SecurityAttributes: std::ptr::null_mut(),
            reserved: [0; 64],
        };
        let mut pool = std::ptr::null_mut();
        // SAFETY: `pool` is a live place for the result, and the properties are whole, their reserved bytes 0.
        unsafe { call!(cuMemPoolCreate(&mut pool, &properties)) }?;
        // What is freed stays in the pool until the device is closed: giving it back would be a part of some later wait.
        let mut threshold = u64::MAX;
        let which = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: this attribute's value is a live `u64`, which the driver copies.
        let set = unsafe { call!(cuMemPoolSetAttribute(pool, which, (&raw mut threshold).cast::<c_void>())) };
        if let Err(failure) = set {
            // SAFETY: the pool is new and nothing has been allocated from it.
            warn_on_failure("destroy a memory pool", unsafe { call!(cuMemPoolDestroy(pool)) });
            return Err(failure);
        }
        Ok(pool)
    }

    /// The context that everything is in.
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Memory of the pool.
    pub(super) fn allocate(self: &Arc<Self>, request: MemoryRequest) -> Result<DeviceMemory> {
        let bytes = request.bytes;
        let _current = self.context.enter()?;
        let mut address = 0;
        let allocated = if self.pool.is_null() {
            // SAFETY: `address` is a live place for the result.
            unsafe { call!(cuMemAlloc_v2(&mut address, bytes)) }
        } else {
            // SAFETY: as above; pool and stream are the heap's.
            unsafe { call!(cuMemAllocFromPoolAsync(&mut address, bytes, self.pool, self.stream)) }
        };
        allocated.map_err(|failure| match failure.code {
            OUT_OF_MEMORY => self.no_room(bytes),
            _ => failure.during("allocate GPU memory"),
        })?;
        let memory = DeviceMemory { heap: Arc::clone(self), address, bytes, id: AllocationId::new() };
        if request.zeroed {
            // SAFETY: the memory is new and `bytes` long.
            unsafe { self.fill(address, 0, bytes) }?;
        } else {
            // The memory is there only once the stream has come to it, and other streams may use it at once.
            self.drain(Ok(()), "allocate GPU memory")?;
        }
        Ok(memory)
    }

    /// `bytes` zeroed bytes of the host's that the GPU sees too.
    pub(super) fn allocate_host(self: &Arc<Self>, bytes: usize) -> Result<HostMemory> {
        let rounded = bytes.checked_next_multiple_of(PAGE).ok_or_else(|| no_host_room(bytes))?;
        let spare = self.spare().get_mut(&rounded).and_then(Vec::pop);
        let block = spare.map_or_else(|| self.new_host_block(rounded), Ok)?;
        // SAFETY: the block is that long and nobody else's.
        unsafe { block.host.write_bytes(0, rounded) };
        Ok(HostMemory { heap: Arc::clone(self), block, id: AllocationId::new() })
    }

    fn new_host_block(&self, bytes: usize) -> Result<HostBlock> {
        let _current = self.context.enter()?;
        let mut host = std::ptr::null_mut::<c_void>();
        let flags = CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: `host` is a live place for the result.
        unsafe { call!(cuMemHostAlloc(&mut host, bytes, flags)) }.map_err(|failure| match failure.code {
            OUT_OF_MEMORY => no_host_room(bytes),
            _ => failure.during("allocate pinned host memory"),
        })?;
        let Some(host) = NonNull::new(host.cast::<u8>()) else { return Err(no_host_room(bytes)) };
        let mut block = HostBlock { host, address: 0, bytes };
        // SAFETY: the block was allocated with DEVICEMAP in this context; the flags have to be 0.
        let mapped =
            unsafe { call!(cuMemHostGetDevicePointer_v2(&mut block.address, host.as_ptr().cast(), 0)) };
        if let Err(failure) = mapped {
            free_host(&block);
            return Err(failure.during("map pinned host memory to the GPU"));
        }
        Ok(block)
    }

    /// Copies from the host and waits for the copy.
    ///
    /// # Safety
    ///
    /// As for [`MemoryDriver::write`](crate::device::driver::MemoryDriver::write).
    pub(super) unsafe fn write(&self, destination: u64, source: &[u8]) -> Result<()> {
        if source.is_empty() {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: the caller's contract; the source outlives the copy, which `drain` waits for.
        let queued = unsafe {
            call!(cuMemcpyHtoDAsync_v2(destination, source.as_ptr().cast(), source.len(), self.stream))
        };
        self.drain(queued, "copy to the GPU")
    }

    /// Copies to the host and waits for the copy.
    ///
    /// # Safety
    ///
    /// As for [`MemoryDriver::read`](crate::device::driver::MemoryDriver::read).
    pub(super) unsafe fn read(&self, source: u64, destination: &mut [u8]) -> Result<()> {
        if destination.is_empty() {
            return Ok(());
        }
        let _current = self.context.enter()?;
        let (to, bytes) = (destination.as_mut_ptr().cast(), destination.len());
        // SAFETY: the caller's contract; the destination outlives the copy, which `drain` waits for.
        let queued = unsafe { call!(cuMemcpyDtoHAsync_v2(to, source, bytes, self.stream)) };
        self.drain(queued, "copy from the GPU")
    }

    /// Sets bytes and waits for it.
    ///
    /// # Safety
    ///
    /// As for [`MemoryDriver::fill`](crate::device::driver::MemoryDriver::fill).
    pub(super) unsafe fn fill(&self, destination: u64, value: u8, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: the caller's contract.
        let queued = unsafe { call!(cuMemsetD8Async(destination, value, bytes, self.stream)) };
        self.drain(queued, "fill GPU memory")
    }

    /// Waits for the private stream. Also where queueing failed: a part may have been queued, and the caller's memory is
    /// only lent.
    fn drain(&self, queued: std::result::Result<(), Failure>, operation: &str) -> Result<()> {
        // SAFETY: the stream is the heap's and its context current, since the caller has entered it.
        let drained = unsafe { call!(cuStreamSynchronize(self.stream)) };
        queued.and(drained).map_err(|failure| failure.during(operation))
    }

    /// What there is. The context is current.
    pub(super) fn info(&self) -> Result<MemoryInfo, Failure> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are live places for the results.
        unsafe { call!(cuMemGetInfo_v2(&mut free, &mut total)) }?;
        Ok(MemoryInfo { free_bytes: free as u64, total_bytes: total as u64 })
    }

    /// The error of an allocation that the GPU has no room for. The context is current.
    pub(super) fn no_room(&self, bytes: usize) -> Error {
        let detail = self.info().map_or_else(
            |_| String::new(),
            |info| format!(" ({} of its {} bytes are free)", info.free_bytes, info.total_bytes),
        );
        Error::OutOfMemory { device: self.context.properties().name.clone(), bytes: bytes as u64, detail }
    }

    fn spare(&self) -> MutexGuard<'_, HashMap<usize, Vec<HostBlock>>> {
        self.spare.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        for block in self.spare.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).values().flatten()
        {
            free_host(block);
        }
        if !self.pool.is_null() {
            // SAFETY: every allocation holds the heap, so all have been freed; the driver ends queued frees first.
            warn_on_failure("destroy the memory pool", unsafe { call!(cuMemPoolDestroy(self.pool)) });
        }
        // SAFETY: the stream is the heap's own, and nothing is queued on it later.
        warn_on_failure("destroy the stream for copies", unsafe { call!(cuStreamDestroy_v2(self.stream)) });
    }
}

/// An allocation in the GPU's memory.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    heap: Arc<Heap>,
    address: u64,
    bytes: usize,
    id: AllocationId,
}

impl DriverMemory for DeviceMemory {
    fn address(&self) -> u64 {
        self.address
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Device
    }

    fn allocation(&self) -> Allocated {
        Allocated { id: self.id, bytes: self.bytes as u64, offset: 0 }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let Ok(_current) = self.heap.context.enter() else { return };
        let freed = if self.heap.pool.is_null() {
            // SAFETY: the address is this allocation's, which nothing uses once its owner is dropped.
            unsafe { call!(cuMemFree_v2(self.address)) }
        } else {
            // SAFETY: as above; it came from the pool, in the order of this stream.
            unsafe { call!(cuMemFreeAsync(self.address, self.heap.stream)) }
        };
        warn_on_failure("free GPU memory", freed);
    }
}

/// Pinned memory of the host, mapped to the GPU.
#[derive(Debug)]
struct HostBlock {
    host: NonNull<u8>,
    address: u64,
    bytes: usize,
}

// SAFETY: the block is plain memory, owned by whoever holds the value; freeing it is not tied to a thread.
unsafe impl Send for HostBlock {}
// SAFETY: a shared reference gives addresses alone; what accesses the memory argues for itself.
unsafe impl Sync for HostBlock {}

fn no_host_room(bytes: usize) -> Error {
    Error::OutOfMemory {
        device: "the host".to_owned(),
        bytes: bytes as u64,
        detail: " of pinned memory".to_owned(),
    }
}

fn free_host(block: &HostBlock) {
    // SAFETY: the pointer came from cuMemHostAlloc; the caller gives the block up.
    warn_on_failure("free pinned host memory", unsafe { call!(cuMemFreeHost(block.host.as_ptr().cast())) });
}

/// An allocation in the host's memory.
#[derive(Debug)]
pub(super) struct HostMemory {
    heap: Arc<Heap>,
    block: HostBlock,
    id: AllocationId,
}

impl DriverMemory for HostMemory {
    fn address(&self) -> u64 {
        self.block.address
    }

    fn host_pointer(&self) -> *mut u8 {
        self.block.host.as_ptr()
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    fn allocation(&self) -> Allocated {
        Allocated { id: self.id, bytes: self.block.bytes as u64, offset: 0 }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let HostBlock { host, address, bytes } = self.block;
        let block = HostBlock { host, address, bytes };
        if bytes <= KEPT {
            self.heap.spare().entry(bytes).or_default().push(block);
        } else if let Ok(_current) = self.heap.context.enter() {
            free_host(&block);
        }
    }
}
