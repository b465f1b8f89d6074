//! Who shares what: pure functions of what each rank said of itself, so that every rank comes to the same answer.

use std::collections::HashMap;
use std::hash::Hash;

use warpwire_device::abi::Rank;

use super::domain::DomainId;
use crate::env::HostId;

/// Where a rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) host: HostId,
    pub(super) domain: DomainId,
}

/// The hosts and memory domains of a group's ranks. Ranks of one host need not have numbers in a row, nor need every host
/// have as many.
#[derive(Clone, Debug)]
pub struct Topology {
    hosts: Vec<HostId>,
    domain_ids: Vec<DomainId>,
    nodes: Sharing,
    domains: Sharing,
}

impl Topology {
    /// Of the places of ranks 0, 1, 2 and so on.
    pub(super) fn new(places: &[Place]) -> Self {
        let hosts: Vec<HostId> = places.iter().map(|place| place.host).collect();
        let domains: Vec<DomainId> = places.iter().map(|place| place.domain).collect();
        Self { nodes: Sharing::new(&hosts), domains: Sharing::new(&domains), hosts, domain_ids: domains }
    }

    /// The rank's host; none for a rank that is not in the group.
    #[must_use]
    pub fn host(&self, rank: Rank) -> Option<HostId> {
        self.hosts.get(rank.0 as usize).copied()
    }

    /// The ranks of each host, hosts in the order of their lowest rank.
    #[must_use]
    pub fn nodes(&self) -> &[Vec<Rank>] {
        &self.nodes.sets
    }

    /// The ranks on the rank's host, itself included; none for a rank that is not in the group.
    #[must_use]
    pub fn node_of(&self, rank: Rank) -> &[Rank] {
        self.nodes.set_of(rank)
    }

    /// The rank's place among those on its host, from 0; none for a rank that is not in the group.
    #[must_use]
    pub fn local_rank(&self, rank: Rank) -> Option<usize> {
        self.node_of(rank).iter().position(|other| *other == rank)
    }

    /// The ranks per host, where all hosts have as many.
    #[must_use]
    pub fn uniform(&self) -> Option<usize> {
        let first = self.nodes.sets.first()?.len();
        self.nodes.sets.iter().all(|node| node.len() == first).then_some(first)
    }

    /// Whose memory the rank can map; none for a rank that is not in the group.
    #[must_use]
    pub fn domain(&self, rank: Rank) -> Option<DomainId> {
        self.domain_ids.get(rank.0 as usize).copied()
    }

    /// The ranks that can share memory with the rank, itself included; none for a rank that is not in the group.
    #[must_use]
    pub fn domain_of(&self, rank: Rank) -> &[Rank] {
        self.domains.set_of(rank)
    }
}

/// Ranks sorted into sets by what they have in common.
#[derive(Clone, Debug)]
struct Sharing {
    sets: Vec<Vec<Rank>>,
    /// Each rank's set.
    set_of: Vec<usize>,
}

impl Sharing {
    fn new<K: Eq + Hash>(keys: &[K]) -> Self {
        let mut sets: Vec<Vec<Rank>> = Vec::new();
        let mut known = HashMap::new();
        let sort = |(rank, key)| {
            let set = *known.entry(key).or_insert_with(|| {
                sets.push(Vec::new());
                sets.len() - 1
            });
            sets[set].push(Rank(rank));
            set
        };
        let set_of = (0..).zip(keys).map(sort).collect();
        Self { sets, set_of }
    }

    fn set_of(&self, rank: Rank) -> &[Rank] {
        self.set_of.get(rank.0 as usize).map_or(&[], |set| &self.sets[*set])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(hosts: &[&str]) -> Topology {
        let place = |name: &&str| {
            let host = HostId::named(name);
            Place { host, domain: host.into() }
        };
        Topology::new(&hosts.iter().map(place).collect::<Vec<_>>())
    }

    fn ranks(numbers: &[u32]) -> Vec<Rank> {
        numbers.iter().copied().map(Rank).collect()
    }

    #[test]
    fn ranks_of_a_host_need_not_stand_in_a_row() {
        let topology = on(&["A", "B", "A", "B"]);
        assert_eq!(topology.nodes(), [ranks(&[0, 2]), ranks(&[1, 3])]);
        assert_eq!(topology.local_rank(Rank(2)), Some(1));
        assert_eq!(topology.uniform(), Some(2));
        assert_eq!(topology.host(Rank(1)), topology.host(Rank(3)));
        assert_ne!(topology.host(Rank(0)), topology.host(Rank(1)));
        let outside = Rank(4);
        assert_eq!((topology.host(outside), topology.local_rank(outside)), (None, None));
        assert_eq!(topology.node_of(outside), []);
    }

    #[test]
    fn hosts_may_have_different_numbers() {
        for (hosts, sizes) in [(&["A", "A", "B"][..], [2, 1]), (&["A", "A", "A", "B"], [3, 1])] {
            let topology = on(hosts);
            let last = Rank(hosts.len() as u32 - 1);
            assert_eq!([topology.node_of(Rank(0)).len(), topology.node_of(last).len()], sizes);
            assert_eq!((topology.local_rank(Rank(1)), topology.local_rank(last)), (Some(1), Some(0)));
            assert_eq!(topology.uniform(), None);
        }
    }

    #[test]
    fn a_domain_may_span_hosts() {
        let fabric = DomainId::of_fabric([3; 16], 1).unwrap();
        let places = ["A", "B"].map(|name| Place { host: HostId::named(name), domain: fabric });
        let topology = Topology::new(&places);
        assert_eq!(topology.domain_of(Rank(0)), ranks(&[0, 1]));
        assert_eq!(topology.node_of(Rank(0)), ranks(&[0]));
    }
}
