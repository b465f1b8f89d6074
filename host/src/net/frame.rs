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

/// The version of all frames but the handshake's.
pub(crate) const VERSION: u16 = 1;
pub(crate) const HEADER_BYTES: usize = 12;

const MAGIC: [u8; 4] = *b"WWBS";

mod field {
    use std::ops::Range;

    pub(crate) const MAGIC: Range<usize> = 0..4;
    pub(crate) const VERSION: Range<usize> = 4..6;
    pub(crate) const KIND: Range<usize> = 6..8;
    pub(crate) const LENGTH: Range<usize> = 8..12;
}

/// What a frame is. Here are the handshake's kinds; what a connection carries once it stands numbers its own, from 6 on. Kinds
/// that this version does not know are values too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) u16);

impl Kind {
    /// The guest's nonce: the first frame of a connection.
    pub(crate) const HELLO: Self = Self(1);
    /// The host's nonce.
    pub(crate) const CHALLENGE: Self = Self(2);
    /// The guest's proof that it knows the secret, and who it is.
    pub(crate) const PROOF: Self = Self(3);
    /// The host's proof: the connection stands.
    pub(crate) const WELCOME: Self = Self(4);
    /// The guest is turned away, and why.
    pub(crate) const REFUSAL: Self = Self(5);
}

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: u16,
    pub(crate) kind: Kind,
    pub(crate) length: u32,
}

impl Header {
    pub(crate) fn pack(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[field::MAGIC].copy_from_slice(&MAGIC);
        bytes[field::VERSION].copy_from_slice(&self.version.to_le_bytes());
        bytes[field::KIND].copy_from_slice(&self.kind.0.to_le_bytes());
        bytes[field::LENGTH].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Fault> {
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
pub(crate) enum Fault {
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
pub(crate) struct Frame {
    pub(crate) version: u16,
    pub(crate) kind: Kind,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The frame's header, as it came.
    pub(crate) fn header(&self) -> Header {
        Header { version: self.version, kind: self.kind, length: self.payload.len() as u32 }
    }
}

/// A whole frame of this version, to be sent.
pub(crate) fn pack(kind: Kind, payload: &[u8]) -> Vec<u8> {
    let header = Header { version: VERSION, kind, length: payload.len() as u32 };
    [&header.pack()[..], payload].concat()
}

/// The most that a stranger can make this side keep.
pub(crate) const HANDSHAKE_LIMIT: usize = 4096;

/// Frames that are not of the handshake have to be of this version.
pub(crate) fn check_version(header: Header) -> Result<(), Fault> {
    if header.version == VERSION { Ok(()) } else { Err(Fault::Version { theirs: header.version }) }
}

/// Cuts what arrives into frames.
#[derive(Debug)]
pub(crate) struct FrameReader {
    bytes: Vec<u8>,
    /// Where the first frame that has not been given out begins.
    start: usize,
    limit: usize,
}

/// Above this an idle buffer gives its memory back.
const KEPT_BYTES: usize = 256 << 10;

impl FrameReader {
    /// For payloads of up to `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, limit }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes bytes as they came. Memory grows with what has come, never with what a header claims.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame that is whole.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, Fault> {
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

    /// What has come and has not been given out.
    pub(crate) fn into_rest(mut self) -> Vec<u8> {
        self.bytes.split_off(self.start)
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
        assert_eq!(pack(Kind(16), &[0xaa, 0xbb]), bytes);
        let kinds = [
            (Kind::HELLO, 1),
            (Kind::CHALLENGE, 2),
            (Kind::PROOF, 3),
            (Kind::WELCOME, 4),
            (Kind::REFUSAL, 5),
        ];
        assert!(kinds.iter().all(|(kind, number)| kind.0 == *number));
    }

    #[test]
    fn a_header_that_claims_too_much_is_refused_at_once() {
        let mut reader = FrameReader::new(100);
        reader.feed(&Header { version: 1, kind: Kind::HELLO, length: u32::MAX }.pack());
        assert_eq!(reader.next(), Err(Fault::TooLong { bytes: u32::MAX, limit: 100 }));
    }

    #[test]
    fn an_idle_reader_holds_little() {
        let mut reader = FrameReader::new(8 << 20);
        let frame = pack(Kind(16), &vec![0; 4 << 20]);
        for _ in 0..3 {
            reader.feed(&frame);
            assert!(reader.next().unwrap().is_some());
            assert_eq!(reader.next(), Ok(None));
            assert!(reader.bytes.capacity() <= KEPT_BYTES && reader.start == 0);
        }
    }

    #[test]
    fn what_came_behind_the_last_frame_is_not_lost() {
        let mut reader = FrameReader::new(100);
        reader.feed(&[&pack(Kind::WELCOME, b"a")[..], b"later"].concat());
        assert!(reader.next().unwrap().is_some());
        assert_eq!(reader.into_rest(), b"later");
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
