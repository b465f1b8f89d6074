//! What ranks say to each other once their connection stands.

use super::super::MAX_MESSAGE_BYTES;
use super::super::mailbox::{Address, Lane};
use crate::net::frame::{HEADER_BYTES, Header, Kind, VERSION};

/// From the root: everybody is there, and where.
pub(super) const ROSTER: Kind = Kind(6);
/// From the root: the job cannot start, and why.
pub(super) const FAILED: Kind = Kind(7);
/// A message of the user's.
pub(super) const MESSAGE: Kind = Kind(16);
/// A message of a collective call.
pub(super) const COLLECTIVE: Kind = Kind(17);
/// The sender goes, and how.
pub(super) const BYE: Kind = Kind(32);
/// Others have gone, and how.
pub(super) const NOTICE: Kind = Kind(33);

/// What a message's payload begins with: the group's context and the tag.
pub(super) const ENVELOPE_BYTES: usize = 16;

/// The most that a payload has once a connection stands.
pub(super) const PAYLOAD_LIMIT: usize = MAX_MESSAGE_BYTES + ENVELOPE_BYTES;

/// The header and envelope of a message of `length` bytes.
pub(super) fn pack_envelope(address: Address, length: usize) -> [u8; HEADER_BYTES + ENVELOPE_BYTES] {
    let kind = match address.lane {
        Lane::Direct => MESSAGE,
        Lane::Collective => COLLECTIVE,
    };
    let header = Header { version: VERSION, kind, length: (ENVELOPE_BYTES + length) as u32 };
    let mut bytes = [0; HEADER_BYTES + ENVELOPE_BYTES];
    bytes[..HEADER_BYTES].copy_from_slice(&header.pack());
    bytes[HEADER_BYTES..][..8].copy_from_slice(&address.context.to_le_bytes());
    bytes[HEADER_BYTES + 8..].copy_from_slice(&address.tag.to_le_bytes());
    bytes
}

/// Takes a message's payload apart; nothing for one without an envelope.
pub(super) fn open_envelope(lane: Lane, mut payload: Vec<u8>) -> Option<(Address, Vec<u8>)> {
    let (context, rest) = payload.split_first_chunk::<8>()?;
    let tag = rest.first_chunk::<8>()?;
    let address = Address { lane, context: u64::from_le_bytes(*context), tag: u64::from_le_bytes(*tag) };
    payload.drain(..ENVELOPE_BYTES);
    Some((address, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_numbers() {
        let kinds = [(ROSTER, 6), (FAILED, 7), (MESSAGE, 16), (COLLECTIVE, 17), (BYE, 32), (NOTICE, 33)];
        assert!(kinds.iter().all(|(kind, number)| kind.0 == *number));
    }

    #[test]
    fn envelopes_are_packed_as_ever() {
        let address = Address { lane: Lane::Collective, context: 0x0102, tag: 0x0304 };
        let bytes = [
            b'W', b'W', b'B', b'S', 1, 0, 17, 0, 19, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(pack_envelope(address, 3), bytes);
        let payload = [&bytes[HEADER_BYTES..], b"abc"].concat();
        assert_eq!(open_envelope(Lane::Collective, payload), Some((address, b"abc".to_vec())));
        assert_eq!(open_envelope(Lane::Direct, vec![0; 15]), None);
    }
}
