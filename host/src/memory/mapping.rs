//! Mapped allocations of other processes: each once, for as long as anything uses it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use super::claim::Claim;
use super::identity::ProcessId;
use crate::device::driver::{Allocated, DriverMemory};
use crate::device::{Device, MemoryKind};
use crate::error::Result;

/// A whole allocation, mapped for a device.
#[derive(Debug)]
pub(super) struct Mapping {
    // Dropped in this order: unmapped before its owner hears of it, and the device last.
    memory: Arc<dyn DriverMemory>,
    _claim: Option<Claim>,
    _entry: Option<Entry>,
    _device: Device,
}

impl Mapping {
    /// Memory of another process, found again by `key`; the claim keeps its owner from freeing it.
    pub(super) fn imported(
        device: &Device,
        memory: Arc<dyn DriverMemory>,
        key: Key,
        claim: Option<Claim>,
    ) -> Self {
        Self { memory, _claim: claim, _entry: Some(Entry(key)), _device: device.clone() }
    }

    /// This process' own memory.
    pub(super) fn own(device: &Device, memory: Arc<dyn DriverMemory>) -> Self {
        Self { memory, _claim: None, _entry: None, _device: device.clone() }
    }
}

impl DriverMemory for Mapping {
    fn address(&self) -> u64 {
        self.memory.address() - self.memory.allocation().offset
    }

    fn host_pointer(&self) -> *mut u8 {
        let pointer = self.memory.host_pointer();
        if pointer.is_null() {
            pointer
        } else {
            pointer.wrapping_sub(self.memory.allocation().offset as usize)
        }
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Imported
    }

    fn allocation(&self) -> Allocated {
        Allocated { offset: 0, ..self.memory.allocation() }
    }
}

/// Which allocation, for which device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The device's identity. Each mapping holds its device, so while one is there no other device has the number.
    device: usize,
    process: ProcessId,
    export: u64,
}

impl Key {
    pub(super) fn new(device: &Device, process: ProcessId, export: u64) -> Self {
        Self { device: device.identity(), process, export }
    }
}

/// An allocation's place. Locked while the allocation is being mapped, so that whoever wants it meanwhile waits for it.
type Place = Arc<Mutex<Weak<Mapping>>>;

fn places() -> MutexGuard<'static, HashMap<Key, Place>> {
    static PLACES: LazyLock<Mutex<HashMap<Key, Place>>> = LazyLock::new(Mutex::default);
    // Each change is an insertion or a removal: a panic elsewhere leaves the map whole.
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The allocation of `key`, mapped by `map` where it is not mapped already.
pub(super) fn once(key: Key, map: impl FnOnce() -> Result<Mapping>) -> Result<Arc<Mapping>> {
    let place = Arc::clone(places().entry(key).or_default());
    let mapped = {
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        match place.upgrade() {
            Some(mapping) => Ok(mapping),
            None => map().map(|mapping| {
                let mapping = Arc::new(mapping);
                *place = Arc::downgrade(&mapping);
                mapping
            }),
        }
    };
    drop(place);
    if mapped.is_err() {
        clear(key);
    }
    mapped
}

/// A mapping's place, given up on drop.
#[derive(Debug)]
struct Entry(Key);

impl Drop for Entry {
    fn drop(&mut self) {
        clear(self.0);
    }
}

/// Removes a place that holds no mapping and that nobody is about to fill.
fn clear(key: Key) {
    let mut places = places();
    let empty = |place: &Place| {
        // Clones are made under the lock that is held here: one reference means that nobody else has one.
        Arc::strong_count(place) == 1
            && place.lock().unwrap_or_else(PoisonError::into_inner).strong_count() == 0
    };
    if places.get(&key).is_some_and(empty) {
        places.remove(&key);
    }
}

/// How many places there are.
#[cfg(test)]
pub(super) fn places_of(process: ProcessId) -> usize {
    places().keys().filter(|key| key.process == process).count()
}
