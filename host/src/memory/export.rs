//! What this process has exported, and how it is found again.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use subtle::ConstantTimeEq;

use super::handle::{Offer, Ticket};
use super::identity;
use super::service::Service;
use crate::device::driver::{AllocationId, DriverMemory, DriverMulticast, Payload};
use crate::device::{Device, HandleKinds};
use crate::env;
use crate::error::{Attempts, Error, HandleKind, MemoryError, Result};

/// By which kind of handle to share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HandleChoice {
    /// By all that work, in the order fabric, file descriptor, CUDA IPC; or by the one that `WARPWIRE_HANDLE_TYPE` names.
    #[default]
    Auto,
    /// By this one, or not at all.
    Only(HandleKind),
}

impl HandleChoice {
    fn forced(self) -> Result<Option<HandleKind>> {
        match self {
            Self::Auto => env::handle_type(),
            Self::Only(kind) => Ok(Some(kind)),
        }
    }
}

/// What can be exported.
#[derive(Clone, Debug)]
pub(super) enum Object {
    Memory(Arc<dyn DriverMemory>),
    Multicast(Arc<dyn DriverMulticast>),
}

impl Object {
    fn id(&self) -> AllocationId {
        match self {
            Self::Memory(memory) => memory.allocation().id,
            Self::Multicast(object) => object.id(),
        }
    }

    fn handle_kinds(&self) -> HandleKinds {
        match self {
            Self::Memory(memory) => memory.handle_kinds(),
            Self::Multicast(object) => object.handle_kinds(),
        }
    }

    fn export(&self, kind: HandleKind) -> Result<Payload> {
        match self {
            Self::Memory(memory) => memory.export(kind),
            Self::Multicast(object) => object.export(kind),
        }
    }
}

/// An exported object, with its handles. It is kept by its [`Publication`], and by the service for each process that maps
/// it by a handle that keeps nothing itself.
#[derive(Debug)]
pub(super) struct Export {
    ticket: Ticket,
    payloads: Vec<Payload>,
    object: Object,
    device: Device,
}

/// What makes an export known: from its drop on, nobody new is given the object.
#[derive(Debug)]
pub(super) struct Publication {
    _entry: Entry,
    export: Arc<Export>,
}

impl Publication {
    /// The publication of `object`; the same one where it is published by the same choice already.
    pub(super) fn of(device: &Device, object: &Object, choice: HandleChoice) -> Result<Arc<Self>> {
        let forced = choice.forced()?;
        if object.handle_kinds().is_empty() {
            return Err(impossible(device, object, forced));
        }
        let key = (object.id(), forced);
        // Held while the driver makes the handles, so that two threads do not both make them.
        let mut registry = registry();
        if let Some(known) = registry.by_object.get(&key).and_then(|(_, known)| known.upgrade()) {
            return Ok(known);
        }
        let payloads = payloads(device, object, forced)?;
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed);
        let service = Service::global()?.name();
        let ticket = Ticket { service, export: id, token: identity::random()? };
        let (object, device) = (object.clone(), device.clone());
        let export = Arc::new(Export { ticket, payloads, object, device });
        registry.by_id.insert(id, Arc::downgrade(&export));
        let publication = Arc::new(Self { _entry: Entry { id, key }, export });
        registry.by_object.insert(key, (id, Arc::downgrade(&publication)));
        Ok(publication)
    }

    pub(super) fn export(&self) -> &Export {
        &self.export
    }
}

impl Export {
    /// The export of this number, if it is published.
    pub(super) fn find(id: u64) -> Option<Arc<Self>> {
        registry().by_id.get(&id).and_then(Weak::upgrade)
    }

    pub(super) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Whether this is the token of the handles that were given out. Takes the same time for every wrong one.
    pub(super) fn admits(&self, token: &[u8; 32]) -> bool {
        self.ticket.token.ct_eq(token).into()
    }

    pub(super) fn offers(&self) -> impl Iterator<Item = Offer> {
        self.payloads.iter().map(Offer::of)
    }

    /// What is handed over the socket, where that is offered.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.payloads.iter().find_map(|payload| match payload {
            Payload::PosixFd(file) => Some(OwnedFd::as_fd(file)),
            _ => None,
        })
    }

    pub(super) fn object(&self) -> &Object {
        &self.object
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }
}

/// The handles of `object`: of the forced kind alone, or of each kind that works, of which there is at least one.
fn payloads(device: &Device, object: &Object, forced: Option<HandleKind>) -> Result<Vec<Payload>> {
    let possible = object.handle_kinds();
    if let Some(kind) = forced {
        if !possible.contains(kind.into()) {
            return Err(impossible(device, object, forced));
        }
        return Ok(vec![object.export(kind)?]);
    }
    let (mut payloads, mut attempts) = (Vec::new(), Attempts::default());
    for kind in HandleKind::ALL.into_iter().filter(|&kind| possible.contains(kind.into())) {
        match device.try_handle(kind).and_then(|()| object.export(kind).map_err(Arc::new)) {
            Ok(payload) => payloads.push(payload),
            Err(error) => attempts.push(kind, error),
        }
    }
    if payloads.is_empty() {
        return Err(MemoryError::NoHandleWorked { operation: "share the memory", attempts }.into());
    }
    Ok(payloads)
}

/// The error of an object that has no handle of the forced kind, or none at all.
fn impossible(device: &Device, object: &Object, forced: Option<HandleKind>) -> Error {
    // The device's own reason first: the object was made without this kind because of it.
    if let Some(kind) = forced
        && let Err(reason) = device.try_handle(kind)
    {
        return MemoryError::HandleUnavailable { kind, device: device.properties().name.clone(), reason }
            .into();
    }
    match object {
        Object::Memory(memory) => MemoryError::NotShareable {
            memory: memory.kind().words(),
            address: memory.address(),
            remedy: memory.kind().sharing_remedy(),
        },
        Object::Multicast(_) => MemoryError::NotShareable {
            memory: "a multicast object",
            address: 0,
            remedy: "share it from the process that created it, by a kind of handle that the device makes",
        },
    }
    .into()
}

type Key = (AllocationId, Option<HandleKind>);

/// What is exported. It keeps nothing alive.
#[derive(Debug, Default)]
struct Registry {
    by_id: HashMap<u64, Weak<Export>>,
    by_object: HashMap<Key, (u64, Weak<Publication>)>,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
    // Each change is an insertion or a removal: a panic elsewhere leaves both maps whole.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A publication's places in the registry, given up on drop.
#[derive(Debug)]
struct Entry {
    id: u64,
    key: Key,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut registry = registry();
        registry.by_id.remove(&self.id);
        // A later publication of the same object may have taken the place.
        if registry.by_object.get(&self.key).is_some_and(|(id, _)| *id == self.id) {
            registry.by_object.remove(&self.key);
        }
    }
}
