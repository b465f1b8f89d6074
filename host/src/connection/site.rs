//! Where one end of a connection is.

use serde::{Deserialize, Serialize};

use crate::bootstrap::{DomainId, HostId};
use crate::device::{Device, DeviceKind, DeviceUuid, PciAddress};
use crate::error::Result;
use crate::memory::{ProcessId, process_id};

/// A rank's place in the world, as it tells others: by names that mean the same everywhere. A GPU's number is none: two
/// processes with different lists of visible devices number the same GPU differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Its host.
    pub host: HostId,
    /// Whose memory it can map.
    pub domain: DomainId,
    /// Its process; no two have the same.
    pub process: ProcessId,
    /// The kind of its device.
    pub kind: DeviceKind,
    /// Its device.
    pub device: DeviceUuid,
    /// Where its device is plugged in, for those that are.
    pub pci: Option<PciAddress>,
    /// Its device's name, for people.
    pub name: String,
}

impl Site {
    /// This process with `device`, on the host and in the domain that the bootstrap knows it by.
    pub(crate) fn here(device: &Device, host: HostId, domain: DomainId) -> Result<Self> {
        let properties = device.properties();
        Ok(Self {
            host,
            domain,
            process: process_id()?,
            kind: properties.kind,
            device: properties.uuid,
            pci: properties.pci,
            name: properties.name.clone(),
        })
    }

    /// Whether both have one device.
    #[must_use]
    pub fn shares_device(&self, other: &Self) -> bool {
        (self.host, self.device) == (other.host, other.device)
    }
}
