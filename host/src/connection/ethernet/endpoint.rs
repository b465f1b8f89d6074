//! How two ends meet: each listens, tells the other where by the bootstrap, and one of them connects.
//!
//! Neither waits for the other to wait for it: ranks may make their connections in whatever order each likes. Meeting is left to
//! the connection's thread; where it comes to nothing the connection fails, and its calls say why.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::endpoint::{Endpoint, Peer};
use super::super::link::{Link, Transport};
use super::EthernetLink;
use super::service::{Meeting, Part};
use crate::bootstrap::DEFAULT_TIMEOUT;
use crate::device::Device;
use crate::env;
use crate::error::{ConnectionError, Error, Result};
use crate::memory::process_id;
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
#[derive(Serialize, Deserialize)]
pub(super) struct Description {
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

    /// Whether this is the end that listens on; the other then is the one that connects, and both know.
    pub(super) fn listens(&self, theirs: &Description) -> bool {
        *self.secret.as_bytes() < theirs.secret
    }

    /// The connection, which is to stand by the deadline. Its callers wait for room for a minute at least.
    pub(super) fn meet(self, peer: Peer<'_>, deadline: Deadline) -> Result<EthernetLink> {
        let refused = |reason: &str| {
            let (transport, reason) = (Transport::Ethernet.name(), reason.to_owned());
            Error::from(ConnectionError::Unreachable { peer: peer.rank, transport, reason })
        };
        let theirs: Description =
            decode(peer.description).ok_or_else(|| refused("its description cannot be read"))?;
        if *self.secret.as_bytes() == theirs.secret {
            return Err(refused("an end cannot connect to itself"));
        }
        let listens = self.listens(&theirs);
        let Self { device, listener, secret, scope } = self;
        let part = if listens {
            Part::Listen { listener, secret, claim: encode(&peer.site.process) }
        } else {
            let (address, secret) = (theirs.endpoint.seen_from(scope), Secret::from_bytes(theirs.secret));
            Part::Connect { address, secret, claim: encode(&process_id()?) }
        };
        let meeting = Meeting { part, deadline, life: peer.life };
        let room = deadline.given().max(DEFAULT_TIMEOUT);
        EthernetLink::start(&device, peer.rank, peer.site.process, meeting, room)
    }
}

impl Endpoint for EthernetEndpoint {
    fn description(&self) -> Result<Vec<u8>> {
        let address = self.listener.local_addr();
        let endpoint = address.map_err(|error| Error::system("asking where an end listens", error))?.into();
        Ok(encode(&Description { endpoint, secret: *self.secret.as_bytes() }))
    }

    /// It waits for nothing, so what is left of the caller's time, maybe little, is not what the ends have to meet in.
    fn join(self: Box<Self>, peer: Peer<'_>, timeout: Duration) -> Result<Arc<dyn Link>> {
        let deadline = Deadline::after(timeout.max(peer.patience));
        Ok(Arc::new(self.meet(peer, deadline)?))
    }
}
