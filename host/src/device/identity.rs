//! Which device it is, by names that mean the same in every process.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A device's own name. A GPU's is burnt in (a MIG instance has one of its own) and the same in every process, whatever
/// devices are visible there; each CPU device draws one when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceUuid([u8; 16]);

impl DeviceUuid {
    /// The device of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for DeviceUuid {
    /// As the driver's tools write it, without their prefix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for DeviceUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceUuid({self})")
    }
}

/// Where a device is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PciAddress {
    /// The domain.
    pub domain: u32,
    /// The bus.
    pub bus: u8,
    /// The device on the bus.
    pub device: u8,
    /// The device's function.
    pub function: u8,
}

impl PciAddress {
    /// Reads `0000:1b:00.0`, in hexadecimal digits; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (front, function) = text.split_once('.')?;
        let mut parts = front.split(':');
        let (domain, bus, device) = (parts.next()?, parts.next()?, parts.next()?);
        let byte = |text| u8::from_str_radix(text, 16).ok();
        let all = [domain, bus, device, function].into_iter().flat_map(str::bytes);
        // `from_str_radix` would take a sign as well.
        if parts.next().is_some() || !all.into_iter().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let domain = u32::from_str_radix(domain, 16).ok()?;
        Some(Self { domain, bus: byte(bus)?, device: byte(device)?, function: byte(function)? })
    }
}

impl fmt::Display for PciAddress {
    /// As the kernel names it under `/sys/bus/pci/devices`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_the_tools_do() {
        let uuid = DeviceUuid::new(std::array::from_fn(|i| 0xF0 + i as u8));
        assert_eq!(uuid.to_string(), "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    }

    #[test]
    fn pci_addresses_read_back() {
        for text in ["0000:1b:00.0", "10000:ff:1f.7"] {
            assert_eq!(PciAddress::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(PciAddress::parse("00000000:9B:00.0").unwrap().to_string(), "0000:9b:00.0");
        for bad in
            ["", "1b:00.0", "0000:1b:00", "0000:100:00.0", "0000:1b:00.0:1", "0000:1b:+0.0", "0:1b:0x.0"]
        {
            assert_eq!(PciAddress::parse(bad), None, "{bad:?}");
        }
    }
}
