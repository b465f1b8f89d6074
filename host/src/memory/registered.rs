//! Memory that ranks tell each other of.

use std::sync::Arc;

use bitflags::bitflags;
use serde::{Deserialize, Serialize};
use warpwire_device::abi::{Global, Pod};

use super::export::HandleChoice;
use super::handle::{Part, SharedHandle};
use super::import;
use super::rdma::Regions;
use super::region::{Region, RegionKey};
use super::shareable::Shareable;
use super::wire::{self, Form};
use crate::device::driver::DriverMemory;
use crate::device::{Buffer, Device};
use crate::error::Result;
use crate::verbs::{Adapter, RemoteKey};

bitflags! {
    /// The ways by which peers reach registered memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Transports: u8 {
        /// Mapped into the peer's address space.
        const CUDA_IPC = 1;
        /// Through the owner's process, which places what comes by TCP: the peer maps nothing, and knows the memory by a key.
        const ETHERNET = 2;
        /// By RDMA: the peer's adapter writes it through this rank's.
        const INFINIBAND = 4;
    }
}

/// Memory of this rank, or of a peer that has told of it: where it lies, how long it is, and how it is reached.
///
/// The owner registers it and sends [`RegisteredMemory::serialize`]; the peer's [`RegisteredMemory::deserialize`] maps it,
/// each allocation once, however many registered memories lie in it. A cheap clone.
///
/// Memory registered for [`Transports::ETHERNET`] can be written by peers as long as the owner keeps a clone of this; what
/// comes later is refused.
#[derive(Clone, Debug)]
pub struct RegisteredMemory {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    mapped: Option<Global<u8>>,
    body: Body,
    // Before what keeps the memory: an adapter lets go of it while it is there.
    ways: Ways,
    _kept: Kept,
}

/// How peers reach this rank's own memory besides by mapping it; nothing for a peer's.
#[derive(Debug, Default)]
struct Ways {
    /// Through this process.
    region: Option<Arc<Region>>,
    /// Through its adapters.
    #[cfg_attr(not(feature = "ib"), allow(dead_code, reason = "there are none"))]
    regions: Regions,
}

impl Ways {
    fn key(&self) -> Option<RegionKey> {
        self.region.as_ref().map(|region| region.key())
    }
}

/// What keeps the memory where it is.
#[derive(Debug)]
#[expect(dead_code, reason = "kept for their drops")]
enum Kept {
    Owned(Arc<dyn DriverMemory>),
    Shared(Shareable),
    Mapped(Arc<dyn DriverMemory>),
    /// The owner's, in its process.
    Elsewhere,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Body {
    /// In the owner's process.
    address: u64,
    bytes: u64,
    transports: u8,
    part: Option<Part>,
    region: Option<RegionKey>,
    /// By adapter, where the transports include InfiniBand.
    keys: Vec<RemoteKey>,
}

impl Body {
    fn check(&self) -> Result<(), &'static str> {
        let transports =
            Transports::from_bits(self.transports).ok_or("it names a transport that is not known")?;
        if self.bytes == 0 || self.address.checked_add(self.bytes).is_none() {
            return Err("the memory's length cannot be");
        }
        if self.region.is_some() != transports.contains(Transports::ETHERNET) {
            return Err("the key does not go with the transports");
        }
        if self.keys.is_empty() == transports.contains(Transports::INFINIBAND) {
            return Err("its keys do not go with the transports");
        }
        match &self.part {
            Some(part) if part.bytes != self.bytes => Err("its two lengths differ"),
            Some(part) if transports.contains(Transports::CUDA_IPC) => part.check(),
            None if !transports.contains(Transports::CUDA_IPC) => Ok(()),
            _ => Err("the handle does not go with the transports"),
        }
    }
}

impl RegisteredMemory {
    /// Registers a buffer, which stays allocated as long as this is kept.
    ///
    /// # Errors
    ///
    /// As for [`Shareable::of`], where the transports include [`Transports::CUDA_IPC`]. Where they include
    /// [`Transports::INFINIBAND`], as for [`Adapter::for_index`] with the device's number, and
    /// [`VerbsError::Registration`](crate::error::VerbsError::Registration).
    pub fn of<T: Pod>(buffer: &Buffer<T>, transports: Transports) -> Result<Self> {
        let adapter = if transports.contains(Transports::INFINIBAND) {
            Some(Adapter::for_index(buffer.device().properties().ordinal as usize)?)
        } else {
            None
        };
        Self::with(buffer, transports, adapter.as_ref())
    }

    /// Registers a buffer for [`Transports::INFINIBAND`] with a certain adapter, and for `others`.
    ///
    /// # Errors
    ///
    /// As for [`RegisteredMemory::of`].
    pub fn of_adapter<T: Pod>(buffer: &Buffer<T>, others: Transports, adapter: &Adapter) -> Result<Self> {
        Self::with(buffer, others | Transports::INFINIBAND, Some(adapter))
    }

    fn with<T: Pod>(buffer: &Buffer<T>, transports: Transports, adapter: Option<&Adapter>) -> Result<Self> {
        let address = buffer.address().cast();
        let list = || Region::list(buffer.device(), buffer.memory().0, address.address(), buffer.bytes());
        let region = transports.contains(Transports::ETHERNET).then(list).transpose()?;
        let regions =
            adapter.map(|adapter| Regions::register(buffer, adapter)).transpose()?.unwrap_or_default();
        let ways = Ways { region, regions };
        if transports.contains(Transports::CUDA_IPC) {
            let shareable = Shareable::of(buffer, HandleChoice::Auto)?;
            return Ok(Self::shared(address, shareable, transports, ways));
        }
        let body = Body {
            address: address.address(),
            bytes: buffer.bytes(),
            transports: transports.bits(),
            part: None,
            region: ways.key(),
            keys: ways.regions.keys(),
        };
        Ok(Self::new(Some(address), body, ways, Kept::Owned(Arc::clone(buffer.memory().0))))
    }

    /// Registers memory that the program has from elsewhere, for [`Transports::CUDA_IPC`].
    ///
    /// # Errors
    ///
    /// As for [`Shareable::of_address`].
    ///
    /// # Safety
    ///
    /// As for [`Shareable::of_address`].
    pub unsafe fn of_address(device: &Device, address: Global<u8>, bytes: u64) -> Result<Self> {
        // SAFETY: the caller's contract.
        let shareable = unsafe { Shareable::of_address(device, address, bytes, HandleChoice::Auto) }?;
        Ok(Self::shared(address, shareable, Transports::CUDA_IPC, Ways::default()))
    }

    fn shared(address: Global<u8>, shareable: Shareable, transports: Transports, ways: Ways) -> Self {
        let part = shareable.handle().part().clone();
        let body = Body {
            address: address.address(),
            bytes: part.bytes,
            transports: transports.bits(),
            part: Some(part),
            region: ways.key(),
            keys: ways.regions.keys(),
        };
        Self::new(Some(address), body, ways, Kept::Shared(shareable))
    }

    fn new(mapped: Option<Global<u8>>, body: Body, ways: Ways, kept: Kept) -> Self {
        Self { inner: Arc::new(Inner { mapped, body, ways, _kept: kept }) }
    }

    /// What a peer is told.
    ///
    /// # Errors
    ///
    /// None that is known; the encoder's.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        wire::seal(Form::Registered, &self.inner.body)
    }

    /// The memory of a peer that has sent `bytes`, mapped for `device` where it was registered for
    /// [`Transports::CUDA_IPC`].
    ///
    /// # Errors
    ///
    /// As for [`SharedHandle::from_bytes`] and [`SharedHandle::open`].
    pub fn deserialize(device: &Device, bytes: &[u8]) -> Result<Self> {
        let body: Body = wire::open(Form::Registered, bytes)?;
        body.check().map_err(|reason| wire::malformed(Form::Registered, bytes.len(), reason.to_owned()))?;
        let Some(part) = &body.part else {
            return Ok(Self::new(None, body, Ways::default(), Kept::Elsewhere));
        };
        let memory = import::memory(device, part)?;
        // SAFETY: `part` lies in the allocation (`Body::check`), which is mapped from there on as global memory.
        let mapped = Some(unsafe { Global::from_address(memory.address() + part.offset) });
        Ok(Self::new(mapped, body, Ways::default(), Kept::Mapped(memory)))
    }

    /// Where this process reaches it; `None` for a peer's that is not mapped here.
    #[must_use]
    pub fn address(&self) -> Option<Global<u8>> {
        self.inner.mapped
    }

    /// Where it lies in its owner's address space.
    #[must_use]
    pub fn owner_address(&self) -> u64 {
        self.inner.body.address
    }

    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner.body.bytes
    }

    /// How it is reached.
    #[must_use]
    pub fn transports(&self) -> Transports {
        Transports::from_bits_retain(self.inner.body.transports)
    }

    /// This process' own memory, where it is registered for [`Transports::ETHERNET`].
    pub(crate) fn region(&self) -> Option<&Arc<Region>> {
        self.inner.ways.region.as_ref()
    }

    /// By what its owner finds it, where it is registered for [`Transports::ETHERNET`].
    pub(crate) fn region_key(&self) -> Option<RegionKey> {
        self.inner.body.region
    }

    /// Its handle, where it has one.
    #[must_use]
    pub fn handle(&self) -> Option<SharedHandle> {
        self.inner.body.part.clone().map(SharedHandle::new)
    }

    /// What this rank's adapters know it by; nothing for a peer's.
    #[cfg(feature = "ib")]
    pub(crate) fn regions(&self) -> &Regions {
        &self.inner.ways.regions
    }

    /// What the owner's adapter with that GUID knows it by.
    #[cfg(feature = "ib")]
    pub(crate) fn remote_key(&self, adapter: u64) -> Option<u32> {
        self.inner.body.keys.iter().find(|key| key.adapter == adapter).map(|key| key.key)
    }

    /// Tells this memory from every other; clones are the same.
    #[cfg(feature = "ib")]
    pub(crate) fn identity(&self) -> MemoryIdentity {
        MemoryIdentity(Arc::downgrade(&self.inner))
    }
}

/// See [`RegisteredMemory::identity`]. Keeps nothing, and stays unique as long as it is kept.
#[cfg(feature = "ib")]
#[derive(Clone, Debug)]
pub(crate) struct MemoryIdentity(std::sync::Weak<Inner>);

#[cfg(feature = "ib")]
impl MemoryIdentity {
    /// Whether both are of one memory.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// Whether a clone is still there.
    pub(crate) fn is_live(&self) -> bool {
        self.0.strong_count() > 0
    }
}
