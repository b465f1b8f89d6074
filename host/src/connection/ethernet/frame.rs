//! What the two ends of an Ethernet connection say to each other once it stands.
//!
//! | offset | bytes | what, little-endian |
//! |---|---|---|
//! | 0 | 12 | the header of every frame (`net::frame`), its magic, version, kind and length |
//! | 12 | 4 | `WRITE`, `UPDATE`: the region's slot |
//! | 16 | 4 | its generation |
//! | 20 | 8 | where in it |
//! | 28 | | `WRITE`: the data; `UPDATE`: the 64-bit word |
//!
//! `ACKNOWLEDGE` has how many writes and updates have been placed since the connection began, as 8 bytes; `OBJECT` has a reason,
//! as 4; `BYE` has nothing.

use std::io::{self, ErrorKind, Read};

use crate::net::frame::{Fault, HEADER_BYTES, Header, Kind, VERSION, check_version};

pub(super) const WRITE: Kind = Kind(48);
pub(super) const UPDATE: Kind = Kind(49);
pub(super) const ACKNOWLEDGE: Kind = Kind(50);
pub(super) const OBJECT: Kind = Kind(51);
pub(super) const BYE: Kind = Kind(52);

/// The most data of one frame. Longer writes are several frames: others' acknowledgements go between them.
pub(super) const PIECE_BYTES: usize = 256 << 10;

const TARGET_BYTES: usize = 16;
const WORD_BYTES: usize = size_of::<u64>();

/// What comes before the data of a write.
pub(super) const WRITE_HEAD_BYTES: usize = HEADER_BYTES + TARGET_BYTES;
pub(super) const UPDATE_BYTES: usize = WRITE_HEAD_BYTES + WORD_BYTES;
pub(super) const ACKNOWLEDGE_BYTES: usize = HEADER_BYTES + WORD_BYTES;

/// A place in the receiver's memory. It names what the receiver has registered, and is checked there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) offset: u64,
}

impl Target {
    fn pack(self) -> [u8; TARGET_BYTES] {
        let mut bytes = [0; TARGET_BYTES];
        bytes[..4].copy_from_slice(&self.slot.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    fn parse(bytes: [u8; TARGET_BYTES]) -> Self {
        let [s0, s1, s2, s3, g0, g1, g2, g3, offset @ ..] = bytes;
        Self {
            slot: u32::from_le_bytes([s0, s1, s2, s3]),
            generation: u32::from_le_bytes([g0, g1, g2, g3]),
            offset: u64::from_le_bytes(offset),
        }
    }
}

/// Why an end does not do what the other asks of it, and ends the connection. Reasons that this version does not know are
/// values too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Objection(pub(super) u32);

impl Objection {
    pub(super) const NO_SUCH_MEMORY: Self = Self(1);
    pub(super) const OUTSIDE: Self = Self(2);
    pub(super) const MISALIGNED: Self = Self(3);
    pub(super) const DEVICE: Self = Self(4);
    pub(super) const MALFORMED: Self = Self(5);

    pub(super) fn words(self) -> String {
        match self {
            Self::NO_SUCH_MEMORY => "the memory is not registered any more".to_owned(),
            Self::OUTSIDE => "the range does not lie in the memory that is registered".to_owned(),
            Self::MISALIGNED => "the word is not aligned".to_owned(),
            Self::DEVICE => "its device failed; see its own error".to_owned(),
            Self::MALFORMED => "it could not read what was sent".to_owned(),
            Self(other) => format!("reason {other}, which this version does not know"),
        }
    }
}

fn head(kind: Kind, payload_bytes: usize) -> [u8; HEADER_BYTES] {
    Header { version: VERSION, kind, length: payload_bytes as u32 }.pack()
}

/// The front of a write of `bytes` bytes, at most [`PIECE_BYTES`]: the data follows it.
pub(super) fn write_head(target: Target, bytes: usize) -> [u8; WRITE_HEAD_BYTES] {
    let mut frame = [0; WRITE_HEAD_BYTES];
    frame[..HEADER_BYTES].copy_from_slice(&head(WRITE, TARGET_BYTES + bytes));
    frame[HEADER_BYTES..].copy_from_slice(&target.pack());
    frame
}

pub(super) fn update(target: Target, value: u64) -> [u8; UPDATE_BYTES] {
    let mut frame = [0; UPDATE_BYTES];
    frame[..HEADER_BYTES].copy_from_slice(&head(UPDATE, TARGET_BYTES + WORD_BYTES));
    frame[HEADER_BYTES..WRITE_HEAD_BYTES].copy_from_slice(&target.pack());
    frame[WRITE_HEAD_BYTES..].copy_from_slice(&value.to_le_bytes());
    frame
}

pub(super) fn acknowledge(frames: u64) -> [u8; ACKNOWLEDGE_BYTES] {
    let mut frame = [0; ACKNOWLEDGE_BYTES];
    frame[..HEADER_BYTES].copy_from_slice(&head(ACKNOWLEDGE, WORD_BYTES));
    frame[HEADER_BYTES..].copy_from_slice(&frames.to_le_bytes());
    frame
}

pub(super) fn object(objection: Objection) -> [u8; HEADER_BYTES + 4] {
    let mut frame = [0; HEADER_BYTES + 4];
    frame[..HEADER_BYTES].copy_from_slice(&head(OBJECT, 4));
    frame[HEADER_BYTES..].copy_from_slice(&objection.0.to_le_bytes());
    frame
}

pub(super) fn bye() -> [u8; HEADER_BYTES] {
    head(BYE, 0)
}

/// A frame that came. A write's data has not been read yet: the receiver says where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Write { target: Target, bytes: usize },
    Update { target: Target, value: u64 },
    Acknowledge { frames: u64 },
    Object(Objection),
    Bye,
}

/// Why no frame came.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    /// Between two frames, or within one.
    #[error("its connection closed without a word")]
    Closed,
    #[error("its connection broke: {0}")]
    Broken(io::Error),
    #[error(transparent)]
    Frame(#[from] Fault),
    #[error("it sent a frame of {bytes} bytes, which none of kind {kind:?} has")]
    Length { kind: Kind, bytes: u32 },
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        if error.kind() == ErrorKind::UnexpectedEof { Self::Closed } else { Self::Broken(error) }
    }
}

/// The next frame, as far as the data of a write.
pub(super) fn receive(input: &mut impl Read) -> Result<Message, Unread> {
    let header = Header::parse(&take(input)?)?;
    check_version(header)?;
    let Header { kind, length, .. } = header;
    let of_length = |expected: usize| {
        if length as usize == expected { Ok(()) } else { Err(Unread::Length { kind, bytes: length }) }
    };
    match kind {
        WRITE => {
            let bytes = (length as usize).checked_sub(TARGET_BYTES);
            let bytes = bytes.filter(|bytes| (1..=PIECE_BYTES).contains(bytes));
            let bytes = bytes.ok_or(Unread::Length { kind, bytes: length })?;
            Ok(Message::Write { target: Target::parse(take(input)?), bytes })
        }
        UPDATE => {
            of_length(TARGET_BYTES + WORD_BYTES)?;
            let target = Target::parse(take(input)?);
            Ok(Message::Update { target, value: u64::from_le_bytes(take(input)?) })
        }
        ACKNOWLEDGE => {
            of_length(WORD_BYTES)?;
            Ok(Message::Acknowledge { frames: u64::from_le_bytes(take(input)?) })
        }
        OBJECT => {
            of_length(4)?;
            Ok(Message::Object(Objection(u32::from_le_bytes(take(input)?))))
        }
        BYE => {
            of_length(0)?;
            Ok(Message::Bye)
        }
        other => Err(Fault::Payload(other).into()),
    }
}

fn take<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TARGET: Target = Target { slot: 0x0102, generation: 3, offset: 0x1_0000_0004 };
    const PACKED_TARGET: [u8; 16] = [2, 1, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0];

    fn frame(kind: u8, length: u8, payload: &[u8]) -> Vec<u8> {
        [&[b'W', b'W', b'B', b'S', 1, 0, kind, 0, length, 0, 0, 0][..], payload].concat()
    }

    #[test]
    fn frames_have_their_bytes() {
        assert_eq!(write_head(TARGET, 5)[..], frame(48, 21, &PACKED_TARGET));
        let word = [9, 0, 0, 0, 0, 0, 0, 0x80];
        assert_eq!(update(TARGET, 9 | 1 << 63)[..], frame(49, 24, &[&PACKED_TARGET[..], &word].concat()));
        assert_eq!(acknowledge(9 | 1 << 63)[..], frame(50, 8, &word));
        assert_eq!(object(Objection::OUTSIDE)[..], frame(51, 4, &[2, 0, 0, 0]));
        assert_eq!(bye()[..], frame(52, 0, &[]));
    }

    #[test]
    fn frames_read_back() {
        let sent = [
            (write_head(TARGET, PIECE_BYTES).to_vec(), Message::Write { target: TARGET, bytes: PIECE_BYTES }),
            (update(TARGET, u64::MAX).to_vec(), Message::Update { target: TARGET, value: u64::MAX }),
            (acknowledge(7).to_vec(), Message::Acknowledge { frames: 7 }),
            (object(Objection(77)).to_vec(), Message::Object(Objection(77))),
            (bye().to_vec(), Message::Bye),
        ];
        for (bytes, message) in sent {
            assert_eq!(receive(&mut &bytes[..]).unwrap(), message);
            for cut in 0..bytes.len() {
                assert!(matches!(receive(&mut &bytes[..cut]), Err(Unread::Closed)), "{message:?}");
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_refused_by_its_header() {
        let mut magic = bye();
        magic[0] = b'X';
        assert!(matches!(receive(&mut &magic[..]), Err(Unread::Frame(Fault::Magic))));
        let mut version = bye();
        version[4] = 2;
        assert!(matches!(receive(&mut &version[..]), Err(Unread::Frame(Fault::Version { theirs: 2 }))));
        let unknown = Header { version: VERSION, kind: Kind(99), length: 0 }.pack();
        assert!(matches!(receive(&mut &unknown[..]), Err(Unread::Frame(Fault::Payload(Kind(99))))));
        let too_long = PIECE_BYTES + TARGET_BYTES + 1;
        for (kind, length) in [
            (WRITE, 0),
            (WRITE, TARGET_BYTES),
            (WRITE, too_long),
            (WRITE, u32::MAX as usize),
            (UPDATE, 23),
            (ACKNOWLEDGE, 9),
            (OBJECT, 0),
            (BYE, 1),
        ] {
            let header = Header { version: VERSION, kind, length: length as u32 }.pack();
            assert!(matches!(receive(&mut &header[..]), Err(Unread::Length { .. })), "{kind:?} {length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(kind in 46u16..54, length in 0u32..40, rest in proptest::collection::vec(any::<u8>(), 0..64)) {
            let header = Header { version: VERSION, kind: Kind(kind), length }.pack();
            let bytes = [&header[..], &rest].concat();
            if let Ok(Message::Write { bytes, .. }) = receive(&mut &bytes[..]) {
                prop_assert!((1..=PIECE_BYTES).contains(&bytes));
            }
        }
    }
}
