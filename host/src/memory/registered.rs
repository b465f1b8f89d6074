//! Memory that ranks tell each other of.

use std::sync::Arc;

use bitflags::bitflags;
use serde::{Deserialize, Serialize};
use warpwire_device::abi::{Global, Pod};

use super::export::HandleChoice;
use super::handle::{Part, SharedHandle};
use super::import;
use super::shareable::Shareable;
use super::wire::{self, Form};
use crate::device::driver::DriverMemory;
use crate::device::{Buffer, Device};
use crate::error::Result;

bitflags! {
    /// The ways by which peers reach registered memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Transports: u8 {
        /// Mapped into the peer's address space.
        const CUDA_IPC = 1;
        /// Through the owner's process: the peer knows the address, and maps nothing.
        const ETHERNET = 2;
    }
}

/// Memory of this rank, or of a peer that has told of it: where it lies, how long it is, and how it is reached.
///
/// The owner registers it and sends [`RegisteredMemory::serialize`]; the peer's [`RegisteredMemory::deserialize`] maps it,
/// each allocation once, however many registered memories lie in it. A cheap clone.
#[derive(Clone, Debug)]
pub struct RegisteredMemory {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    mapped: Option<Global<u8>>,
    body: Body,
    _kept: Kept,
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
}

impl Body {
    fn check(&self) -> Result<(), &'static str> {
        let transports =
            Transports::from_bits(self.transports).ok_or("it names a transport that is not known")?;
        if self.bytes == 0 || self.address.checked_add(self.bytes).is_none() {
            return Err("the memory's length cannot be");
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
    /// As for [`Shareable::of`], where the transports include [`Transports::CUDA_IPC`].
    pub fn of<T: Pod>(buffer: &Buffer<T>, transports: Transports) -> Result<Self> {
        let address = buffer.address().cast();
        if transports.contains(Transports::CUDA_IPC) {
            let shareable = Shareable::of(buffer, HandleChoice::Auto)?;
            return Ok(Self::shared(address, shareable, transports));
        }
        let body = Body {
            address: address.address(),
            bytes: buffer.bytes(),
            transports: transports.bits(),
            part: None,
        };
        Ok(Self::new(Some(address), body, Kept::Owned(Arc::clone(buffer.memory().0))))
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
        Ok(Self::shared(address, shareable, Transports::CUDA_IPC))
    }

    fn shared(address: Global<u8>, shareable: Shareable, transports: Transports) -> Self {
        let part = shareable.handle().part().clone();
        let (address, bytes) = (address.address(), part.bytes);
        let body = Body { address, bytes, transports: transports.bits(), part: Some(part) };
        // SAFETY: the caller's own address, which it has as global memory.
        let mapped = Some(unsafe { Global::from_address(address) });
        Self::new(mapped, body, Kept::Shared(shareable))
    }

    fn new(mapped: Option<Global<u8>>, body: Body, kept: Kept) -> Self {
        Self { inner: Arc::new(Inner { mapped, body, _kept: kept }) }
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
        let Some(part) = &body.part else { return Ok(Self::new(None, body, Kept::Elsewhere)) };
        let memory = import::memory(device, part)?;
        // SAFETY: `part` lies in the allocation (`Body::check`), which is mapped from there on as global memory.
        let mapped = Some(unsafe { Global::from_address(memory.address() + part.offset) });
        Ok(Self::new(mapped, body, Kept::Mapped(memory)))
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

    /// Its handle, where it has one.
    #[must_use]
    pub fn handle(&self) -> Option<SharedHandle> {
        self.inner.body.part.clone().map(SharedHandle::new)
    }
}
