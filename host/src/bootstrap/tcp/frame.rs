//! What goes over a connection: frames, each of a header and a payload.
//!
//! | offset | bytes | what, little-endian |
//! |---|---|---|
//! | 0 | 4 | magic, `WWBS` |
//! | 4 | 2 | version |
//! | 6 | 2 | kind |
//! | 8 | 4 | bytes of the payload |
//!
//! This header and the frames of the handshake stay as they are in every later version, so that versions can tell each other
//! what they are.

use std::mem;

use super::super::MAX_MESSAGE_BYTES;
use super::super::mailbox::{Address, Lane};

/// The version of all frames but the handshake's.
pub(super) const VERSION: u16 = 1;
pub(super) const HEADER_BYTES: usize = 12;

const MAGIC: [u8; 4] = *b"WWBS";

mod field {
    use std::ops::Range;

    pub(super) const MAGIC: Range<usize> = 0..4;
    pub(super) const VERSION: Range<usize> = 4..6;
    pub(super) const KIND: Range<usize> = 6..8;
    pub(super) const LENGTH: Range<usize> = 8..12;
}

/// What a frame is. Kinds that this version does not know are values too, and are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind(pub(super) u16);

impl Kind {
    /// The guest's nonce: the first frame of a connection.
    pub(super) const HELLO: Self = Self(1);
    /// The host's nonce.
    pub(super) const CHALLENGE: Self = Self(2);
    /// The guest's proof that it knows the secret, and who it is.
    pub(super) const PROOF: Self = Self(3);
    /// The host's proof: the connection stands.
    pub(super) const WELCOME: Self = Self(4);
    /// The guest is turned away, and why.
    pub(super) const REFUSAL: Self = Self(5);
    /// From the root: everybody is there, and where.
    pub(super) const ROSTER: Self = Self(6);
    /// From the root: the job cannot start, and why.
    pub(super) const FAILED: Self = Self(7);
    /// A message of the user's.
    pub(super) const MESSAGE: Self = Self(16);
    /// A message of a collective call.
    pub(super) const COLLECTIVE: Self = Self(17);
    /// The sender goes, and how.
    pub(super) const BYE: Self = Self(32);
    /// Others have gone, and how.
    pub(super) const NOTICE: Self = Self(33);
}

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u16,
    pub(super) kind: Kind,
    pub(super) length: u32,
}

impl Header {
    pub(super) fn pack(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[field::MAGIC].copy_from_slice(&MAGIC);
        bytes[field::VERSION].copy_from_slice(&self.version.to_le_bytes());
        bytes[field::KIND].copy_from_slice(&self.kind.0.to_le_bytes());
        bytes[field::LENGTH].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Fault> {
        let [m0, m1, m2, m3, v0, v1, k0, k1, length @ ..] = *bytes;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(Fault::Magic);
        }
        Ok(Self {
            version: u16::from_le_bytes([v0, v1]),
            kind: Kind(u16::from_le_bytes([k0, k1])),
            length: u32::from_le_bytes(length),
        })
    }
}

/// What makes bytes no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("it sent bytes that are no frame of warpwire's")]
    Magic,
    #[error("it sent a frame of {bytes} bytes, where one may have {limit}")]
    TooLong { bytes: u32, limit: usize },
    #[error("it sent a frame of version {theirs} on a connection of version {VERSION}")]
    Version { theirs: u16 },
    #[error("it sent a frame of kind {0:?} that cannot be read")]
    Payload(Kind),
}

/// A frame that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) version: u16,
    pub(super) kind: Kind,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    /// The frame's header, as it came.
    pub(super) fn header(&self) -> Header {
        Header { version: self.version, kind: self.kind, length: self.payload.len() as u32 }
    }
}

/// A whole frame of this version, to be sent.
pub(super) fn pack(kind: Kind, payload: &[u8]) -> Vec<u8> {
    let header = Header { version: VERSION, kind, length: payload.len() as u32 };
    [&header.pack()[..], payload].concat()
}

/// What a message's payload begins with: the group's context and the tag.
pub(super) const ENVELOPE_BYTES: usize = 16;

/// The most that a payload has once a connection stands; before, it is [`HANDSHAKE_LIMIT`].
pub(super) const PAYLOAD_LIMIT: usize = MAX_MESSAGE_BYTES + ENVELOPE_BYTES;

/// The most that a stranger can make this side keep.
pub(super) const HANDSHAKE_LIMIT: usize = 4096;

/// The header and envelope of a message of `length` bytes.
pub(super) fn pack_envelope(address: Address, length: usize) -> [u8; HEADER_BYTES + ENVELOPE_BYTES] {
    let kind = match address.lane {
        Lane::Direct => Kind::MESSAGE,
        Lane::Collective => Kind::COLLECTIVE,
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

/// Cuts what arrives into frames.
#[derive(Debug)]
pub(super) struct FrameReader {
    bytes: Vec<u8>,
    /// Where the first frame that has not been given out begins.
    start: usize,
    limit: usize,
}

/// Above this an idle buffer gives its memory back.
const KEPT_BYTES: usize = 256 << 10;

impl FrameReader {
    /// For payloads of up to `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, limit }
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes bytes as they came. Memory grows with what has come, never with what a header claims.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame that is whole.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, Fault> {
        let rest = &self.bytes[self.start..];
        let Some((header, body)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            self.tidy();
            return Ok(None);
        };
        let header = Header::parse(header)?;
        if header.length as usize > self.limit {
            return Err(Fault::TooLong { bytes: header.length, limit: self.limit });
        }
        let Some(payload) = body.get(..header.length as usize) else {
            self.tidy();
            return Ok(None);
        };
        let frame = Frame { version: header.version, kind: header.kind, payload: payload.to_vec() };
        self.start += HEADER_BYTES + header.length as usize;
        Ok(Some(frame))
    }

    /// Forgets what was given out, once no whole frame is left.
    fn tidy(&mut self) {
        self.bytes.drain(..mem::take(&mut self.start));
        if self.bytes.len() < KEPT_BYTES {
            self.bytes.shrink_to(KEPT_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_are_packed_as_ever() {
        let bytes = [b'W', b'W', b'B', b'S', 1, 0, 16, 0, 2, 0, 0, 0, 0xaa, 0xbb];
        assert_eq!(pack(Kind::MESSAGE, &[0xaa, 0xbb]), bytes);
        let kinds = [
            (Kind::HELLO, 1),
            (Kind::CHALLENGE, 2),
            (Kind::PROOF, 3),
            (Kind::WELCOME, 4),
            (Kind::REFUSAL, 5),
            (Kind::ROSTER, 6),
            (Kind::FAILED, 7),
            (Kind::MESSAGE, 16),
            (Kind::COLLECTIVE, 17),
            (Kind::BYE, 32),
            (Kind::NOTICE, 33),
        ];
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

    #[test]
    fn a_header_that_claims_too_much_is_refused_at_once() {
        let mut reader = FrameReader::new(100);
        reader.feed(&Header { version: 1, kind: Kind::HELLO, length: u32::MAX }.pack());
        assert_eq!(reader.next(), Err(Fault::TooLong { bytes: u32::MAX, limit: 100 }));
    }

    #[test]
    fn an_idle_reader_holds_little() {
        let mut reader = FrameReader::new(PAYLOAD_LIMIT);
        let frame = pack(Kind::MESSAGE, &vec![0; 4 << 20]);
        for _ in 0..3 {
            reader.feed(&frame);
            assert!(reader.next().unwrap().is_some());
            assert_eq!(reader.next(), Ok(None));
            assert!(reader.bytes.capacity() <= KEPT_BYTES && reader.start == 0);
        }
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_however_cut(
            payloads in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..8),
            cuts in proptest::collection::vec(1usize..30, 1..20),
        ) {
            let sent: Vec<u8> = payloads.iter().flat_map(|(kind, payload)| pack(Kind(*kind), payload)).collect();
            let mut reader = FrameReader::new(64);
            let mut came = Vec::new();
            let mut rest = &sent[..];
            for cut in cuts.iter().cycle() {
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                reader.feed(piece);
                while let Some(frame) = reader.next().unwrap() {
                    came.push((frame.kind.0, frame.payload));
                }
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(came, payloads);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64), magic in any::<bool>()) {
            let mut reader = FrameReader::new(HANDSHAKE_LIMIT);
            if magic {
                reader.feed(&MAGIC);
            }
            reader.feed(&bytes);
            while let Ok(Some(_)) = reader.next() {}
        }
    }
}
