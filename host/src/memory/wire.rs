//! The wire form of what one process tells another about its memory.
//!
//! ```text
//! 0   4  magic "WWMH"
//! 4   2  version, little-endian, like all numbers
//! 6   2  what it is: see `Form`
//! 8   4  bytes of the body
//! 12  4  CRC-32 of the 12 bytes before and of the body
//! 16     the body, in postcard's encoding
//! ```
//!
//! The checksum is against accidents. Whoever receives a handle trusts its sender with the memory, and with nothing else:
//! every byte string is a value or an error.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{MemoryError, Result};

const MAGIC: [u8; 4] = *b"WWMH";
/// Counts up with each change of a body.
pub(super) const VERSION: u16 = 2;
const HEADER_BYTES: usize = 16;
/// No body is longer: a guard against lengths that nobody meant.
const BODY_BYTES: usize = 4096;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Form {
    /// A handle of memory.
    Memory = 1,
    /// Registered memory.
    Registered = 2,
    /// A handle of a multicast object.
    Multicast = 3,
}

impl Form {
    const fn words(self) -> &'static str {
        match self {
            Self::Memory => "a handle of shared memory",
            Self::Registered => "registered memory",
            Self::Multicast => "a handle of a multicast object",
        }
    }
}

/// Packs a body.
pub(super) fn seal(form: Form, body: &impl Serialize) -> Result<Vec<u8>> {
    let body = postcard::to_stdvec(body).map_err(|error| malformed(form, 0, error.to_string()))?;
    if body.len() > BODY_BYTES {
        return Err(malformed(form, body.len(), format!("it has more than {BODY_BYTES} bytes")));
    }
    let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
    message.extend(MAGIC);
    message.extend(VERSION.to_le_bytes());
    message.extend((form as u16).to_le_bytes());
    message.extend((body.len() as u32).to_le_bytes());
    message.extend(checksum(&message, &body).to_le_bytes());
    message.extend(body);
    Ok(message)
}

/// Unpacks a body.
pub(super) fn open<T: DeserializeOwned>(form: Form, message: &[u8]) -> Result<T> {
    let malformed = |reason: &str| malformed(form, message.len(), reason.to_owned());
    let Some((header, body)) = message.split_first_chunk::<HEADER_BYTES>() else {
        return Err(malformed("they are too few"));
    };
    let [m0, m1, m2, m3, v0, v1, f0, f1, l0, l1, l2, l3, c0, c1, c2, c3] = *header;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(malformed("they do not begin with \"WWMH\""));
    }
    // The version comes first: another one may mean something else by all that follows.
    let version = u16::from_le_bytes([v0, v1]);
    if version != VERSION {
        return Err(MemoryError::HandleVersion { found: version, known: VERSION }.into());
    }
    if u32::from_le_bytes([l0, l1, l2, l3]) as usize != body.len() || body.len() > BODY_BYTES {
        return Err(malformed("they are not as many as they say: cut short, or joined with others"));
    }
    if u32::from_le_bytes([c0, c1, c2, c3]) != checksum(&header[..12], body) {
        return Err(malformed("their checksum is wrong: they have been damaged on the way"));
    }
    if u16::from_le_bytes([f0, f1]) != form as u16 {
        return Err(malformed("they are another kind of message"));
    }
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(malformed("there are more than the message needs")),
        Err(error) => Err(malformed(&error.to_string())),
    }
}

/// The error of bytes that are no message of this form.
pub(super) fn malformed(form: Form, bytes: usize, reason: String) -> crate::Error {
    MemoryError::MalformedHandle { bytes, expected: form.words(), reason }.into()
}

fn checksum(header: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(body);
    hasher.finalize()
}
