//! What a device can do that only a trial tells: tried once, and remembered.

use std::sync::{Arc, OnceLock};

use super::driver::MemoryDriver;
use super::{Device, HandleKinds};
use crate::error::{Error, HandleKind, Result};

/// The answers so far.
#[derive(Debug, Default)]
pub(super) struct Capabilities {
    handles: [OnceLock<Option<Arc<Error>>>; HandleKind::ALL.len()],
    multicast: OnceLock<bool>,
}

impl Capabilities {
    /// Fails with the trial's error where the device makes no such handles.
    fn handle(&self, driver: &dyn MemoryDriver, kind: HandleKind) -> Result<(), Arc<Error>> {
        let tried = self.handles[kind as usize].get_or_init(|| {
            let failure = driver.probe_handle(kind).err();
            match &failure {
                None => tracing::debug!(%kind, "handles work"),
                Some(error) => tracing::debug!(%kind, %error, "handles do not work"),
            }
            failure.map(Arc::new)
        });
        tried.clone().map_or(Ok(()), Err)
    }
}

impl Device {
    /// Whether handles of this kind can be made, found out by making one, once.
    ///
    /// # Errors
    ///
    /// What the trial ended with.
    pub fn try_handle(&self, kind: HandleKind) -> Result<(), Arc<Error>> {
        self.inner.capabilities.handle(self.driver(), kind)
    }

    /// The kinds of handle that can be made.
    #[must_use]
    pub fn handle_kinds(&self) -> HandleKinds {
        HandleKind::ALL
            .into_iter()
            .filter(|&kind| self.try_handle(kind).is_ok())
            .map(HandleKinds::from)
            .collect()
    }

    /// Of them, those that virtual memory can be exported as.
    pub(crate) fn virtual_handles(&self) -> HandleKinds {
        let kinds = [HandleKind::Fabric, HandleKind::PosixFd].into_iter();
        kinds.filter(|&kind| self.try_handle(kind).is_ok()).map(HandleKinds::from).collect()
    }

    /// Whether the device does multicast (NVLink SHARP), asked once.
    #[must_use]
    pub fn has_multicast(&self) -> bool {
        *self.inner.capabilities.multicast.get_or_init(|| self.driver().probe_multicast())
    }
}
