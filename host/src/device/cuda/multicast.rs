//! Multicast objects of the NVSwitch. Made only on a device that says that it has them.

use std::any::Any;
use std::sync::Arc;

use super::context::{Context, warn_on_failure};
use super::failure::Failure;
use super::late::MulticastProperties;
use super::physical::{Mapped, Physical, handle_types};
use super::shared_memory::VirtualMemory;
use crate::device::HandleKinds;
use crate::device::driver::{
    AllocationId, DriverMemory, DriverMulticast, DriverMulticastMapping, MulticastPlace, MulticastShape,
    OpenMember, Payload, ShareMember,
};
use crate::error::{Error, HandleKind, MemoryError, Result};

/// `CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED`.
const MULTICAST_SUPPORTED: i32 = 132;

/// Whether the device says that it does multicast.
pub(super) fn is_supported(context: &Context) -> bool {
    context.attribute(MULTICAST_SUPPORTED).is_ok_and(|value| value != 0)
}

fn require(context: &Context) -> Result<()> {
    if is_supported(context) {
        return Ok(());
    }
    let device = context.properties().name.clone();
    Err(MemoryError::MulticastUnsupported { device, reason: "the driver's attribute for it is 0" }.into())
}

fn properties(shape: MulticastShape, handles: HandleKinds) -> MulticastProperties {
    MulticastProperties {
        devices: shape.devices,
        bytes: shape.bytes as usize,
        handle_types: handle_types(handles) as u64,
        flags: 0,
    }
}

/// What offsets and lengths in an object are multiples of.
pub(super) fn granularity(context: &Context, shape: MulticastShape, handles: HandleKinds) -> Result<u64> {
    require(context)?;
    let _current = context.enter()?;
    let mut granularity = 0;
    // SAFETY: `granularity` is a live place for the result, and the properties are whole. Option 0: the least.
    unsafe { context.late().multicast_get_granularity(&mut granularity, &properties(shape, handles), 0) }
        .map_err(|failure| failure.during("ask for the multicast granularity"))?;
    Ok(granularity.max(1) as u64)
}

/// One device's view of an object.
#[derive(Debug)]
pub(super) struct CudaMulticast {
    physical: Arc<Physical>,
    context: Arc<Context>,
    shape: MulticastShape,
    handles: HandleKinds,
    id: AllocationId,
}

impl CudaMulticast {
    pub(super) fn create(
        context: &Arc<Context>,
        shape: MulticastShape,
        handles: HandleKinds,
    ) -> Result<Self> {
        require(context)?;
        let _current = context.enter()?;
        let mut handle = 0;
        // SAFETY: `handle` is a live place for the result, and the properties are whole.
        unsafe { context.late().multicast_create(&mut handle, &properties(shape, handles)) }
            .map_err(|failure| failure.during("make a multicast object"))?;
        Ok(Self::of(context, Physical::new(context, handle), shape, handles))
    }

    pub(super) fn import(context: &Arc<Context>, payload: &Payload, shape: MulticastShape) -> Result<Self> {
        require(context)?;
        let _current = context.enter()?;
        let physical = Physical::import(context, payload)
            .map_err(|failure| failure.during("import a multicast object"))?;
        Ok(Self::of(context, physical, shape, HandleKinds::empty()))
    }

    fn of(context: &Arc<Context>, physical: Physical, shape: MulticastShape, handles: HandleKinds) -> Self {
        let (physical, context) = (Arc::new(physical), Arc::clone(context));
        Self { physical, context, shape, handles, id: AllocationId::new() }
    }

    fn call(&self, operation: &str, call: impl FnOnce() -> Result<(), Failure>) -> Result<()> {
        let _current = self.context.enter()?;
        call().map_err(|failure| failure.during(operation))
    }
}

impl DriverMulticast for CudaMulticast {
    fn id(&self) -> AllocationId {
        self.id
    }

    fn handle_kinds(&self) -> HandleKinds {
        self.handles
    }

    fn export(&self, kind: HandleKind) -> Result<Payload> {
        let _current = self.context.enter()?;
        self.physical.export(kind).map_err(|failure| failure.during("export a multicast object"))
    }

    fn add_device(&self) -> Result<()> {
        // SAFETY: the object is live.
        self.call("add a device to the multicast object", || unsafe {
            self.context.late().multicast_add_device(self.physical.handle(), self.context.device())
        })
    }

    fn bind(&self, place: MulticastPlace, memory: &dyn DriverMemory, _share: ShareMember<'_>) -> Result<()> {
        let memory = (memory as &dyn Any).downcast_ref::<VirtualMemory>();
        let memory = memory.ok_or(Error::ForeignObject { what: "buffer" })?.mapped().physical().handle();
        let MulticastPlace { offset, memory_offset, bytes } = place;
        let (offset, memory_offset, bytes) = (offset as usize, memory_offset as usize, bytes as usize);
        // SAFETY: object and memory are live; the caller has checked the place, and keeps the memory until it is unbound.
        self.call("bind memory to the multicast object", || unsafe {
            let late = self.context.late();
            late.multicast_bind_mem(self.physical.handle(), offset, memory, memory_offset, bytes, 0)
        })
    }

    fn unbind(&self, place: MulticastPlace) {
        let (offset, bytes) = (place.offset as usize, place.bytes as usize);
        let Ok(_current) = self.context.enter() else { return };
        let (object, device) = (self.physical.handle(), self.context.device());
        // SAFETY: the object is live, and the place was bound by this device.
        let unbound = unsafe { self.context.late().multicast_unbind(object, device, offset, bytes) };
        warn_on_failure("unbind memory from the multicast object", unbound);
    }

    fn map(&self, _open: OpenMember<'_>) -> Result<Box<dyn DriverMulticastMapping>> {
        let _current = self.context.enter()?;
        let bytes = self.shape.bytes as usize;
        let mapped = Mapped::new(&self.context, Arc::clone(&self.physical), bytes, 0)
            .map_err(|failure| failure.during("map the multicast object"))?;
        Ok(Box::new(mapped))
    }
}

impl DriverMulticastMapping for Mapped {
    fn address(&self) -> u64 {
        Self::address(self)
    }
}
