//! Payloads that have a structure, and the one that all connections share. New fields and variants are added at the end, under
//! a new version.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::frame::{Fault, Frame, Kind, pack};

/// Where somebody listens. Unlike the standard library's address it keeps an IPv6 address' scope when it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) ip: IpAddr,
    pub(crate) port: u16,
    /// The interface of a link-local address, by its number on the listener's host; else 0.
    pub(crate) scope: u32,
}

impl Endpoint {
    /// The address to connect to, from a host on which the link is the interface `scope`: interfaces have other numbers on
    /// other hosts.
    pub(crate) fn seen_from(self, scope: u32) -> SocketAddr {
        match self.ip {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => SocketAddrV6::new(ip, self.port, 0, scope).into(),
            ip => SocketAddr::new(ip, self.port),
        }
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        let scope = match address {
            SocketAddr::V4(_) => 0,
            SocketAddr::V6(address) => address.scope_id(),
        };
        Self { ip: address.ip().to_canonical(), port: address.port(), scope }
    }
}

/// A frame with a structured payload. Nothing here fails to be packed: there are no maps and no sequences of unknown length.
pub(crate) fn pack_value(kind: Kind, value: &impl Serialize) -> Vec<u8> {
    pack(kind, &encode(value))
}

pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap_or_default()
}

/// The structured payload of a frame.
pub(crate) fn open_value<T: DeserializeOwned>(frame: &Frame) -> Result<T, Fault> {
    decode(&frame.payload).ok_or(Fault::Payload(frame.kind))
}

/// All of the bytes as a value.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::take_from_bytes(bytes).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn endpoint() -> Endpoint {
        Endpoint { ip: Ipv4Addr::new(10, 0, 0, 5).into(), port: 0x0102, scope: 3 }
    }

    #[test]
    fn an_endpoint_is_packed_as_ever() {
        assert_eq!(encode(&endpoint()), [0, 10, 0, 0, 5, 0x82, 0x02, 3]);
        assert_eq!(decode(&encode(&endpoint())), Some(endpoint()));
    }

    #[test]
    fn a_link_local_address_is_reached_through_ones_own_interface() {
        let link_local = Endpoint { ip: "fe80::1".parse().unwrap(), port: 5, scope: 9 };
        assert_eq!(link_local.seen_from(2).to_string(), "[fe80::1%2]:5");
        assert_eq!(endpoint().seen_from(2).to_string(), "10.0.0.5:258");
        let mapped: SocketAddr = "[::ffff:10.0.0.5]:7".parse().unwrap();
        assert_eq!(Endpoint::from(mapped).ip, Ipv4Addr::new(10, 0, 0, 5));
    }
}
