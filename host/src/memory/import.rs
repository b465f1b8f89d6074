//! Mapping what another process has exported: the kinds of handle one after the other.

use std::sync::Arc;

use super::claim::Claim;
use super::export::{Export, Object};
use super::handle::{Offer, Origin, Part};
use super::identity::{self, ProcessId};
use super::mapping::{self, Key, Mapping};
use crate::device::Device;
use crate::device::driver::{DriverMemory, DriverMulticast, MulticastShape, Payload};
use crate::env::HostId;
use crate::error::{Attempts, HandleKind, MemoryError, Result};

/// Who imports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Here {
    pub(super) host: HostId,
    pub(super) process: ProcessId,
}

impl Here {
    fn new() -> Result<Self> {
        Ok(Self { host: identity::host()?, process: identity::process()? })
    }
}

/// The allocation that `part` is of, mapped for `device`; its address is the allocation's.
pub(super) fn memory(device: &Device, part: &Part) -> Result<Arc<dyn DriverMemory>> {
    Ok(memory_at(device, part, Here::new()?)?)
}

/// As [`memory`], as another process would.
pub(super) fn memory_at(device: &Device, part: &Part, here: Here) -> Result<Arc<Mapping>> {
    let origin = &part.origin;
    if origin.process == here.process {
        return own_memory(device, part).map(Arc::new);
    }
    let key = Key::new(device, origin.process, origin.ticket.export);
    mapping::once(key, || {
        let map = |payload| device.driver().import(payload, part.allocation_bytes);
        let (memory, claim) = by_offers(origin, here, map)?;
        Ok(Mapping::imported(device, memory, key, claim))
    })
}

/// The driver cannot import what the same process has exported, and need not: the memory is mapped.
fn own_memory(device: &Device, part: &Part) -> Result<Mapping> {
    let export = own_export(&part.origin)?;
    match export.object() {
        Object::Memory(memory) if export.device().is_same(device) => {
            Ok(Mapping::own(device, Arc::clone(memory)))
        }
        Object::Memory(memory) => Ok(Mapping::own(device, device.driver().reach(memory)?)),
        Object::Multicast(_) => Err(refused("the handle is of a multicast object")),
    }
}

fn own_export(origin: &Origin) -> Result<Arc<Export>> {
    let gone =
        || MemoryError::ExporterGone { detail: "this process has dropped the export itself".to_owned() };
    let export = Export::find(origin.ticket.export).ok_or_else(gone)?;
    if export.admits(&origin.ticket.token) {
        return Ok(export);
    }
    Err(refused("the handle's token is not the export's: take the handle anew"))
}

fn refused(reason: &'static str) -> crate::Error {
    MemoryError::HandOverRefused { reason }.into()
}

/// A view of an exported multicast object, and what keeps the object exported.
pub(super) fn multicast(
    device: &Device,
    origin: &Origin,
    shape: MulticastShape,
) -> Result<(Arc<dyn DriverMulticast>, Option<Claim>)> {
    let import = |payload| device.driver().import_multicast(payload, shape);
    let here = Here::new()?;
    if origin.process != here.process {
        return by_offers(origin, here, import);
    }
    // Another device of the process that created it: by a descriptor as well, without a socket.
    let export = own_export(origin)?;
    let duplicate = |file: std::os::fd::BorrowedFd<'_>| {
        let failed = |source| crate::Error::system("duplicating a descriptor", source);
        file.try_clone_to_owned().map(Payload::PosixFd).map_err(failed)
    };
    let own = export.descriptor().map(duplicate);
    let fabric = || origin.offers.iter().find_map(|offer| by_driver(offer).map(Ok));
    let payload =
        own.or_else(fabric).ok_or_else(|| refused("it offers no handle that this process can open"))?;
    Ok((import(payload?)?, None))
}

/// What the driver opens by itself.
fn by_driver(offer: &Offer) -> Option<Payload> {
    match offer {
        Offer::Fabric(bytes) => Some(Payload::Fabric((*bytes).into())),
        Offer::CudaIpc(bytes) => Some(Payload::CudaIpc((*bytes).into())),
        Offer::PosixFd => None,
    }
}

/// Imports by the first kind of handle that works.
fn by_offers<T>(
    origin: &Origin,
    here: Here,
    import: impl Fn(Payload) -> Result<T>,
) -> Result<(T, Option<Claim>)> {
    // Claimed before anything is opened: no driver can be trusted to notice that a handle's memory has been freed.
    let claim = if origin.host == here.host { Some(Claim::new(origin.ticket)?) } else { None };
    let mut attempts = Attempts::default();
    for offer in &origin.offers {
        let kind = offer.kind();
        let payload = match (&claim, by_driver(offer)) {
            (None, _) if !kind.leaves_host() => Err(other_host(kind, origin, here).into()),
            (_, Some(payload)) => Ok(payload),
            (Some(claim), None) => claim.descriptor().map(Payload::PosixFd),
            (None, None) => Err(other_host(kind, origin, here).into()),
        };
        match payload.and_then(&import) {
            // A descriptor keeps what it is of: the connection need not.
            Ok(object) => return Ok((object, claim.filter(|_| kind != HandleKind::PosixFd))),
            Err(error) => {
                tracing::debug!(%kind, %error, "a handle could not be opened");
                attempts.push(kind, error);
            }
        }
    }
    Err(MemoryError::NoHandleWorked { operation: "map another process' memory", attempts }.into())
}

fn other_host(kind: HandleKind, origin: &Origin, here: Here) -> MemoryError {
    MemoryError::OtherHost { kind, exporter: origin.host.to_string(), importer: here.host.to_string() }
}
