//! How a queue pair's packets find their peer.

use ibverbs_sys as ffi;
use serde::{Deserialize, Serialize};

use super::gid::Gid;

/// Routers that a packet may pass.
const HOP_LIMIT: u8 = 64;

/// Where a queue pair is, for its peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Address {
    /// The queue pair's number.
    pub(crate) number: u32,
    /// The number of its first packet: 24 bits.
    pub(crate) first_packet: u32,
    /// The port's address in an InfiniBand subnet; 0 on Ethernet.
    pub(crate) lid: u16,
    /// The port's address beyond that.
    pub(crate) gid: Gid,
    /// The largest packet, as the verbs' code.
    pub(crate) mtu: u32,
    /// Whether the port is an Ethernet's (RoCE).
    pub(crate) is_ethernet: bool,
}

/// The port that packets leave by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) port: u8,
    /// The row of the port's table that they carry as their source.
    pub(crate) gid_index: u8,
    pub(crate) gid: Gid,
    pub(crate) lid: u16,
    /// As for [`Address::mtu`].
    pub(crate) mtu: u32,
    pub(crate) is_ethernet: bool,
}

impl Route {
    /// The address vector to `peer`. Within an InfiniBand subnet its LID is enough; RoCE, and another subnet, need the GID.
    pub(super) fn vector(&self, peer: &Address) -> ffi::ibv_ah_attr {
        let subnet = |gid: &Gid| gid[..8].to_vec();
        let global = self.is_ethernet || subnet(&self.gid) != subnet(&peer.gid);
        let mut vector = ffi::ibv_ah_attr {
            dlid: peer.lid,
            port_num: self.port,
            is_global: u8::from(global),
            ..Default::default()
        };
        if global {
            vector.grh = ffi::ibv_global_route {
                dgid: ffi::ibv_gid { raw: peer.gid },
                sgid_index: self.gid_index,
                hop_limit: HOP_LIMIT,
                ..Default::default()
            };
        }
        vector
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(is_ethernet: bool, subnets: [u8; 2]) -> (Route, Address) {
        let gid = |subnet| [subnet; 16];
        let route = Route { port: 2, gid_index: 3, gid: gid(subnets[0]), lid: 7, mtu: 5, is_ethernet };
        let peer = Address { number: 1, first_packet: 0, lid: 9, gid: gid(subnets[1]), mtu: 5, is_ethernet };
        (route, peer)
    }

    #[test]
    fn roce_and_other_subnets_go_by_gid() {
        for (ethernet, subnets, global) in [(false, [1, 1], 0), (false, [1, 2], 1), (true, [1, 1], 1)] {
            let (route, peer) = ends(ethernet, subnets);
            let vector = route.vector(&peer);
            assert_eq!((vector.is_global, vector.dlid, vector.port_num), (global, 9, 2));
            if global == 1 {
                assert_eq!((vector.grh.sgid_index, vector.grh.hop_limit), (3, HOP_LIMIT));
                // SAFETY: each form of the union is 16 plain bytes.
                assert_eq!(unsafe { vector.grh.dgid.raw }, peer.gid);
            }
        }
    }
}
