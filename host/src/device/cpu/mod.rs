//! The CPU device: the kernels' own source, run by this process.
//!
//! A block is an OS thread (`pool`), its GPU threads are coroutines on it (`block`, `lane`, `stack`); a block of one thread
//! needs no coroutine. `grid` runs the blocks of a launch beside each other, as far as `capacity` has room for them, and
//! `stream` runs launches in order. `memory` lies in memfds (`mapping`), and `multicast` is what a switch does on a GPU.
//!
//! Faults that would hang a GPU, or kill its context, become the launch's error: a panic in a kernel, and a barrier or warp
//! exchange that some threads of the group never come to. That is stricter than a GPU from sm_70 on, whose barriers do not
//! wait for threads that have ended; the device crate promises no kernel that, since older and other GPUs do wait.

mod aligned;
mod block;
mod capacity;
mod event;
mod grid;
mod lane;
mod mapping;
mod memory;
mod multicast;
mod pool;
mod stack;
mod stream;

use std::any::Any;
use std::io;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use warpwire_device::abi::LaunchLimits;
use warpwire_device::kernel::KernelEntry;

use super::driver::{
    Driver, DriverFunction, DriverMemory, DriverModule, DriverMulticast, DriverStream, MemoryDriver,
    MemoryRequest, MulticastShape, Payload,
};
use super::module::unknown_kernel;
use super::{
    AddressRange, DeviceKind, DeviceUuid, HandleKinds, MemoryInfo, MemoryKind, ModuleSource, Properties,
};
use crate::error::{Error, HandleKind, ModuleError, Result};
use aligned::Aligned;
use capacity::Capacity;
use memory::Memory;
use multicast::CpuMulticast;

/// Threads of a block, as on a GPU.
const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Shared memory of a block, as on an H200: 227 KiB.
const MAX_SHARED_BYTES: u32 = 227 * 1024;
/// Blocks of a grid, as on a GPU.
const MAX_BLOCKS: u32 = i32::MAX as u32;

/// A new CPU device.
pub(super) fn open() -> Result<Arc<dyn Driver>> {
    static OPENED: AtomicU32 = AtomicU32::new(0);
    let mut uuid = [0; 16];
    getrandom::fill(&mut uuid)
        .map_err(|error| Error::system("drawing random numbers", io::Error::other(error.to_string())))?;
    let properties = Properties {
        name: format!("CPU device {}", OPENED.fetch_add(1, Ordering::Relaxed)),
        kind: DeviceKind::Cpu,
        ordinal: 0,
        uuid: DeviceUuid::new(uuid),
        pci: None,
        compute_capability: None,
        multiprocessors: thread::available_parallelism().map_or(1, NonZero::get) as u32,
        max_threads_per_block: MAX_THREADS_PER_BLOCK,
        max_shared_bytes_per_block: MAX_SHARED_BYTES,
        max_blocks: MAX_BLOCKS,
        max_concurrent_streams: None,
    };
    let memory = Memory::new(&properties.name);
    Ok(Arc::new(CpuDriver { properties, memory, capacity: Capacity::of_process()? }))
}

#[derive(Debug)]
struct CpuDriver {
    properties: Properties,
    memory: Memory,
    capacity: &'static Capacity,
}

impl Driver for CpuDriver {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn stream(&self) -> Result<Arc<dyn DriverStream>> {
        Ok(Arc::new(stream::CpuStream::new(self.capacity)?))
    }

    fn bind_thread(&self) -> Result<()> {
        Ok(())
    }

    fn is_bound_to_thread(&self) -> Result<bool> {
        Ok(true)
    }

    fn relax_capture(&self) -> Result<()> {
        Ok(())
    }

    fn load(&self, source: &ModuleSource) -> Result<Arc<dyn DriverModule>> {
        Ok(Arc::new(CpuModule { name: source.name, kernels: source.kernels, capacity: self.capacity }))
    }
}

impl MemoryDriver for CpuDriver {
    fn allocate(&self, request: MemoryRequest) -> Result<Arc<dyn DriverMemory>> {
        Ok(Arc::new(self.memory.allocate(request)?))
    }

    unsafe fn adopt(&self, range: AddressRange) -> Result<Arc<dyn DriverMemory>> {
        Ok(Arc::new(memory::adopt(range)?))
    }

    fn import(&self, payload: Payload, bytes: u64) -> Result<Arc<dyn DriverMemory>> {
        match payload {
            Payload::PosixFd(file) => Ok(Arc::new(memory::import(file, bytes)?)),
            other => Err(self.no_handles(other.kind())),
        }
    }

    fn reach(&self, memory: &Arc<dyn DriverMemory>) -> Result<Arc<dyn DriverMemory>> {
        // The devices of a process share its address space.
        Ok(Arc::clone(memory))
    }

    unsafe fn write(&self, destination: u64, source: &[u8]) -> Result<()> {
        // SAFETY: the caller's contract; a live range of this device does not overlap a borrowed slice of the host's.
        unsafe { ptr::copy_nonoverlapping(source.as_ptr(), destination as *mut u8, source.len()) };
        Ok(())
    }

    unsafe fn read(&self, source: u64, destination: &mut [u8]) -> Result<()> {
        // SAFETY: as in `write`.
        unsafe { ptr::copy_nonoverlapping(source as *const u8, destination.as_mut_ptr(), destination.len()) };
        Ok(())
    }

    unsafe fn fill(&self, destination: u64, value: u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { ptr::write_bytes(destination as *mut u8, value, bytes) };
        Ok(())
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        let unknown = || Error::System {
            operation: "reading /proc/meminfo".to_owned(),
            source: io::ErrorKind::Unsupported.into(),
        };
        let bytes = |name| mapping::host_bytes(name).ok_or_else(unknown);
        Ok(MemoryInfo { free_bytes: bytes("MemAvailable:")?, total_bytes: bytes("MemTotal:")? })
    }

    fn range_of(&self, address: u64) -> Option<AddressRange> {
        memory::range_of(address).map(|(range, _)| range)
    }

    fn is_virtual(&self, address: u64) -> bool {
        memory::range_of(address).is_some_and(|(_, kind)| kind == MemoryKind::Virtual)
    }

    fn dma_buf(&self, _range: AddressRange) -> Result<OwnedFd> {
        let (device, memory) = (self.properties.name.clone(), "DMA-BUF");
        Err(Error::NoSuchMemory { device, memory, remedy: "its memory is the host's: register its pages" })
    }

    fn flush_adapter_writes(&self) -> Result<()> {
        // The host's memory: what a completion says to have arrived is visible to whoever has seen the completion.
        Ok(())
    }

    fn probe_handle(&self, kind: HandleKind) -> Result<()> {
        match kind {
            HandleKind::PosixFd => Ok(()),
            _ => Err(self.no_handles(kind)),
        }
    }

    fn probe_multicast(&self) -> bool {
        true
    }

    fn multicast_granularity(&self, _shape: MulticastShape) -> Result<u64> {
        Ok(memory::GRANULARITY as u64)
    }

    fn create_multicast(
        &self,
        shape: MulticastShape,
        handles: HandleKinds,
    ) -> Result<Arc<dyn DriverMulticast>> {
        Ok(Arc::new(CpuMulticast::create(&self.properties.name, shape, handles)?))
    }

    fn import_multicast(&self, payload: Payload, shape: MulticastShape) -> Result<Arc<dyn DriverMulticast>> {
        match payload {
            Payload::PosixFd(file) => Ok(Arc::new(CpuMulticast::import(file, shape)?)),
            other => Err(self.no_handles(other.kind())),
        }
    }
}

impl CpuDriver {
    fn no_handles(&self, kind: HandleKind) -> Error {
        Error::NoSuchMemory {
            device: self.properties.name.clone(),
            memory: match kind {
                HandleKind::Fabric => "fabric handle",
                HandleKind::PosixFd => "file descriptor",
                HandleKind::CudaIpc => "CUDA IPC handle",
            },
            remedy: "the CPU device's memory lies in memfds, which are handed over as file descriptors",
        }
    }
}

#[derive(Debug)]
struct CpuModule {
    name: &'static str,
    kernels: &'static [KernelEntry],
    capacity: &'static Capacity,
}

impl DriverModule for CpuModule {
    fn function(&self, name: &str, args_size: usize) -> Result<Arc<dyn DriverFunction>> {
        let Some(entry) = self.kernels.iter().find(|entry| entry.name == name) else {
            return Err(unknown_kernel(name, self.name, self.kernels.iter().map(|entry| entry.name)));
        };
        if entry.args_size != args_size {
            let kernel = name.to_owned();
            return Err(
                ModuleError::ArgumentMismatch { kernel, expected: entry.args_size, got: args_size }.into()
            );
        }
        if entry.args_align > Aligned::ALIGNMENT {
            let kernel = name.to_owned();
            return Err(ModuleError::ArgumentAlignment {
                kernel,
                asked: entry.args_align,
                limit: Aligned::ALIGNMENT,
            }
            .into());
        }
        Ok(Arc::new(CpuFunction { entry: *entry, capacity: self.capacity }))
    }
}

#[derive(Debug)]
struct CpuFunction {
    entry: KernelEntry,
    capacity: &'static Capacity,
}

impl DriverFunction for CpuFunction {
    fn name(&self) -> &str {
        self.entry.name
    }

    fn limits(&self) -> LaunchLimits {
        self.entry.limits
    }

    fn resident_blocks(&self, threads: u32, _shared_bytes: u32) -> Result<u32> {
        // Shared memory is ordinary memory here: its sum is not limited.
        Ok(self.capacity.blocks(threads))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
