//! Which ranks of the job a group has.

use std::time::Duration;

use sha2::{Digest, Sha256};
use warpwire_device::abi::Rank;

use super::super::mailbox::{Failure, Loss};
use crate::error::{BootstrapError, Error, Result};

/// A group's ranks, as ranks of the whole job, in the group's order.
#[derive(Debug)]
pub(super) struct Members {
    world: Vec<Rank>,
    own: usize,
    tag: u64,
}

impl Members {
    pub(super) fn new(world: Vec<Rank>, own: usize) -> Self {
        let tag = tag_of(&world);
        Self { world, own, tag }
    }

    pub(super) fn len(&self) -> usize {
        self.world.len()
    }

    /// This rank in the group.
    pub(super) fn own(&self) -> Rank {
        Rank(self.own as u32)
    }

    /// This rank in the job.
    pub(super) fn own_world(&self) -> Rank {
        self.world[self.own]
    }

    /// A rank of the group as a rank of the job.
    pub(super) fn world(&self, rank: Rank) -> Result<Rank> {
        let known = self.world.get(rank.0 as usize).copied();
        known.ok_or(Error::NoSuchRank { rank, ranks: self.len() })
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Rank] {
        &self.world
    }

    /// The number under which these ranks make collective calls: another for every other set, so that calls of sets that
    /// overlap never meet.
    pub(super) fn tag(&self) -> u64 {
        self.tag
    }

    /// What a failure means in this group.
    pub(super) fn error(&self, operation: &'static str, waited: Duration, failure: Failure) -> Error {
        let here = |world: Rank| {
            let place = self.world.iter().position(|rank| *rank == world);
            place.map_or(world, |place| Rank(place as u32))
        };
        let error = match failure {
            Failure::Lost(Loss { rank: world, departure, detail }) => {
                BootstrapError::PeerLost { operation, rank: here(world), world, departure, detail }
            }
            Failure::Timeout { rank: world } => {
                BootstrapError::Timeout { operation, rank: here(world), world, waited }
            }
            Failure::Mismatch { rank: world, ours, theirs } => {
                BootstrapError::Mismatch { rank: here(world), world, ours, theirs }
            }
            Failure::Aborted => BootstrapError::Aborted { operation },
            Failure::Other(error) => return error,
        };
        error.into()
    }
}

fn tag_of(ranks: &[Rank]) -> u64 {
    let mut hash = Sha256::new();
    hash.update(b"warpwire set\0");
    for rank in ranks {
        hash.update(rank.0.to_le_bytes());
    }
    leading_u64(&hash.finalize())
}

/// The first eight bytes of a digest.
pub(super) fn leading_u64(digest: &[u8]) -> u64 {
    digest.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_tags_of_their_own() {
        let tag = |ranks: &[u32]| tag_of(&ranks.iter().copied().map(Rank).collect::<Vec<_>>());
        assert_ne!(tag(&[0, 1, 2]), tag(&[0, 2]));
        assert_ne!(tag(&[0, 1]), tag(&[1]));
        assert_eq!(tag(&[0, 2]), tag(&[0, 2]));
        assert_eq!(leading_u64(&[1, 2, 0, 0, 0, 0, 0, 0, 9]), 0x201);
    }

    #[test]
    fn ranks_are_worded_for_the_group() {
        let members = Members::new(vec![Rank(4), Rank(7)], 0);
        let error = members.error("recv", Duration::from_secs(1), Failure::Timeout { rank: Rank(7) });
        assert!(
            error.to_string().starts_with("recv: rank 1 (7 of the job) did not answer within 1s"),
            "{error}"
        );
        assert!(matches!(members.world(Rank(2)), Err(Error::NoSuchRank { rank: Rank(2), ranks: 2 })));
    }
}
