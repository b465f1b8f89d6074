//! A driver that has no memory, and counts what is made of it and let go.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use crate::device::driver::*;
use crate::device::{
    AddressRange, Device, DeviceKind, DeviceUuid, HandleKinds, MemoryInfo, MemoryKind, ModuleSource,
    Properties,
};
use crate::error::{Error, HandleKind, Result};

/// What a mocked device can do, and what it has done.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Kinds that probing finds to work.
    pub(super) makes: HandleKinds,
    /// Kinds that can be opened.
    pub(super) opens: HandleKinds,
    pub(super) multicast: bool,
    pub(super) probes: [AtomicUsize; 3],
    pub(super) multicast_probes: AtomicUsize,
    /// References to physical memory, made and let go.
    pub(super) retained: AtomicUsize,
    pub(super) released: AtomicUsize,
    pub(super) imports: AtomicUsize,
    /// What has happened, in order.
    log: Mutex<Vec<&'static str>>,
}

impl Record {
    pub(super) fn new(makes: HandleKinds, opens: HandleKinds) -> Arc<Self> {
        Arc::new(Self { makes, opens, multicast: true, ..Self::default() })
    }

    pub(super) fn device(self: &Arc<Self>) -> Device {
        let properties = Properties {
            name: "mock".to_owned(),
            kind: DeviceKind::Cpu,
            ordinal: 0,
            uuid: DeviceUuid::new([0; 16]),
            pci: None,
            compute_capability: None,
            multiprocessors: 1,
            max_threads_per_block: 1,
            max_shared_bytes_per_block: 0,
            max_blocks: 1,
            max_concurrent_streams: None,
        };
        Device::of_driver(Arc::new(MockDriver { properties, record: Arc::clone(self) }), None)
    }

    fn note(&self, what: &'static str) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    pub(super) fn take_log(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn live(&self) -> usize {
        self.retained.load(Ordering::SeqCst) - self.released.load(Ordering::SeqCst)
    }

    /// Waits until nothing is referred to: the sharing thread lets go a moment after an importer has.
    pub(super) fn wait_until_released(&self) {
        let begun = Instant::now();
        while self.live() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "{} references are left", self.live());
            std::thread::yield_now();
        }
    }
}

/// The error of whatever the mock does not do.
fn no(what: &str) -> Error {
    Error::System { operation: format!("mocked: {what}"), source: io::ErrorKind::Unsupported.into() }
}

/// A reference to physical memory.
#[derive(Debug)]
struct Reference(Arc<Record>);

impl Reference {
    fn new(record: &Arc<Record>) -> Self {
        record.retained.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(record))
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.0.released.fetch_add(1, Ordering::SeqCst);
        self.0.note("release");
    }
}

fn payload(kind: HandleKind) -> Result<Payload> {
    Ok(match kind {
        HandleKind::Fabric => Payload::Fabric([0xFA; OPAQUE_BYTES]),
        HandleKind::PosixFd => {
            Payload::PosixFd(eventfd(0, EventfdFlags::CLOEXEC).map_err(|_| no("eventfd"))?)
        }
        HandleKind::CudaIpc => Payload::CudaIpc([0x1C; OPAQUE_BYTES]),
    })
}

#[derive(Debug)]
struct MockMemory {
    reference: Reference,
    bytes: u64,
    kind: MemoryKind,
    handles: HandleKinds,
    id: AllocationId,
}

impl DriverMemory for MockMemory {
    fn address(&self) -> u64 {
        0x10_0000
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn allocation(&self) -> Allocated {
        Allocated { id: self.id, bytes: self.bytes, offset: 0 }
    }

    fn handle_kinds(&self) -> HandleKinds {
        self.handles
    }

    fn export(&self, kind: HandleKind) -> Result<Payload> {
        self.reference.0.note("export");
        payload(kind)
    }
}

#[derive(Debug)]
struct MockDriver {
    properties: Properties,
    record: Arc<Record>,
}

impl MemoryDriver for MockDriver {
    fn allocate(&self, request: MemoryRequest) -> Result<Arc<dyn DriverMemory>> {
        let handles = match request.kind {
            MemoryKind::Virtual => self.record.makes,
            MemoryKind::Plain => HandleKinds::CUDA_IPC,
            _ => HandleKinds::empty(),
        };
        let (bytes, kind) = (request.bytes as u64, request.kind);
        let reference = Reference::new(&self.record);
        Ok(Arc::new(MockMemory { reference, bytes, kind, handles, id: AllocationId::new() }))
    }

    unsafe fn adopt(&self, _range: AddressRange) -> Result<Arc<dyn DriverMemory>> {
        Err(no("adopt"))
    }

    fn import(&self, payload: Payload, bytes: u64) -> Result<Arc<dyn DriverMemory>> {
        if !self.record.opens.contains(payload.kind().into()) {
            return Err(no("import"));
        }
        self.record.imports.fetch_add(1, Ordering::SeqCst);
        let (reference, id) = (Reference::new(&self.record), AllocationId::new());
        let (kind, handles) = (MemoryKind::Imported, HandleKinds::empty());
        Ok(Arc::new(MockMemory { reference, bytes, kind, handles, id }))
    }

    fn reach(&self, memory: &Arc<dyn DriverMemory>) -> Result<Arc<dyn DriverMemory>> {
        Ok(Arc::clone(memory))
    }

    unsafe fn write(&self, _destination: u64, _source: &[u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn read(&self, _source: u64, _destination: &mut [u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn fill(&self, _destination: u64, _value: u8, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        Err(no("memory_info"))
    }

    fn range_of(&self, _address: u64) -> Option<AddressRange> {
        None
    }

    fn is_virtual(&self, _address: u64) -> bool {
        false
    }

    fn dma_buf(&self, _range: AddressRange) -> Result<OwnedFd> {
        Err(no("DMA-BUF"))
    }

    fn flush_adapter_writes(&self) -> Result<()> {
        Ok(())
    }

    fn probe_handle(&self, kind: HandleKind) -> Result<()> {
        self.record.probes[kind as usize].fetch_add(1, Ordering::SeqCst);
        if self.record.makes.contains(kind.into()) { Ok(()) } else { Err(no(kind.name())) }
    }

    fn probe_multicast(&self) -> bool {
        self.record.multicast_probes.fetch_add(1, Ordering::SeqCst);
        self.record.multicast
    }

    fn multicast_granularity(&self, _shape: MulticastShape) -> Result<u64> {
        Ok(0x1000)
    }

    fn create_multicast(
        &self,
        _shape: MulticastShape,
        handles: HandleKinds,
    ) -> Result<Arc<dyn DriverMulticast>> {
        let reference = Reference::new(&self.record);
        Ok(Arc::new(MockMulticast { reference, handles, id: AllocationId::new() }))
    }

    fn import_multicast(&self, payload: Payload, shape: MulticastShape) -> Result<Arc<dyn DriverMulticast>> {
        drop(payload);
        self.create_multicast(shape, HandleKinds::empty())
    }
}

impl Driver for MockDriver {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn stream(&self) -> Result<Arc<dyn DriverStream>> {
        Err(no("stream"))
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

    fn load(&self, _source: &ModuleSource) -> Result<Arc<dyn DriverModule>> {
        Err(no("load"))
    }
}

#[derive(Debug)]
struct MockMulticast {
    reference: Reference,
    handles: HandleKinds,
    id: AllocationId,
}

impl DriverMulticast for MockMulticast {
    fn id(&self) -> AllocationId {
        self.id
    }

    fn handle_kinds(&self) -> HandleKinds {
        self.handles
    }

    fn export(&self, kind: HandleKind) -> Result<Payload> {
        payload(kind)
    }

    fn add_device(&self) -> Result<()> {
        self.reference.0.note("add");
        Ok(())
    }

    fn bind(&self, _place: MulticastPlace, _memory: &dyn DriverMemory, share: ShareMember<'_>) -> Result<()> {
        share()?;
        self.reference.0.note("bind");
        Ok(())
    }

    fn unbind(&self, _place: MulticastPlace) {
        self.reference.0.note("unbind");
    }

    fn map(&self, _open: OpenMember<'_>) -> Result<Box<dyn DriverMulticastMapping>> {
        self.reference.0.note("map");
        Ok(Box::new(MockMapping(Arc::clone(&self.reference.0))))
    }
}

#[derive(Debug)]
struct MockMapping(Arc<Record>);

impl DriverMulticastMapping for MockMapping {
    fn address(&self) -> u64 {
        0x20_0000
    }
}

impl Drop for MockMapping {
    fn drop(&mut self) {
        self.0.note("unmap");
    }
}
