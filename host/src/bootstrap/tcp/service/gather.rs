//! The check-in, at the root: who has come, and who cannot be of the job.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::payload::{Claim, Member, SetupFailure};
use crate::error::Refusal;

/// The ranks that have checked in.
#[derive(Debug)]
pub(in super::super) struct Gather {
    members: Vec<Option<Member>>,
    /// How many connections were turned away, and the last of them.
    turned_away: u32,
    last: String,
}

impl Gather {
    /// Rank 0 is there, of `size`.
    pub(in super::super) fn new(size: usize, root: Member) -> Self {
        let mut members = vec![None; size];
        if let Some(first) = members.first_mut() {
            *first = Some(root);
        }
        Self { members, turned_away: 0, last: String::new() }
    }

    /// Takes a rank in.
    pub(super) fn check_in(&mut self, claim: &Claim, member: Member) -> Result<(), Refusal> {
        let size = self.members.len() as u32;
        if claim.size != size {
            return Err(Refusal::OtherSize { joiner: claim.size, root: size });
        }
        match self.members.get_mut(claim.rank as usize) {
            None => Err(Refusal::RankBeyond { rank: claim.rank, size }),
            Some(Some(_)) => Err(Refusal::DuplicateRank { rank: claim.rank }),
            Some(place) => {
                *place = Some(member);
                Ok(())
            }
        }
    }

    /// Remembers a connection that was turned away, for the ranks that do not come.
    pub(super) fn turned_away(&mut self, address: SocketAddr, why: &str) {
        self.turned_away += 1;
        self.last = format!("{address}: {why}");
    }

    /// Everybody, once everybody is there.
    pub(super) fn complete(&self) -> Option<Vec<Member>> {
        self.members.iter().cloned().collect()
    }

    /// What to say when the time is up.
    pub(super) fn failure(&self, waited: Duration) -> SetupFailure {
        let missing = (0..).zip(&self.members).filter(|(_, member)| member.is_none()).map(|(rank, _)| rank);
        let strangers = match self.turned_away {
            0 => String::new(),
            count => format!(" ({count} connections were turned away, the last: {})", self.last),
        };
        SetupFailure::Missing {
            missing: missing.collect(),
            size: self.members.len() as u32,
            waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
            strangers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::payload::Purpose;
    use super::*;
    use crate::env::HostId;
    use crate::error::BootstrapError;
    use crate::net::Endpoint;

    fn member() -> Member {
        let host = HostId::named("a");
        Member {
            host,
            domain: host.into(),
            endpoint: Endpoint { ip: [127, 0, 0, 1].into(), port: 1, scope: 0 },
        }
    }

    fn check_in(gather: &mut Gather, rank: u32, size: u32) -> Result<(), Refusal> {
        gather.check_in(&Claim { rank, size, purpose: Purpose::CheckIn(member()) }, member())
    }

    #[test]
    fn ranks_that_cannot_be_are_refused() {
        let mut gather = Gather::new(3, member());
        assert_eq!(check_in(&mut gather, 1, 3), Ok(()));
        for (rank, size, refusal) in [
            (0, 3, Refusal::DuplicateRank { rank: 0 }),
            (1, 3, Refusal::DuplicateRank { rank: 1 }),
            (3, 3, Refusal::RankBeyond { rank: 3, size: 3 }),
            (i32::MAX as u32, 3, Refusal::RankBeyond { rank: i32::MAX as u32, size: 3 }),
            (u32::MAX, 3, Refusal::RankBeyond { rank: u32::MAX, size: 3 }),
            (2, 4, Refusal::OtherSize { joiner: 4, root: 3 }),
        ] {
            assert_eq!(check_in(&mut gather, rank, size), Err(refusal));
        }
        assert_eq!(gather.complete(), None);
        assert_eq!(check_in(&mut gather, 2, 3), Ok(()));
        assert_eq!(gather.complete().unwrap().len(), 3);
    }

    #[test]
    fn those_missing_are_named() {
        let mut gather = Gather::new(4, member());
        check_in(&mut gather, 2, 4).unwrap();
        gather.turned_away("10.0.0.9:5".parse().unwrap(), "noise");
        let error = BootstrapError::from(gather.failure(Duration::from_secs(2))).to_string();
        let text = "ranks 1, 3 of 4 did not check in within 2s (1 connections were turned away, the last: 10.0.0.9:5: noise)";
        assert!(error.starts_with(text), "{error}");
    }
}
