//! How two ends meet: each listens, tells the other where by the bootstrap, and one of them connects.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use socket2::SockRef;
use warpwire_device::abi::Rank;

use super::super::endpoint::{Endpoint, Peer};
use super::super::link::{Link, Transport};
use super::EthernetLink;
use super::greeting::{Greeted, greet};
use crate::device::Device;
use crate::env;
use crate::error::{ConnectionError, Error, Result};
use crate::memory::{ProcessId, process_id};
use crate::net::dial::{DialFault, dial};
use crate::net::interface::{InterfaceRule, choose, interfaces};
use crate::net::payload::{decode, encode};
use crate::net::secret::{SECRET_BYTES, Secret};
use crate::net::{self, Deadline};

/// How long a peer may leave what is sent to it untaken before it counts as gone: about as long as it takes keep-alive probes
/// to find out that a host has gone without a word.
const SILENCE: Duration = Duration::from_secs(30);

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

    /// The socket of the connection, and what came behind the handshake.
    ///
    /// The end with the smaller secret is the one that listens on, so both know who does; the other connects.
    fn meet(&self, peer: Peer<'_>, theirs: &Description, deadline: Deadline) -> Result<Greeted> {
        let unreachable = |reason: String| {
            let transport = Transport::Ethernet.name();
            Error::from(ConnectionError::Unreachable { peer: peer.rank, transport, reason })
        };
        if *self.secret.as_bytes() == theirs.secret {
            return Err(unreachable("an end cannot connect to itself".to_owned()));
        }
        if *self.secret.as_bytes() < theirs.secret {
            let claim = encode(&peer.site.process);
            let greeted = greet(&self.listener, &self.secret, &claim, deadline)
                .map_err(|error| Error::system("waiting for the peer to connect", error))?;
            return greeted.ok_or_else(|| late(peer.rank, deadline));
        }
        let own: ProcessId = process_id()?;
        let mut claim = |_: &TcpStream| Ok(encode(&own));
        let address = theirs.endpoint.seen_from(self.scope);
        let secret = Secret::from_bytes(theirs.secret);
        let dialled = dial(&[address], &secret, &mut claim, deadline, &|| false);
        let connection = dialled.map_err(|fault| match fault {
            DialFault::Late { attempts: 0, .. } | DialFault::Stopped => late(peer.rank, deadline),
            DialFault::Late { attempts, last } => unreachable(format!(
                "{attempts} attempts within {:?} came to nothing, the last: {last}; where its hosts have several networks, \
                 {} says which to use",
                deadline.given(),
                env::SOCKET_IFNAME
            )),
            DialFault::Refused { address, refusal } => unreachable(format!("{address} refused it: {refusal}")),
            DialFault::Stranger { address, reason } => unreachable(format!("{address} is not its: {reason}")),
            DialFault::Other(error) => error,
        })?;
        let early = connection.reader.into_rest();
        // Nothing else has the socket: the dialled connection is taken apart here.
        let stream = Arc::try_unwrap(connection.stream)
            .map_err(|_| unreachable("its new socket is in use".to_owned()))?;
        Ok(Greeted { stream, early })
    }
}

fn late(peer: Rank, deadline: Deadline) -> Error {
    let (transport, timeout) = (Transport::Ethernet.name(), deadline.given());
    ConnectionError::Timeout { peer, transport, timeout }.into()
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
        let Greeted { stream, early } = self.meet(peer, &theirs, Deadline::after(timeout))?;
        let prepared = (|| {
            stream.set_read_timeout(None)?;
            stream.set_write_timeout(None)?;
            SockRef::from(&stream).set_tcp_user_timeout(Some(SILENCE))
        })();
        prepared.map_err(|error| Error::system("setting up a connection's socket", error))?;
        let link = EthernetLink::start(&self.device, peer.rank, peer.site.process, stream, early, timeout)?;
        Ok(Arc::new(link))
    }
}
