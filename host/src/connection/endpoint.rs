//! How two ends become a connection: what each transport has to be able to do before it has one.

use std::fmt::Debug;
use std::sync::{Arc, Weak};
use std::time::Duration;

use warpwire_device::abi::Rank;

use super::cuda_ipc::CudaIpcEndpoint;
use super::ethernet::EthernetEndpoint;
use super::infiniband::InfiniBandConfig;
#[cfg(feature = "ib")]
use super::infiniband::InfiniBandEndpoint;
use super::link::{Link, Transport};
use super::site::Site;
use crate::bootstrap::Bootstrap;
use crate::device::Device;
use crate::error::{BootstrapError, Departure, Error, Result};

/// What connection is asked for. Both ends have to ask for the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointConfig {
    /// By memory that is mapped here: the peer is on this host, or in this fabric's clique. Where the two share a GPU, threads of it
    /// copy, in blocks of 256: a kernel that fills it and waits for a write waits until its limit. Launches beside ports are held to
    /// leaving room ([`ProxyService::add_port`](crate::proxy::ProxyService::add_port)).
    #[default]
    CudaIpc,
    /// By TCP: to any host, without mapping anything.
    Ethernet,
    /// By RDMA: the peer is anywhere that this rank's adapter reaches.
    InfiniBand(InfiniBandConfig),
}

impl EndpointConfig {
    /// What carries the connection.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self {
            Self::CudaIpc => Transport::CudaIpc,
            Self::Ethernet => Transport::Ethernet,
            Self::InfiniBand(_) => Transport::InfiniBand,
        }
    }

    /// This rank's end: the one place that knows every transport.
    pub(crate) fn prepare(&self, device: &Device, here: &Site) -> Result<Box<dyn Endpoint>> {
        match self {
            Self::CudaIpc => Ok(Box::new(CudaIpcEndpoint::new(device, here))),
            Self::Ethernet => Ok(Box::new(EthernetEndpoint::new(device)?)),
            #[cfg(feature = "ib")]
            Self::InfiniBand(config) => Ok(Box::new(InfiniBandEndpoint::new(device, config)?)),
            #[cfg(not(feature = "ib"))]
            Self::InfiniBand(_) => Err(crate::error::VerbsError::Disabled.into()),
        }
    }
}

/// One end that is ready to meet the other.
pub(crate) trait Endpoint: Debug + Send {
    /// What both ends have to have alike besides the transport, each with its name: a difference is an error on both ends.
    fn terms(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What the other end has to know, in a form of the transport's own: addresses, numbers. A few KiB at most.
    fn description(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// The connection to `peer`, whose description is here and whose terms are the same. The peer does the same, maybe
    /// later: what needs both waits at most `timeout`. The errors name the peer.
    fn join(self: Box<Self>, peer: Peer<'_>, timeout: Duration) -> Result<Arc<dyn Link>>;
}

/// The other end.
#[derive(Debug)]
pub(crate) struct Peer<'a> {
    /// Who it is.
    pub(crate) rank: Rank,
    /// Where it is.
    pub(crate) site: &'a Site,
    /// What it says of itself: bytes of the network's, to be checked.
    pub(crate) description: &'a [u8],
    /// Whether it may still come.
    pub(crate) life: Life,
    /// How long a step with it may take that nobody waits for: it may be asked to do its part later than this end.
    pub(crate) patience: Duration,
}

/// What tells of a peer's death, without keeping this rank in the job.
#[derive(Debug)]
pub(crate) struct Life {
    job: Weak<dyn Bootstrap>,
    rank: Rank,
}

impl Life {
    /// Of rank `rank` of that group.
    pub(crate) fn new(job: Weak<dyn Bootstrap>, rank: Rank) -> Self {
        Self { job, rank }
    }

    /// Why the peer will not come any more, where that is known. One that has left in peace may still come, since its
    /// connections outlive its part in the job; and of a job that this rank has left nothing more is heard.
    pub(crate) fn ended(&self) -> Option<String> {
        match self.job.upgrade()?.expect_present(self.rank) {
            Ok(()) => None,
            Err(Error::Bootstrap(BootstrapError::PeerLost { departure: Departure::Left, .. })) => None,
            Err(Error::Bootstrap(BootstrapError::PeerLost { departure, detail, .. })) => {
                Some(format!("it {departure} ({detail})"))
            }
            Err(error) => Some(error.to_string()),
        }
    }
}
