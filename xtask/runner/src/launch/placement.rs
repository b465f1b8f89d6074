//! Which device each rank takes.

use std::str::FromStr;

use warpwire::Error;
use warpwire::device::DeviceSelector;
use warpwire::memory::PeerAccess;

/// What a user asks for: `auto` (GPUs where there are any), `cpu`, `cuda` (all GPUs that can be seen), `cuda:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Devices {
    /// The same for one device.
    pub selector: DeviceSelector,
    /// One GPU by its number.
    numbered: bool,
}

impl FromStr for Devices {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Ok(Self { selector: text.parse()?, numbered: text.contains(':') })
    }
}

/// Which device each rank takes: rank `i` the GPU `i` modulo their number.
#[derive(Debug, PartialEq, Eq)]
pub struct Placement {
    /// By rank.
    pub selectors: Vec<DeviceSelector>,
    /// Whether several ranks share a GPU.
    pub shares: bool,
}

impl Placement {
    /// For `ranks` ranks. Asks the driver how many GPUs there are, and opens none.
    pub fn of(devices: Devices, ranks: usize) -> Result<Self, Error> {
        let present = match devices.selector {
            DeviceSelector::Cpu => 0,
            DeviceSelector::Cuda(_) if devices.numbered => 0,
            DeviceSelector::Cuda(_) => PeerAccess::check()?.devices(),
            DeviceSelector::Auto => PeerAccess::check().map_or(0, |access| access.devices()),
        };
        Ok(Self::among(devices, present, ranks))
    }

    /// Every rank on the device `selector`.
    pub fn together(selector: DeviceSelector, ranks: usize) -> Self {
        let shares = ranks > 1 && matches!(selector, DeviceSelector::Cuda(_));
        Self { selectors: vec![selector; ranks], shares }
    }

    /// Every rank on a GPU of its own, from GPU 0 on.
    pub fn apart(ranks: usize) -> Self {
        Self { selectors: (0..ranks).map(|rank| DeviceSelector::Cuda(rank as u32)).collect(), shares: false }
    }

    fn among(devices: Devices, present: usize, ranks: usize) -> Self {
        match devices.selector {
            DeviceSelector::Cuda(_) if devices.numbered => Self::together(devices.selector, ranks),
            DeviceSelector::Cuda(_) | DeviceSelector::Auto if present > 0 => Self {
                selectors: (0..ranks).map(|rank| DeviceSelector::Cuda((rank % present) as u32)).collect(),
                shares: ranks > present,
            },
            _ => Self::together(DeviceSelector::Cpu, ranks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(text: &str, present: usize, ranks: usize) -> (Vec<String>, bool) {
        let Placement { selectors, shares } = Placement::among(text.parse().unwrap(), present, ranks);
        (selectors.iter().map(ToString::to_string).collect(), shares)
    }

    #[test]
    fn gpus_are_dealt_out_by_turns() {
        assert_eq!(among("cuda", 2, 3), (["cuda:0", "cuda:1", "cuda:0"].map(str::to_owned).into(), true));
        assert_eq!(among("auto", 8, 2), (["cuda:0", "cuda:1"].map(str::to_owned).into(), false));
        assert_eq!(among("cuda:1", 0, 2), (["cuda:1", "cuda:1"].map(str::to_owned).into(), true));
        assert_eq!(among("auto", 0, 2), (["cpu", "cpu"].map(str::to_owned).into(), false));
        assert_eq!(among("cpu", 4, 1), (["cpu"].map(str::to_owned).into(), false));
        assert_eq!(Placement::apart(2), Placement::among("cuda".parse().unwrap(), 2, 2));
        assert!("gpu".parse::<Devices>().is_err());
    }
}
