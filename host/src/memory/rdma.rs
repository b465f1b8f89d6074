//! Memory that adapters reach.

use warpwire_device::abi::Pod;

use crate::device::Buffer;
use crate::error::Result;
use crate::verbs::{Adapter, RemoteKey};

/// What this rank's adapters know some memory by.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    #[cfg(feature = "ib")]
    list: Vec<std::sync::Arc<crate::verbs::Region>>,
}

#[cfg(not(feature = "ib"))]
impl Regions {
    /// There is no adapter to register with.
    pub(super) fn register<T: Pod>(_buffer: &Buffer<T>, _adapter: &Adapter) -> Result<Self> {
        Err(crate::error::VerbsError::Disabled.into())
    }

    /// None.
    pub(super) fn keys(&self) -> Vec<RemoteKey> {
        vec![]
    }
}

#[cfg(feature = "ib")]
pub(crate) use present::Owned;

#[cfg(feature = "ib")]
mod present {
    use std::sync::Arc;

    use super::{Adapter, Buffer, Pod, Regions, RemoteKey, Result};
    use crate::device::driver::DriverMemory;
    use crate::device::{AddressRange, Device, DeviceKind, MemoryKind};
    use crate::verbs::{Domain, Placement, Region, Source};

    /// What keeps a region's memory, and writes words in it.
    #[derive(Debug)]
    pub(crate) struct Owned {
        pub(crate) device: Device,
        memory: Arc<dyn DriverMemory>,
    }

    impl Owned {
        /// Where the host reaches an address of it; `None` where it does not.
        pub(crate) fn host_pointer(&self, address: u64) -> Option<*mut u8> {
            let base = self.memory.host_pointer();
            let offset = usize::try_from(address.checked_sub(self.memory.address())?).ok()?;
            (!base.is_null()).then(|| base.wrapping_add(offset))
        }
    }

    impl Regions {
        /// Registers a buffer with an adapter.
        pub(in crate::memory) fn register<T: Pod>(buffer: &Buffer<T>, adapter: &Adapter) -> Result<Self> {
            let device = buffer.device();
            let on_host = device.properties().kind == DeviceKind::Cpu || buffer.kind() == MemoryKind::Host;
            let source = Source {
                address: buffer.address().address(),
                bytes: buffer.bytes(),
                placement: if on_host { Placement::Host } else { Placement::Gpu },
                dma_buf: &|address, bytes| device.driver().dma_buf(AddressRange { address, bytes }),
            };
            let keeper = Arc::new(Owned { device: device.clone(), memory: Arc::clone(buffer.memory().0) });
            // SAFETY: the buffer's memory stays as long as the keeper has it.
            let region = unsafe { Region::register(adapter.domain(), &source, keeper) }?;
            Ok(Self { list: vec![region] })
        }

        /// What peers are told.
        pub(in crate::memory) fn keys(&self) -> Vec<RemoteKey> {
            let key =
                |region: &Arc<Region>| RemoteKey { adapter: region.adapter_guid(), key: region.remote_key() };
            self.list.iter().map(key).collect()
        }

        /// The one of that domain.
        pub(crate) fn of(&self, domain: &Arc<Domain>) -> Option<&Arc<Region>> {
            self.list.iter().find(|region| region.is_of(domain))
        }
    }
}
