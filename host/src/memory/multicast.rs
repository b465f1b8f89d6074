//! Multicast objects: one address range behind which several devices' memory lies.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};
use warpwire_device::abi::{Global, Pod};

use super::claim::Claim;
use super::export::{HandleChoice, Object, Publication};
use super::handle::{Origin, SharedHandle};
use super::import;
use super::shareable::Shareable;
use super::wire::{self, Form};
use crate::device::driver::{
    DriverMemory, DriverMulticast, DriverMulticastMapping, MulticastPlace, MulticastShape,
};
use crate::device::{AddressRange, Buffer, Device, MemoryKind};
use crate::error::{MemoryError, Result};

/// One device's view of a multicast object.
///
/// A group sets it up in this order, each step on all devices before the next: one process creates it and shares it; the
/// others open what it has sent; each adds its device; each binds its memory; each maps it. Kernels then store to all members,
/// and load their sum, by the device crate's `multimem_*` accesses to [`MulticastMapping::address`].
///
/// The views, bindings and mappings may be dropped in any order: a mapping keeps the bindings that it was made over, and
/// both keep the object.
#[derive(Clone, Debug)]
pub struct Multicast {
    inner: Arc<Inner>,
}

/// The object goes last of all that was made from it.
#[derive(Debug)]
struct Inner {
    bindings: Mutex<Vec<Weak<Bound>>>,
    object: Arc<dyn DriverMulticast>,
    shape: MulticastShape,
    granularity: u64,
    device: Device,
    /// Keeps another process' object exported.
    _claim: Option<Claim>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Body {
    origin: Origin,
    bytes: u64,
    devices: u32,
}

impl Body {
    fn check(&self) -> Result<(), &'static str> {
        if self.bytes == 0 || isize::try_from(self.bytes).is_err() || self.devices == 0 {
            return Err("its shape cannot be");
        }
        self.origin.check()
    }
}

impl Multicast {
    /// What offsets and lengths in an object of `bytes` bytes for `devices` devices are multiples of.
    ///
    /// # Errors
    ///
    /// [`MemoryError::MulticastUnsupported`], [`MemoryError::MulticastState`] for an object of nothing; the driver's.
    pub fn granularity(device: &Device, bytes: u64, devices: u32) -> Result<u64> {
        const OPERATION: &str = "make a multicast object";
        require(device)?;
        if bytes == 0 || devices == 0 || isize::try_from(bytes).is_err() {
            let reason = format!("it would have {bytes} bytes for each of {devices} devices");
            return Err(MemoryError::MulticastState { operation: OPERATION, reason }.into());
        }
        device.driver().multicast_granularity(MulticastShape { bytes, devices })
    }

    /// An object for `devices` devices, each of which may bind up to `bytes` bytes, rounded up to whole granules. It can be
    /// exported by every kind of handle that works here.
    ///
    /// # Errors
    ///
    /// As for [`Multicast::granularity`].
    pub fn create(device: &Device, bytes: u64, devices: u32) -> Result<Self> {
        let granularity = Self::granularity(device, bytes, devices)?;
        let shape = MulticastShape { bytes: bytes.next_multiple_of(granularity), devices };
        let object = device.driver().create_multicast(shape, device.virtual_handles())?;
        Ok(Self::new(device, object, shape, granularity, None))
    }

    /// A view for `device` of the object that another process (or this one, for another of its devices) has shared.
    ///
    /// # Errors
    ///
    /// As for [`SharedHandle::from_bytes`] and [`SharedHandle::open`]; [`MemoryError::MulticastUnsupported`].
    pub fn open(device: &Device, bytes: &[u8]) -> Result<Self> {
        let body: Body = wire::open(Form::Multicast, bytes)?;
        body.check().map_err(|reason| wire::malformed(Form::Multicast, bytes.len(), reason.to_owned()))?;
        let shape = MulticastShape { bytes: body.bytes, devices: body.devices };
        let granularity = Self::granularity(device, shape.bytes, shape.devices)?;
        let (object, claim) = import::multicast(device, &body.origin, shape)?;
        Ok(Self::new(device, object, shape, granularity, claim))
    }

    fn new(
        device: &Device,
        object: Arc<dyn DriverMulticast>,
        shape: MulticastShape,
        granularity: u64,
        claim: Option<Claim>,
    ) -> Self {
        let device = device.clone();
        let bindings = Mutex::default();
        Self { inner: Arc::new(Inner { bindings, object, shape, granularity, device, _claim: claim }) }
    }

    /// How much each device may bind.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner.shape.bytes
    }

    /// Shares the object with other processes, as long as what this gives is kept.
    ///
    /// # Errors
    ///
    /// As for [`Shareable::of`].
    pub fn share(&self, choice: HandleChoice) -> Result<SharedMulticast> {
        let Inner { object, device, shape, .. } = &*self.inner;
        let publication = Publication::of(device, &Object::Multicast(Arc::clone(object)), choice)?;
        let body =
            Body { origin: Origin::of(publication.export())?, bytes: shape.bytes, devices: shape.devices };
        Ok(SharedMulticast { message: wire::seal(Form::Multicast, &body)?, _publication: publication })
    }

    /// Makes the device a member.
    ///
    /// # Errors
    ///
    /// [`MemoryError::MulticastState`] where it is one, or there are as many as the object is for; the driver's.
    pub fn add_device(&self) -> Result<()> {
        self.inner.object.add_device()
    }

    /// Binds a part of a buffer, `bytes` bytes from `buffer_offset` on, at `offset`, until what this gives is dropped. All
    /// three are multiples of the granularity. The buffer is virtual memory of the device; it stays allocated meanwhile.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NotShareable`] for memory of another kind, [`Error::ForeignObject`](crate::Error::ForeignObject) for
    /// another device's; [`MemoryError::MulticastUnaligned`], [`MemoryError::MulticastRange`];
    /// [`MemoryError::MulticastState`] before all devices have been added, and where something is bound there; the driver's.
    pub fn bind<T: Pod>(
        &self,
        offset: u64,
        buffer: &Buffer<T>,
        buffer_offset: u64,
        bytes: u64,
    ) -> Result<MulticastBinding> {
        let inner = &self.inner;
        inner.device.expect_own(buffer.device(), "buffer")?;
        let (memory, start) = buffer.memory();
        if memory.kind() != MemoryKind::Virtual {
            return Err(MemoryError::NotShareable {
                memory: memory.kind().words(),
                address: memory.address(),
                remedy: "bind memory that was allocated with MemoryKind::Virtual",
            }
            .into());
        }
        let place = MulticastPlace { offset, memory_offset: start + buffer_offset, bytes };
        inner.check(place, memory.allocation().bytes)?;
        // One at a time: the driver looks for what is bound already.
        let mut bindings = inner.lock();
        let mut shareable = None;
        inner.object.bind(place, &**memory, &mut || {
            let shared = Shareable::whole(&inner.device, memory)?;
            let bytes = shared.handle().to_bytes();
            shareable = Some(shared);
            bytes
        })?;
        let bound = Arc::new(Bound {
            unbind: Unbind { object: Arc::clone(&inner.object), place },
            _memory: Arc::clone(memory),
            _shareable: shareable,
            inner: Arc::clone(inner),
        });
        bindings.retain(|bound| bound.strong_count() > 0);
        bindings.push(Arc::downgrade(&bound));
        Ok(MulticastBinding { bound })
    }

    /// Maps the whole range, once all members have bound their memory.
    ///
    /// # Errors
    ///
    /// [`MemoryError::MulticastState`] before all devices have been added; the driver's.
    pub fn map(&self) -> Result<MulticastMapping> {
        let inner = &self.inner;
        let bindings = inner.lock().iter().filter_map(Weak::upgrade).collect();
        let mapping = inner.object.map(&|handle| {
            let handle = SharedHandle::from_bytes(handle)?;
            let buffer = handle.open::<u8>(&inner.device)?;
            let range = AddressRange { address: buffer.address().address(), bytes: handle.bytes() };
            Ok((Arc::clone(buffer.memory().0), range))
        })?;
        Ok(MulticastMapping {
            mapping,
            bytes: inner.shape.bytes,
            _bindings: bindings,
            _inner: Arc::clone(inner),
        })
    }
}

fn require(device: &Device) -> Result<()> {
    if device.has_multicast() {
        return Ok(());
    }
    Err(MemoryError::MulticastUnsupported {
        device: device.properties().name.clone(),
        reason: "the driver's attribute for it is 0 (it takes several GPUs behind one NVSwitch)",
    }
    .into())
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Bound>>> {
        // Each change is a push or a retain: a panic elsewhere leaves the list whole.
        self.bindings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, place: MulticastPlace, memory_bytes: u64) -> Result<(), MemoryError> {
        let MulticastPlace { offset, memory_offset, bytes } = place;
        let granularity = self.granularity;
        for (what, value) in [("offset", offset), ("buffer's offset", memory_offset), ("length", bytes)] {
            if !value.is_multiple_of(granularity) {
                return Err(MemoryError::MulticastUnaligned { what, value, granularity });
            }
        }
        let ranges =
            [("multicast object", offset, self.shape.bytes), ("buffer", memory_offset, memory_bytes)];
        for (what, offset, end) in ranges {
            if bytes == 0 || offset.checked_add(bytes).is_none_or(|sum| sum > end) {
                return Err(MemoryError::MulticastRange { what, offset, bytes, end });
            }
        }
        Ok(())
    }
}

/// What keeps a multicast object shared: see [`Multicast::share`].
#[derive(Clone, Debug)]
pub struct SharedMulticast {
    _publication: Arc<Publication>,
    message: Vec<u8>,
}

impl SharedMulticast {
    /// What another process opens.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.message.clone()
    }
}

/// Bound memory. Fields are dropped in their order: unbound first, then the memory, the object last.
#[derive(Debug)]
struct Bound {
    unbind: Unbind,
    _memory: Arc<dyn DriverMemory>,
    _shareable: Option<Shareable>,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Unbind {
    object: Arc<dyn DriverMulticast>,
    place: MulticastPlace,
}

impl Drop for Unbind {
    fn drop(&mut self) {
        self.object.unbind(self.place);
    }
}

/// Memory bound to a multicast object, until this is dropped and every mapping that was made over it is.
#[derive(Debug)]
pub struct MulticastBinding {
    bound: Arc<Bound>,
}

impl MulticastBinding {
    /// Where in the object it is bound.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.bound.unbind.place.offset
    }

    /// How much of the object it covers.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bound.unbind.place.bytes
    }

    /// The object that it is bound to.
    #[must_use]
    pub fn object(&self) -> Multicast {
        Multicast { inner: Arc::clone(&self.bound.inner) }
    }
}

/// A mapped multicast range, unmapped on drop.
#[derive(Debug)]
pub struct MulticastMapping {
    // Dropped in this order: unmapped, unbound, released.
    mapping: Box<dyn DriverMulticastMapping>,
    bytes: u64,
    _bindings: Vec<Arc<Bound>>,
    _inner: Arc<Inner>,
}

impl MulticastMapping {
    /// The address that stands for what is bound at `offset`, for `multimem_*` accesses alone; `None` past the end. The
    /// range is mapped whole and from its beginning, since the hardware maps no other way: a binding's address is shifted
    /// by its offset.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<Global<u8>> {
        // SAFETY: an address inside a range that is mapped as the device's global memory.
        (offset < self.bytes).then(|| unsafe { Global::from_address(self.mapping.address() + offset) })
    }
}
