//! Memory that can leave the process, or that has come from another.

use std::ffi::c_char;
use std::sync::Arc;

use cust::sys::CUipcMemHandle;

use super::context::{Context, warn_on_failure};
use super::failure::Failure;
use super::memory::Heap;
use super::physical::{self, Mapped, Physical};
use super::sys::{OUT_OF_MEMORY, call};
use crate::device::driver::{Allocated, AllocationId, DriverMemory, MemoryRequest, OPAQUE_BYTES, Payload};
use crate::device::{HandleKinds, MemoryKind};
use crate::error::{HandleKind, Result};

/// `cuIpcOpenMemHandle`'s one flag.
const LAZY_PEER_ACCESS: u32 = 1;

/// A CUDA IPC handle of the plain allocation that begins at `address`.
pub(super) fn ipc_handle(address: u64) -> Result<Payload, Failure> {
    let mut handle = CUipcMemHandle { reserved: [0; OPAQUE_BYTES] };
    // SAFETY: `handle` is a live place for the result; the driver looks the address up.
    unsafe { call!(cuIpcGetMemHandle(&mut handle, address)) }?;
    Ok(Payload::CudaIpc(handle.reserved.map(|byte: c_char| byte as u8)))
}

/// A plain allocation.
#[derive(Debug)]
pub(super) struct PlainMemory {
    heap: Arc<Heap>,
    address: u64,
    bytes: usize,
    id: AllocationId,
}

impl PlainMemory {
    pub(super) fn new(heap: &Arc<Heap>, request: MemoryRequest) -> Result<Self> {
        let bytes = request.bytes;
        let _current = heap.context().enter()?;
        let mut address = 0;
        // SAFETY: `address` is a live place for the result.
        unsafe { call!(cuMemAlloc_v2(&mut address, bytes)) }.map_err(|failure| match failure.code {
            OUT_OF_MEMORY => heap.no_room(bytes),
            _ => failure.during("allocate plain GPU memory"),
        })?;
        let memory = Self { heap: Arc::clone(heap), address, bytes, id: AllocationId::new() };
        if request.zeroed {
            // SAFETY: the memory is new and `bytes` long.
            unsafe { heap.fill(address, 0, bytes) }?;
        }
        Ok(memory)
    }

    pub(super) fn context(&self) -> &Context {
        self.heap.context()
    }
}

impl DriverMemory for PlainMemory {
    fn address(&self) -> u64 {
        self.address
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Plain
    }

    fn allocation(&self) -> Allocated {
        Allocated { id: self.id, bytes: self.bytes as u64, offset: 0 }
    }

    fn handle_kinds(&self) -> HandleKinds {
        HandleKinds::CUDA_IPC
    }

    fn export(&self, kind: HandleKind) -> Result<Payload> {
        if kind != HandleKind::CudaIpc {
            return Err(self.not_shareable());
        }
        let _current = self.context().enter()?;
        ipc_handle(self.address).map_err(|failure| failure.during("make a CUDA IPC handle"))
    }
}

impl Drop for PlainMemory {
    fn drop(&mut self) {
        let Ok(_current) = self.context().enter() else { return };
        // SAFETY: the address is this allocation's, which nothing uses once its owner is dropped.
        warn_on_failure("free plain GPU memory", unsafe { call!(cuMemFree_v2(self.address)) });
    }
}

/// Another process' plain allocation, mapped by CUDA IPC.
#[derive(Debug)]
pub(super) struct IpcMemory {
    context: Arc<Context>,
    address: u64,
    bytes: u64,
    id: AllocationId,
}

impl IpcMemory {
    pub(super) fn open(context: &Arc<Context>, handle: [u8; OPAQUE_BYTES], bytes: u64) -> Result<Self> {
        let _current = context.enter()?;
        let handle = CUipcMemHandle { reserved: handle.map(|byte| byte as c_char) };
        let mut address = 0;
        // SAFETY: `address` is a live place for the result; the driver checks the handle, whatever its bytes are.
        unsafe { call!(cuIpcOpenMemHandle_v2(&mut address, handle, LAZY_PEER_ACCESS)) }
            .map_err(|failure| failure.during("open a CUDA IPC handle"))?;
        Ok(Self { context: Arc::clone(context), address, bytes, id: AllocationId::new() })
    }
}

impl DriverMemory for IpcMemory {
    fn address(&self) -> u64 {
        self.address
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Imported
    }

    fn allocation(&self) -> Allocated {
        Allocated { id: self.id, bytes: self.bytes, offset: 0 }
    }
}

impl Drop for IpcMemory {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: the mapping is this value's, which nothing uses once it is dropped.
        warn_on_failure("close a CUDA IPC handle", unsafe { call!(cuIpcCloseMemHandle(self.address)) });
    }
}

/// Virtual memory of this process, or imported as such.
#[derive(Debug)]
pub(super) struct VirtualMemory {
    mapped: Mapped,
    context: Arc<Context>,
    kind: MemoryKind,
    handles: HandleKinds,
    id: AllocationId,
}

impl VirtualMemory {
    pub(super) fn new(heap: &Arc<Heap>, request: MemoryRequest) -> Result<Self> {
        let MemoryRequest { bytes, handles, .. } = request;
        let context = heap.context();
        let _current = context.enter()?;
        let failed = |failure: Failure| match failure.code {
            OUT_OF_MEMORY => heap.no_room(bytes),
            _ => failure.during("allocate virtual GPU memory"),
        };
        let granularity = physical::granularity(context, handles).map_err(failed)?;
        let rounded = bytes.checked_next_multiple_of(granularity).ok_or_else(|| heap.no_room(bytes))?;
        let physical = Arc::new(Physical::create(context, rounded, handles).map_err(failed)?);
        let mapped = Mapped::new(context, physical, rounded, granularity).map_err(failed)?;
        if request.zeroed {
            // SAFETY: the memory is new and `rounded` long.
            unsafe { heap.fill(mapped.address(), 0, rounded) }?;
        }
        Ok(Self::of(context, mapped, MemoryKind::Virtual, handles))
    }

    pub(super) fn import(context: &Arc<Context>, payload: &Payload, bytes: u64) -> Result<Self> {
        let _current = context.enter()?;
        let kind = payload.kind();
        let failed = |failure: Failure| failure.during(&format!("import a {kind} handle"));
        let physical = Arc::new(Physical::import(context, payload).map_err(failed)?);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mapped = Mapped::new(context, physical, bytes, 0).map_err(failed)?;
        Ok(Self::of(context, mapped, MemoryKind::Imported, HandleKinds::empty()))
    }

    fn of(context: &Arc<Context>, mapped: Mapped, kind: MemoryKind, handles: HandleKinds) -> Self {
        Self { mapped, context: Arc::clone(context), kind, handles, id: AllocationId::new() }
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn mapped(&self) -> &Mapped {
        &self.mapped
    }
}

impl DriverMemory for VirtualMemory {
    fn address(&self) -> u64 {
        self.mapped.address()
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn allocation(&self) -> Allocated {
        Allocated { id: self.id, bytes: self.mapped.bytes() as u64, offset: 0 }
    }

    fn handle_kinds(&self) -> HandleKinds {
        self.handles
    }

    fn export(&self, kind: HandleKind) -> Result<Payload> {
        if !self.handles.contains(kind.into()) {
            return Err(self.not_shareable());
        }
        let _current = self.context.enter()?;
        let exported = self.mapped.physical().export(kind);
        exported.map_err(|failure| failure.during(&format!("make a {kind} handle")))
    }
}
