//! The payloads that have a structure. New fields and variants are added at the end, under a new version.

use serde::{Deserialize, Serialize};
use warpwire_device::abi::Rank;

use super::super::domain::DomainId;
use crate::env::HostId;
use crate::error::{BootstrapError, Departure, Refusal};
use crate::net::Endpoint;

/// A rank, as the others have to know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) host: HostId,
    pub(super) domain: DomainId,
    pub(super) endpoint: Endpoint,
}

/// Who a guest is and what it wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) purpose: Purpose,
}

/// What a guest wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// To be one of the job's ranks; only the root can grant it.
    CheckIn(Member),
    /// A connection to the rank `to`, once the job has started.
    Link { to: u32 },
}

/// Everybody, from the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Roster {
    /// The secret by which ranks of this run know each other: a run before or beside it has another.
    pub(super) session: [u8; 32],
    pub(super) members: Vec<Member>,
}

/// Why a job cannot start, from the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SetupFailure {
    CheckIn { address: String, refusal: Refusal },
    Missing { missing: Vec<u32>, size: u32, waited_ms: u64, strangers: String },
    Lost { rank: u32, detail: String },
}

impl From<SetupFailure> for BootstrapError {
    fn from(failure: SetupFailure) -> Self {
        match failure {
            SetupFailure::CheckIn { address, refusal } => Self::CheckIn { address, refusal },
            SetupFailure::Missing { missing, size, waited_ms, strangers } => Self::Missing {
                missing: missing.into_iter().map(Rank).collect(),
                size: size as usize,
                waited: std::time::Duration::from_millis(waited_ms),
                strangers,
            },
            SetupFailure::Lost { rank, detail } => Self::PeerLost {
                operation: "check-in",
                rank: Rank(rank),
                world: Rank(rank),
                departure: Departure::Lost,
                detail,
            },
        }
    }
}

/// The ranks that went, in a frame of the kind `NOTICE`.
pub(super) type Notice = Vec<(u32, Departure)>;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::net::payload::{decode, encode};
    use proptest::prelude::*;

    fn endpoint() -> Endpoint {
        Endpoint { ip: Ipv4Addr::new(10, 0, 0, 5).into(), port: 0x0102, scope: 3 }
    }

    #[test]
    fn payloads_are_packed_as_ever() {
        let link = Claim { rank: 2, size: 300, purpose: Purpose::Link { to: 1 } };
        assert_eq!(encode(&link), [2, 0xac, 0x02, 1, 1]);
        let host = HostId::named("a");
        let member = Member { host, domain: host.into(), endpoint: endpoint() };
        let claim = Claim { rank: 2, size: 3, purpose: Purpose::CheckIn(member) };
        let expected = [&[2, 3, 0][..], host.as_bytes(), host.as_bytes(), &encode(&endpoint())].concat();
        assert_eq!(encode(&claim), expected);
        assert_eq!(encode(&Refusal::Secret), [0]);
        assert_eq!(encode(&Refusal::Version { joiner: 2, root: 1 }), [1, 2, 1]);
        assert_eq!(encode(&Refusal::RankBeyond { rank: 4, size: 4 }), [2, 4, 4]);
        assert_eq!(encode(&Refusal::DuplicateRank { rank: 1 }), [3, 1]);
        assert_eq!(encode(&Refusal::OtherSize { joiner: 2, root: 4 }), [4, 2, 4]);
        assert_eq!(encode(&Refusal::Complete), [5]);
        assert_eq!(encode(&Refusal::OtherRank { asked: 1, here: 2 }), [6, 1, 2]);
        assert_eq!(encode(&vec![(3u32, Departure::Left), (4, Departure::Lost)]), [2, 3, 0, 4, 2]);
        assert_eq!(encode(&SetupFailure::Lost { rank: 1, detail: "x".to_owned() }), [2, 1, 1, b'x']);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(claim) = decode::<Claim>(&bytes) {
                prop_assert_eq!(decode::<Claim>(&encode(&claim)), Some(claim));
            }
            _ = decode::<Roster>(&bytes);
            _ = decode::<SetupFailure>(&bytes);
            _ = decode::<Refusal>(&bytes);
            _ = decode::<Notice>(&bytes);
        }
    }
}
