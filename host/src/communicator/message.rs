//! What ranks tell each other while they set up, in bytes.
//!
//! ```text
//! 0  4  magic "WWCX"
//! 4  2  version, little-endian, like all numbers
//! 6  2  what it is: see `Content`
//! 8     the body, in postcard's encoding
//! ```
//!
//! The bootstrap has checked who sent it and that it is whole. What is in it is checked here: every byte string is a value or
//! an error that names the sender.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use warpwire_device::abi::Rank;

use crate::connection::{Site, Transport};
use crate::error::{CommunicatorError, Result};

const MAGIC: [u8; 4] = *b"WWCX";
/// Counts up with each change of a body.
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 8;

/// A message's body.
pub(super) trait Content: Serialize + DeserializeOwned {
    /// Its number on the wire.
    const KIND: u16;
}

/// What each kind of message is called, by its number.
const KINDS: [(u16, &str); 5] = [
    (Hello::KIND, "its greeting"),
    (Memory::KIND, "registered memory"),
    (Offer::KIND, "an end of a connection"),
    (SemaphoreOffer::KIND, "an end of a semaphore"),
    (Said::<()>::KIND, "its part of a call of all ranks"),
];

fn words(kind: u16) -> Option<&'static str> {
    KINDS.iter().find(|(number, _)| *number == kind).map(|(_, words)| *words)
}

/// The first message.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) site: Site,
}

impl Content for Hello {
    const KIND: u16 = 1;
}

/// Memory that a rank has registered, in its own wire form.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Memory(pub(super) Vec<u8>);

impl Content for Memory {
    const KIND: u16 = 2;
}

/// An end of a connection.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Offer {
    pub(super) transport: Transport,
    pub(super) terms: Vec<(String, String)>,
    pub(super) site: Site,
    pub(super) description: Vec<u8>,
}

impl Content for Offer {
    const KIND: u16 = 3;
}

/// An end of a semaphore.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SemaphoreOffer {
    /// Of the connection that it is built over.
    pub(super) transport: Transport,
    /// By which the slot is let go of.
    pub(super) id: u64,
    /// The slot, in registered memory's own wire form.
    pub(super) token: Vec<u8>,
}

impl Content for SemaphoreOffer {
    const KIND: u16 = 4;
}

/// What a rank says in a call of all ranks: its value, or how it failed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Said<T>(pub(super) std::result::Result<T, String>);

impl<T: Serialize + DeserializeOwned> Content for Said<T> {
    const KIND: u16 = 5;
}

/// Packs a message.
pub(super) fn seal<C: Content>(content: &C) -> Result<Vec<u8>> {
    let mut message = Vec::with_capacity(HEADER_BYTES + 64);
    message.extend(MAGIC);
    message.extend(VERSION.to_le_bytes());
    message.extend(C::KIND.to_le_bytes());
    postcard::to_extend(content, message)
        .map_err(|error| crate::Error::system("packing a message", std::io::Error::other(error)))
}

/// Unpacks a message of `peer`'s.
pub(super) fn open<C: Content>(peer: Rank, message: &[u8]) -> Result<C> {
    let ours = words(C::KIND).unwrap_or("a message");
    let malformed = |reason: &str| {
        let (bytes, reason) = (message.len(), reason.to_owned());
        CommunicatorError::Malformed { peer, bytes, expected: ours, reason }
    };
    let Some((header, body)) = message.split_first_chunk::<HEADER_BYTES>() else {
        return Err(malformed("they are too few").into());
    };
    let [m0, m1, m2, m3, v0, v1, k0, k1] = *header;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(malformed("they do not begin with \"WWCX\"").into());
    }
    // The version comes first: another one may mean something else by all that follows.
    let theirs = u16::from_le_bytes([v0, v1]);
    if theirs != VERSION {
        return Err(CommunicatorError::Version { peer, ours: VERSION, theirs }.into());
    }
    let kind = u16::from_le_bytes([k0, k1]);
    if kind != C::KIND {
        let theirs = words(kind).ok_or_else(|| malformed("they are of a kind that is not known"))?;
        return Err(CommunicatorError::TagMisused { peer, ours, theirs }.into());
    }
    match postcard::take_from_bytes(body) {
        Ok((content, [])) => Ok(content),
        Ok(_) => Err(malformed("there are more than the message needs").into()),
        Err(error) => Err(malformed(&error.to_string()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure<C: Content + std::fmt::Debug>(message: &[u8]) -> CommunicatorError {
        match open::<C>(Rank(7), message).unwrap_err() {
            crate::Error::Communicator(error) => error,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn messages_have_their_bytes_and_read_back() {
        let offer = SemaphoreOffer { transport: Transport::CudaIpc, id: 300, token: vec![1, 2, 3] };
        let message = seal(&offer).unwrap();
        assert_eq!(message, b"WWCX\x01\x00\x04\x00\x00\xac\x02\x03\x01\x02\x03");
        assert_eq!(open::<SemaphoreOffer>(Rank(7), &message).unwrap(), offer);
        let said = seal(&Said(Ok::<u64, String>(5))).unwrap();
        assert_eq!(open::<Said<u64>>(Rank(7), &said).unwrap(), Said(Ok(5)));
    }

    #[test]
    fn another_version_is_named_with_both_numbers() {
        let mut message = seal(&Memory(vec![9])).unwrap();
        message[4] = 2;
        let error = failure::<Memory>(&message).to_string();
        assert!(
            error.contains("rank 7 speaks version 2") && error.contains("this rank version 1"),
            "{error}"
        );
    }

    #[test]
    fn a_tag_used_for_two_things_names_both() {
        let error = failure::<Offer>(&seal(&Memory(vec![])).unwrap());
        assert!(
            matches!(
                error,
                CommunicatorError::TagMisused {
                    peer: Rank(7),
                    ours: "an end of a connection",
                    theirs: "registered memory"
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn anything_else_is_an_error() {
        let good = seal(&Memory(vec![1; 20])).unwrap();
        for cut in 0..good.len() {
            assert!(matches!(failure::<Memory>(&good[..cut]), CommunicatorError::Malformed { .. }), "{cut}");
        }
        let longer = [&good[..], &[0]].concat();
        assert!(matches!(failure::<Memory>(&longer), CommunicatorError::Malformed { .. }));
        let mut other = good.clone();
        other[0] = b'X';
        assert!(matches!(failure::<Memory>(&other), CommunicatorError::Malformed { .. }));
        let mut unknown = good;
        unknown[6] = 99;
        assert!(matches!(failure::<Memory>(&unknown), CommunicatorError::Malformed { .. }));
    }
}
