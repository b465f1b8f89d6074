//! Handles of memory, as they travel between processes.

use std::fmt;

use serde::{Deserialize, Serialize};
use warpwire_device::abi::Pod;

use super::export::Export;
use super::identity::{self, ProcessId};
use super::import;
use super::wire::{self, Form};
use crate::device::driver::{OPAQUE_BYTES, Payload};
use crate::device::{Buffer, Device, HandleKinds};
use crate::env::HostId;
use crate::error::{HandleKind, MemoryError, Result};

/// Where an export can be claimed.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ticket {
    /// Whom to ask: the number in the socket's name.
    pub(super) service: [u8; 16],
    /// For what.
    pub(super) export: u64,
    /// Proof that the asker was given a handle.
    pub(super) token: [u8; 32],
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A log is read by those who may not have the memory.
        f.debug_struct("Ticket").field("export", &self.export).finish_non_exhaustive()
    }
}

/// 64 bytes that only the driver reads. In halves, since serde has arrays of up to 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Opaque([[u8; 32]; 2]);

impl From<[u8; OPAQUE_BYTES]> for Opaque {
    fn from(bytes: [u8; OPAQUE_BYTES]) -> Self {
        Self(std::array::from_fn(|half| std::array::from_fn(|i| bytes[half * 32 + i])))
    }
}

impl From<Opaque> for [u8; OPAQUE_BYTES] {
    fn from(Opaque(halves): Opaque) -> Self {
        std::array::from_fn(|i| halves[i / 32][i % 32])
    }
}

/// One way to map an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Offer {
    /// By this fabric handle.
    Fabric(Opaque),
    /// By a file descriptor, from the service.
    PosixFd,
    /// By this CUDA IPC handle.
    CudaIpc(Opaque),
}

impl Offer {
    pub(super) fn kind(&self) -> HandleKind {
        match self {
            Self::Fabric(_) => HandleKind::Fabric,
            Self::PosixFd => HandleKind::PosixFd,
            Self::CudaIpc(_) => HandleKind::CudaIpc,
        }
    }

    /// The offer of `payload`.
    pub(super) fn of(payload: &Payload) -> Self {
        match payload {
            Payload::Fabric(bytes) => Self::Fabric((*bytes).into()),
            Payload::PosixFd(_) => Self::PosixFd,
            Payload::CudaIpc(bytes) => Self::CudaIpc((*bytes).into()),
        }
    }
}

/// An export, of memory or of a multicast object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    pub(super) host: HostId,
    pub(super) process: ProcessId,
    pub(super) ticket: Ticket,
    /// In the order in which to try them.
    pub(super) offers: Vec<Offer>,
}

impl Origin {
    pub(super) fn of(export: &Export) -> Result<Self> {
        Ok(Self {
            host: identity::host()?,
            process: identity::process()?,
            ticket: export.ticket(),
            offers: export.offers().collect(),
        })
    }

    /// What a sender of this library's would not have written.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        // Strictly rising: in the order of `HandleKind::ALL`, none twice.
        if !self.offers.is_sorted_by(|a, b| a.kind() < b.kind()) {
            return Err("the kinds of handle are out of order");
        }
        Ok(())
    }

    pub(super) fn kinds(&self) -> HandleKinds {
        self.offers.iter().map(|offer| HandleKinds::from(offer.kind())).collect()
    }
}

/// A part of an exported allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) origin: Origin,
    /// Of the whole allocation, which is what is mapped.
    pub(super) allocation_bytes: u64,
    /// Where in it the part begins.
    pub(super) offset: u64,
    /// Its length.
    pub(super) bytes: u64,
}

impl Part {
    /// As [`Origin::check`].
    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.origin.check()?;
        let end = self.offset.checked_add(self.bytes);
        if self.bytes == 0 || isize::try_from(self.bytes).is_err() {
            return Err("the memory's length cannot be");
        }
        if end.is_none_or(|end| end > self.allocation_bytes) {
            return Err("the memory reaches past the end of its allocation");
        }
        Ok(())
    }
}

/// A handle of some memory of another process: what a [`Shareable`](super::Shareable) gives, and what has travelled.
///
/// It is a number and nothing more: it keeps nothing alive, and may be copied, sent and opened any number of times. Whoever
/// has it can map the memory, so it is a secret like a key: send it where only the job's own processes read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedHandle {
    part: Part,
}

impl SharedHandle {
    pub(super) fn new(part: Part) -> Self {
        Self { part }
    }

    pub(super) fn part(&self) -> &Part {
        &self.part
    }

    /// Reads the wire form.
    ///
    /// # Errors
    ///
    /// [`MemoryError::MalformedHandle`],
    /// [`MemoryError::HandleVersion`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let part: Part = wire::open(Form::Memory, bytes)?;
        part.check().map_err(|reason| wire::malformed(Form::Memory, bytes.len(), reason.to_owned()))?;
        Ok(Self { part })
    }

    /// Its wire form.
    ///
    /// # Errors
    ///
    /// None that is known; the encoder's.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        wire::seal(Form::Memory, &self.part)
    }

    /// The length of the memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.part.bytes
    }

    /// The kinds of handle that it offers.
    #[must_use]
    pub fn kinds(&self) -> HandleKinds {
        self.part.origin.kinds()
    }

    /// Maps the memory, as elements of `T`, so that `device` reaches it. The kinds of handle are tried in their order; an
    /// allocation is mapped once, however many handles of it are opened, until the last buffer of it is dropped.
    ///
    /// Writes by one process are seen by another as writes by one device are by another of its process: through a
    /// release and an acquire at system scope.
    ///
    /// # Errors
    ///
    /// [`MemoryError::ElementSize`], [`Error::Misaligned`](crate::Error::Misaligned);
    /// [`MemoryError::ExporterGone`] where the owner has ended or dropped its
    /// [`Shareable`](super::Shareable); [`MemoryError::NoHandleWorked`], which lists
    /// each kind tried; what went wrong on the way to the owner.
    pub fn open<T: Pod>(&self, device: &Device) -> Result<Buffer<T>> {
        let element_bytes = size_of::<T>();
        let bytes = self.part.bytes;
        // 0 where `T` has no size.
        let len = bytes.checked_div(element_bytes as u64).unwrap_or(0) as usize;
        if len == 0 || !bytes.is_multiple_of(element_bytes as u64) {
            return Err(MemoryError::ElementSize { bytes, element_bytes }.into());
        }
        let memory = import::memory(device, &self.part)?;
        Buffer::of_memory(device, memory, self.part.offset, len)
    }
}
