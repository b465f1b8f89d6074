//! What rank 0 hands to the others.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::error::{BootstrapError, Error, Result};
use crate::net::Endpoint;
use crate::net::secret::{SECRET_BYTES, Secret};

/// A job's name for its ranks: where rank 0 listens, and a secret that keeps others out. Made by
/// [`TcpRoot::id`](super::TcpRoot::id); as text, hexadecimal digits.
///
/// Whoever has it can join the job: hand it on as you would a password. [`fmt::Debug`] leaves the secret out.
///
/// | offset | bytes | what, little-endian |
/// |---|---|---|
/// | 0 | 4 | magic, `WWID` |
/// | 4 | 2 | version, 1 |
/// | 6 | 2 | family, 4 or 6 |
/// | 8 | 2 | port |
/// | 10 | 2 | 0 |
/// | 12 | 4 | scope of a link-local address |
/// | 16 | 16 | address, IPv4 in the first four |
/// | 32 | 32 | secret |
/// | 64 | 56 | 0 |
/// | 120 | 8 | the first bytes of SHA-256 over all before |
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UniqueId([u8; UniqueId::BYTES]);

const MAGIC: [u8; 4] = *b"WWID";
const VERSION: u16 = 1;

mod field {
    use std::ops::Range;

    pub(super) const MAGIC: Range<usize> = 0..4;
    pub(super) const VERSION: Range<usize> = 4..6;
    pub(super) const FAMILY: Range<usize> = 6..8;
    pub(super) const PORT: Range<usize> = 8..10;
    pub(super) const SCOPE: Range<usize> = 12..16;
    pub(super) const ADDRESS: Range<usize> = 16..32;
    pub(super) const SECRET: Range<usize> = 32..64;
    pub(super) const BODY: Range<usize> = 0..120;
    pub(super) const CHECK: Range<usize> = 120..128;
}

impl UniqueId {
    /// Its length.
    pub const BYTES: usize = 128;

    pub(super) fn new(root: Endpoint, secret: &Secret) -> Self {
        let (family, address) = match root.ip {
            IpAddr::V4(ip) => (4u16, [&ip.octets()[..], &[0; 12]].concat()),
            IpAddr::V6(ip) => (6, ip.octets().to_vec()),
        };
        let mut bytes = [0; Self::BYTES];
        bytes[field::MAGIC].copy_from_slice(&MAGIC);
        bytes[field::VERSION].copy_from_slice(&VERSION.to_le_bytes());
        bytes[field::FAMILY].copy_from_slice(&family.to_le_bytes());
        bytes[field::PORT].copy_from_slice(&root.port.to_le_bytes());
        bytes[field::SCOPE].copy_from_slice(&root.scope.to_le_bytes());
        bytes[field::ADDRESS].copy_from_slice(&address);
        bytes[field::SECRET].copy_from_slice(secret.as_bytes());
        let check = check(&bytes);
        bytes[field::CHECK].copy_from_slice(&check);
        Self(bytes)
    }

    /// Of bytes that [`as_bytes`](Self::as_bytes) gave.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::InvalidId`] for bytes that are no id, or not one of this version.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Result<Self> {
        if bytes[field::MAGIC] != MAGIC {
            return Err(invalid("it does not begin as one"));
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != VERSION {
            return Err(invalid(format!("it is of version {version}, and this is version {VERSION}")));
        }
        if bytes[field::CHECK] != check(&bytes) {
            return Err(invalid("its check digits are wrong: it was damaged on the way"));
        }
        if !matches!(bytes[field::FAMILY], [4 | 6, 0]) {
            return Err(invalid("its address is of no known family"));
        }
        Ok(Self(bytes))
    }

    /// Its bytes, to be handed on.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    pub(super) fn root(&self) -> Endpoint {
        let Self(bytes) = self;
        let mut address = [0; 16];
        address.copy_from_slice(&bytes[field::ADDRESS]);
        let ip = match bytes[field::FAMILY] {
            [4, _] => Ipv4Addr::new(address[0], address[1], address[2], address[3]).into(),
            _ => Ipv6Addr::from(address).into(),
        };
        Endpoint {
            ip,
            port: u16::from_le_bytes([bytes[8], bytes[9]]),
            scope: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
        }
    }

    pub(super) fn secret(&self) -> Secret {
        let mut secret = [0; SECRET_BYTES];
        secret.copy_from_slice(&self.0[field::SECRET]);
        Secret::from_bytes(secret)
    }
}

fn check(bytes: &[u8; UniqueId::BYTES]) -> [u8; 8] {
    let digest = Sha256::digest(&bytes[field::BODY]);
    let mut check = [0; 8];
    check.copy_from_slice(&digest[..8]);
    check
}

fn invalid(reason: impl Into<String>) -> Error {
    BootstrapError::InvalidId { reason: reason.into() }.into()
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for UniqueId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.trim().as_bytes();
        if digits.len() != 2 * Self::BYTES {
            return Err(invalid(format!("it has {} characters, not {}", digits.len(), 2 * Self::BYTES)));
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |index: usize| char::from(pair[index]).to_digit(16);
            let value = digit(0).zip(digit(1)).map(|(high, low)| high << 4 | low);
            *byte = value.ok_or_else(|| invalid("it has other characters than hexadecimal digits"))? as u8;
        }
        Self::from_bytes(bytes)
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.root();
        write!(f, "UniqueId({}, secret …)", root.seen_from(root.scope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id() -> UniqueId {
        let root = Endpoint { ip: "fe80::1".parse().unwrap(), port: 0x1388, scope: 3 };
        UniqueId::new(root, &Secret::from_bytes([0x5a; SECRET_BYTES]))
    }

    #[test]
    fn ids_are_packed_as_ever() {
        let text = id().to_string();
        let head = "57574944010006008813000003000000fe800000000000000000000000000001";
        assert_eq!(text.len(), 256);
        assert_eq!(&text[..64], head);
        assert_eq!(&text[64..128], "5a".repeat(32));
        assert_eq!(&text[128..240], "00".repeat(56));
    }

    #[test]
    fn ids_come_back_from_their_text() {
        let read: UniqueId = format!(" {}\n", id()).parse().unwrap();
        assert_eq!(read, id());
        assert_eq!(read.root(), id().root());
        assert_eq!(read.secret(), id().secret());
        assert_eq!(format!("{read:?}"), "UniqueId([fe80::1%3]:5000, secret …)");
    }

    #[test]
    fn damage_is_told() {
        let text = id().to_string();
        let cases = [
            (String::new(), "0 characters"),
            (text[..254].to_owned(), "254 characters"),
            (text.replace("5a", "zz"), "hexadecimal"),
            (text.replacen("5a", "5b", 1), "damaged"),
            (text.replacen("57", "58", 1), "does not begin"),
            (text.replacen("440100", "440200", 1), "version 2"),
            ("é".repeat(128), "hexadecimal"),
        ];
        for (bad, part) in cases {
            let error = bad.parse::<UniqueId>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-f]{250,260}|.{0,300}") {
            prop_assert!(text.parse::<UniqueId>().is_err());
        }
    }
}
