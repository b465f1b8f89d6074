//! How two ends meet: each listens, tells the other where by the bootstrap, and one of them connects.
//!
//! Neither waits for the other to wait for it: ranks may make their connections in whatever order each likes. What takes both
//! is left to the connection's thread; where it comes to nothing the connection fails, and its calls say why.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::endpoint::{Endpoint, Peer};
use super::super::link::{Link, Transport};
use super::EthernetLink;
use super::service::Meeting;
use crate::device::Device;
use crate::env;
use crate::error::{ConnectionError, Error, Result};
use crate::memory::process_id;
use crate::net::dial::reach;
use crate::net::interface::{InterfaceRule, choose, interfaces};
use crate::net::payload::{decode, encode};
use crate::net::secret::{SECRET_BYTES, Secret};
use crate::net::{self, Deadline};

/// An end that has yet to meet its peer.
#[derive(Debug)]
pub(in super::super) struct EthernetEndpoint {
    device: Device,
    listener: TcpListener,
    secret: Secret,
    /// The number of the interface that it listens on.
    scope: u32,
}

/// What an end tells the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Description {
    endpoint: net::Endpoint,
    /// Known to the two ends alone: the bootstrap carries it.
    secret: [u8; SECRET_BYTES],
}

impl EthernetEndpoint {
    /// An end that listens at a free port of the interface that `WARPWIRE_SOCKET_IFNAME` and `WARPWIRE_SOCKET_FAMILY` name, or
    /// else of one that other hosts reach, where there is one.
    pub(in super::super) fn new(device: &Device) -> Result<Self> {
        let rule = env::socket_interfaces()?.map(|text| text.parse::<InterfaceRule>()).transpose()?;
        let present = interfaces()?;
        let chosen = choose(&present, rule.as_ref(), env::socket_family()?, None)?;
        Self::at(device, chosen.address(0), chosen.index)
    }

    /// An end that listens there.
    pub(super) fn at(device: &Device, address: SocketAddr, scope: u32) -> Result<Self> {
        let listening = || format!("listening at {address} for an Ethernet connection");
        let listener = net::listen(address).map_err(|error| Error::system(&listening(), error))?;
        Ok(Self { device: device.clone(), listener, secret: Secret::random()?, scope })
    }

    /// This end's part in making the connection. The end with the smaller secret is the one that listens on, so both know who
    /// does; the other connects.
    fn meeting(self, peer: Peer<'_>, theirs: &Description, timeout: Duration) -> Result<Meeting> {
        let unreachable = |reason: String| {
            let transport = Transport::Ethernet.name();
            Error::from(ConnectionError::Unreachable { peer: peer.rank, transport, reason })
        };
        if *self.secret.as_bytes() == theirs.secret {
            return Err(unreachable("an end cannot connect to itself".to_owned()));
        }
        if *self.secret.as_bytes() < theirs.secret {
            let claim = encode(&peer.site.process);
            return Ok(Meeting::Listen { listener: self.listener, secret: self.secret, claim });
        }
        let address = theirs.endpoint.seen_from(self.scope);
        // The peer has listened there since before it said so, whatever else it does now.
        let stream = reach(address, timeout).map_err(|error| {
            let variable = env::SOCKET_IFNAME;
            unreachable(format!(
                "{address}: {error}; where its host has several networks, {variable} says which to use"
            ))
        })?;
        let (secret, claim) = (Secret::from_bytes(theirs.secret), encode(&process_id()?));
        Ok(Meeting::Introduce { stream, address, secret, claim })
    }
}

impl Endpoint for EthernetEndpoint {
    fn description(&self) -> Result<Vec<u8>> {
        let address = self.listener.local_addr();
        let endpoint = address.map_err(|error| Error::system("asking where an end listens", error))?.into();
        Ok(encode(&Description { endpoint, secret: *self.secret.as_bytes() }))
    }

    fn join(self: Box<Self>, peer: Peer<'_>, timeout: Duration) -> Result<Arc<dyn Link>> {
        let theirs: Description = decode(peer.description).ok_or_else(|| {
            let (transport, reason) =
                (Transport::Ethernet.name(), "its description cannot be read".to_owned());
            Error::from(ConnectionError::Unreachable { peer: peer.rank, transport, reason })
        })?;
        let deadline = Deadline::after(timeout);
        let (device, process) = (self.device.clone(), peer.site.process);
        let meeting = self.meeting(peer, &theirs, timeout)?;
        Ok(Arc::new(EthernetLink::start(&device, peer.rank, process, meeting, deadline)?))
    }
}
