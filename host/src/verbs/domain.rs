//! Protection domains: what may be used together.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ibverbs_sys as ffi;

use super::context::Context;
use super::region::Region;
use crate::error::Result;

/// A protection domain of an open adapter, and the regions that peers may write in it.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(super) raw: NonNull<ffi::ibv_pd>,
    pub(super) context: Arc<Context>,
    /// By remote key. Peers name a word by the key that they were given.
    regions: Mutex<HashMap<u32, Weak<Region>>>,
}

// SAFETY: libibverbs allows any thread to call any verb on any object; it is freed once, on drop.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Domain {
    pub(super) fn new(context: Arc<Context>) -> Result<Self> {
        // SAFETY: an open context.
        let raw = unsafe { (context.verbs.alloc_pd)(context.raw.as_ptr()) };
        let raw = NonNull::new(raw).ok_or_else(|| context.failed("making a protection domain", ""))?;
        Ok(Self { raw, context, regions: Mutex::default() })
    }

    /// The adapter's name.
    pub(crate) fn adapter(&self) -> &str {
        &self.context.name
    }

    /// The live region of that remote key.
    pub(crate) fn region(&self, remote_key: u32) -> Option<Arc<Region>> {
        self.lock().get(&remote_key).and_then(Weak::upgrade)
    }

    pub(super) fn remember(&self, region: &Arc<Region>) {
        self.lock().insert(region.remote_key(), Arc::downgrade(region));
    }

    /// Called when the region's last owner is gone. A new region may have got the key meanwhile.
    pub(super) fn forget(&self, remote_key: u32) {
        let mut regions = self.lock();
        if regions.get(&remote_key).is_some_and(|region| region.strong_count() == 0) {
            regions.remove(&remote_key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Weak<Region>>> {
        // Each change is one insertion or removal: a panic elsewhere leaves the map whole.
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: live, freed only here; regions and queue pairs hold it by `Arc`, and are gone.
        let code = unsafe { (self.context.verbs.dealloc_pd)(self.raw.as_ptr()) };
        if code != 0 {
            tracing::warn!(adapter = %self.context.name, code, "freeing a protection domain failed");
        }
    }
}
