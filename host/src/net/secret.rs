//! What the ranks of one job know and nobody else does.

use std::fmt;
use std::io;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

pub(crate) const SECRET_BYTES: usize = 32;
pub(crate) const MAC_BYTES: usize = 32;

/// A key for proofs. It is never sent once a job has it: a guest and a host prove to each other that they know it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// One that nobody can guess.
    pub(crate) fn random() -> Result<Self> {
        random_bytes().map(Self)
    }

    pub(crate) fn from_bytes(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// The one that a text stands for; without a text one that everybody knows, which keeps strangers out and nobody else.
    pub(crate) fn from_text(text: Option<&str>) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"warpwire secret\0");
        if let Some(text) = text {
            hash.update(b"\x01");
            hash.update(text.as_bytes());
        }
        Self(hash.finalize().into())
    }

    pub(crate) fn as_bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// The proof that `role`, who knows the secret, said or heard `parts`.
    pub(crate) fn prove(&self, role: Role, parts: &[&[u8]]) -> [u8; MAC_BYTES] {
        self.mac(role, parts).finalize().into_bytes().into()
    }

    /// Whether `proof` is that; in a time that does not tell how much of it is right.
    pub(crate) fn holds(&self, role: Role, parts: &[&[u8]], proof: &[u8; MAC_BYTES]) -> bool {
        self.mac(role, parts).verify_slice(proof).is_ok()
    }

    fn mac(&self, role: Role, parts: &[&[u8]]) -> Hmac<Sha256> {
        // The key is as long as a block has to be for no key to be refused.
        let mut mac = <Hmac<Sha256> as Mac>::new(&self.block().into());
        mac.update(role.label());
        parts.iter().for_each(|part| mac.update(part));
        mac
    }

    /// The key, padded to SHA-256's block as HMAC pads it.
    fn block(&self) -> [u8; 64] {
        let mut block = [0; 64];
        block[..SECRET_BYTES].copy_from_slice(&self.0);
        block
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Who proves: with a label each, no proof can be sent back to whom it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Guest,
    Host,
}

impl Role {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Guest => b"warpwire bootstrap guest\0",
            Self::Host => b"warpwire bootstrap host\0",
        }
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::System {
        operation: "asking the system for random bytes".to_owned(),
        source: io::Error::other(error),
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_hold_for_what_was_said_alone() {
        let secret = Secret::from_text(Some("job"));
        let proof = secret.prove(Role::Guest, &[b"ab", b"c"]);
        assert!(secret.holds(Role::Guest, &[b"abc"], &proof));
        assert!(!secret.holds(Role::Host, &[b"abc"], &proof), "a proof sent back");
        assert!(!secret.holds(Role::Guest, &[b"abd"], &proof));
        assert!(!Secret::from_text(Some("other")).holds(Role::Guest, &[b"abc"], &proof));
        assert!(!Secret::from_text(None).holds(Role::Guest, &[b"abc"], &proof));
    }

    #[test]
    fn secrets_are_not_shown() {
        let secret = Secret::random().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_ne!(secret, Secret::random().unwrap());
    }

    #[test]
    fn the_proof_is_hmac_sha256_of_label_and_parts() {
        let secret = Secret::from_bytes([7; SECRET_BYTES]);
        let whole = [Role::Host.label(), b"x"].concat();
        let mut reference = Hmac::<Sha256>::new_from_slice(&[7; SECRET_BYTES]).unwrap();
        reference.update(&whole);
        assert_eq!(secret.prove(Role::Host, &[b"x"]), <[u8; 32]>::from(reference.finalize().into_bytes()));
    }
}
