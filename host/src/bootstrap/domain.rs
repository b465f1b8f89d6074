//! Which ranks can share memory.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::env::HostId;

/// Ranks with equal ids can map each other's memory. As a rule that is their host; where a fabric joins hosts it is the
/// fabric's clique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DomainId([u8; 32]);

impl DomainId {
    /// The domain of a fabric's clique, as the driver reports it. An all-zero cluster is how a driver says that there is no
    /// fabric: none.
    #[must_use]
    pub fn of_fabric(cluster: [u8; 16], clique: u32) -> Option<Self> {
        if cluster == [0; 16] {
            return None;
        }
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&cluster);
        bytes[16..20].copy_from_slice(&clique.to_le_bytes());
        Some(Self(bytes))
    }
}

impl From<HostId> for DomainId {
    fn from(host: HostId) -> Self {
        Self(*host.as_bytes())
    }
}

impl fmt::Display for DomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fabric_of_zeros_is_none() {
        assert_eq!(DomainId::of_fabric([0; 16], 7), None);
        assert_ne!(DomainId::of_fabric([1; 16], 0), DomainId::of_fabric([1; 16], 1));
        assert_ne!(DomainId::from(HostId::named("a")), DomainId::from(HostId::named("b")));
    }
}
