//! What an importer and the exporter's service say to each other: one request, one reply, each one packet.
//!
//! ```text
//! request  0  4  magic "WWRQ"          reply  0  4  magic "WWRP"
//!          4  2  version                      4  2  version
//!          6  2  operation                    6  2  status
//!          8  8  the export's number          with a descriptor where that was asked for
//!          16 32 its token
//! ```
//!
//! Numbers are little-endian: both ends are on one host.

use crate::error::MemoryError;

const REQUEST_MAGIC: [u8; 4] = *b"WWRQ";
const REPLY_MAGIC: [u8; 4] = *b"WWRP";
const VERSION: u16 = 1;

/// Bytes of a request.
pub(super) const REQUEST_BYTES: usize = 48;
/// Bytes of a reply.
pub(super) const REPLY_BYTES: usize = 8;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Operation {
    /// To keep the exported object until the connection ends.
    Hold = 1,
    /// Its descriptor.
    Descriptor = 2,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) operation: Operation,
    pub(super) export: u64,
    pub(super) token: [u8; 32],
}

impl Request {
    pub(super) fn pack(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[0..4].copy_from_slice(&REQUEST_MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&(self.operation as u16).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.export.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.token);
        bytes
    }

    /// The request in `bytes`; the status to answer with where there is none.
    pub(super) fn unpack(bytes: &[u8]) -> Result<Self, Status> {
        let Ok(bytes) = <&[u8; REQUEST_BYTES]>::try_from(bytes) else { return Err(Status::NoRequest) };
        if bytes[0..4] != REQUEST_MAGIC {
            return Err(Status::NoRequest);
        }
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if half(4) != VERSION {
            return Err(Status::OtherVersion);
        }
        let operation = match half(6) {
            1 => Operation::Hold,
            2 => Operation::Descriptor,
            _ => return Err(Status::NoRequest),
        };
        let export = u64::from_le_bytes(std::array::from_fn(|i| bytes[8 + i]));
        Ok(Self { operation, export, token: std::array::from_fn(|i| bytes[16 + i]) })
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Status {
    /// It is done.
    Done = 0,
    /// There is no such export (any more).
    NoExport = 1,
    /// The token is not the export's.
    WrongToken = 2,
    /// The asker runs as another user.
    OtherUser = 3,
    /// The export has no descriptor.
    NoDescriptor = 4,
    /// The request is of another version.
    OtherVersion = 5,
    /// It is no request.
    NoRequest = 6,
}

impl Status {
    const ALL: [Self; 7] = [
        Self::Done,
        Self::NoExport,
        Self::WrongToken,
        Self::OtherUser,
        Self::NoDescriptor,
        Self::OtherVersion,
        Self::NoRequest,
    ];

    pub(super) fn pack(self) -> [u8; REPLY_BYTES] {
        let mut bytes = [0; REPLY_BYTES];
        bytes[0..4].copy_from_slice(&REPLY_MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&(self as u16).to_le_bytes());
        bytes
    }

    /// The status in `bytes`; `None` where it is no reply.
    pub(super) fn unpack(bytes: &[u8]) -> Option<Self> {
        let bytes = <&[u8; REPLY_BYTES]>::try_from(bytes).ok()?;
        let number = u16::from_le_bytes([bytes[6], bytes[7]]);
        let known = bytes[0..4] == REPLY_MAGIC && bytes[4..6] == VERSION.to_le_bytes();
        Self::ALL.into_iter().find(|status| known && *status as u16 == number)
    }

    /// As a result of the asker's.
    pub(super) fn check(self) -> Result<(), MemoryError> {
        let reason = match self {
            Self::Done => return Ok(()),
            Self::NoExport => {
                let detail = "its process runs, but has dropped the export".to_owned();
                return Err(MemoryError::ExporterGone { detail });
            }
            Self::WrongToken => "the handle's token is not the export's: take the handle anew",
            Self::OtherUser => "it runs as another user: start all processes of the job as one",
            Self::NoDescriptor => "the export has no file descriptor",
            Self::OtherVersion => {
                "it speaks another version: use one version of the library in all processes"
            }
            Self::NoRequest => "it took the request for something else",
        };
        Err(MemoryError::HandOverRefused { reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_bytes() {
        let request =
            Request { operation: Operation::Descriptor, export: 0x0807_0605_0403_0201, token: [0xA5; 32] };
        let bytes = request.pack();
        assert_eq!(bytes[..16], *b"WWRQ\x01\x00\x02\x00\x01\x02\x03\x04\x05\x06\x07\x08");
        assert_eq!(bytes[16..], [0xA5; 32]);
        assert_eq!(Request::unpack(&bytes), Ok(request));
    }

    #[test]
    fn what_is_no_request_gets_a_status() {
        let good = Request { operation: Operation::Hold, export: 1, token: [7; 32] }.pack();
        assert_eq!(Request::unpack(&good[..47]), Err(Status::NoRequest));
        assert_eq!(Request::unpack(&[]), Err(Status::NoRequest));
        for (at, status) in [(0, Status::NoRequest), (4, Status::OtherVersion), (6, Status::NoRequest)] {
            let mut bad = good;
            bad[at] ^= 0x40;
            assert_eq!(Request::unpack(&bad), Err(status));
        }
    }

    #[test]
    fn replies_read_back() {
        assert_eq!(Status::WrongToken.pack(), *b"WWRP\x01\x00\x02\x00");
        for status in Status::ALL {
            assert_eq!(Status::unpack(&status.pack()), Some(status));
        }
        assert_eq!(Status::unpack(b"WWRP\x01\x00\x63\x00"), None);
        assert_eq!(Status::unpack(b"WWRP\x02\x00\x00\x00"), None);
        assert_eq!(Status::unpack(b"WWRP"), None);
    }
}
