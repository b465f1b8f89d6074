//! Which machine this is.

use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Tells hosts apart: ranks with equal ids share a host. Made from the kernel's boot id, which is new at every boot and the
/// same in all containers of a machine, or from a name of one's own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId([u8; 32]);

impl HostId {
    /// The host of that name. Under `WARPWIRE_HOST_ID` ranks of one machine act out several hosts.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::digest("name", &[name])
    }

    /// The machine that this process runs on.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] where the machine has neither a boot id nor a machine id.
    pub fn of_this_machine() -> Result<Self> {
        Facts::read().id().ok_or_else(|| Error::Unavailable {
            what: "this machine has neither a boot id nor a machine id to be told apart by".to_owned(),
            hint: format!("set {} to a name of its own", super::HOST_ID),
        })
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The kind keeps a name from ever equalling a boot id; the zero byte keeps fields from running into each other.
    fn digest(kind: &str, fields: &[&str]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"warpwire host\0");
        for field in [kind].iter().chain(fields) {
            hash.update(field.as_bytes());
            hash.update([0]);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for HostId {
    /// The first eight of its bytes: enough for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostId({self})")
    }
}

/// What a machine says of itself.
#[derive(Debug, Default)]
struct Facts {
    boot_id: Option<String>,
    machine_id: Option<String>,
    hostname: String,
}

impl Facts {
    fn read() -> Self {
        let line = |path| {
            let text = fs::read_to_string(path).ok()?;
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        Self {
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            machine_id: line("/etc/machine-id"),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        }
    }

    /// The boot id alone decides where there is one: host names and addresses differ among containers of one machine, and
    /// are the same on machines behind one gateway. Without it, a machine id may be that of a shared image, so the host
    /// name has to be the same too.
    fn id(&self) -> Option<HostId> {
        if let Some(boot) = &self.boot_id {
            return Some(HostId::digest("boot", &[boot]));
        }
        self.machine_id.as_ref().map(|machine| HostId::digest("machine", &[machine, &self.hostname]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(boot: Option<&str>, machine: &str, hostname: &str) -> Facts {
        Facts {
            boot_id: boot.map(str::to_owned),
            machine_id: (!machine.is_empty()).then(|| machine.to_owned()),
            hostname: hostname.to_owned(),
        }
    }

    #[test]
    fn the_boot_id_decides() {
        let id = |boot, machine, hostname| facts(boot, machine, hostname).id();
        assert_eq!(id(Some("b1"), "m1", "pod-1"), id(Some("b1"), "m2", "pod-2"));
        assert_ne!(id(Some("b1"), "m1", "pod-1"), id(Some("b2"), "m1", "pod-1"));
        assert_eq!(id(None, "m1", "a"), id(None, "m1", "a"));
        assert_ne!(id(None, "m1", "a"), id(None, "m1", "b"));
        assert_eq!(id(None, "", "a"), None);
        assert_ne!(HostId::named("b1"), id(Some("b1"), "", "").unwrap());
    }

    #[test]
    fn the_digest_is_pinned() {
        assert_eq!(HostId::named("node0").to_string(), "7bea702bcbaa40b1");
    }
}
