//! How a rank takes part.

use std::time::Duration;

use super::super::DEFAULT_TIMEOUT;
use super::super::domain::DomainId;
use super::super::mailbox::Limits;
use super::super::topology::Place;
use crate::env::{self, Family, HostId};
use crate::error::Result;
use crate::net::interface::InterfaceRule;

/// How a rank takes part in a job over TCP.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    pub(super) timeout: Duration,
    pub(super) interfaces: Option<InterfaceRule>,
    pub(super) family: Option<Family>,
    pub(super) place: Place,
    pub(super) limits: Limits,
}

impl TcpOptions {
    /// As the environment says: `WARPWIRE_BOOTSTRAP_TIMEOUT`, `WARPWIRE_SOCKET_IFNAME`, `WARPWIRE_SOCKET_FAMILY` and
    /// `WARPWIRE_HOST_ID`, each where it is set.
    ///
    /// # Errors
    ///
    /// A variable with a value that it cannot have; a machine that cannot be told from others.
    pub fn from_env() -> Result<Self> {
        let host = env::host_id()?;
        Ok(Self {
            timeout: env::bootstrap_timeout()?.unwrap_or(DEFAULT_TIMEOUT),
            interfaces: env::socket_interfaces()?.map(|text| text.parse()).transpose()?,
            family: env::socket_family()?,
            place: Place { host, domain: host.into() },
            limits: Limits::default(),
        })
    }

    /// How long each step may take: the whole of the check-in, and later each call that is given no time of its own.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The interfaces to listen on: a list of names' beginnings with commas between them, after `=` of whole names, after
    /// `^` of those not to be used. Without it, the one by which this rank reaches rank 0.
    ///
    /// # Errors
    ///
    /// [`InvalidInterfaces`](crate::error::BootstrapError::InvalidInterfaces).
    pub fn interfaces(mut self, list: &str) -> Result<Self> {
        self.interfaces = Some(list.parse()?);
        Ok(self)
    }

    /// The family of the addresses to use.
    #[must_use]
    pub fn family(mut self, family: Family) -> Self {
        self.family = Some(family);
        self
    }

    /// The host that this rank counts as being on.
    #[must_use]
    pub fn host_id(mut self, host: HostId) -> Self {
        self.place = Place { host, domain: host.into() };
        self
    }

    /// The ranks that this one can share memory with: those with this domain. Without it, those on its host.
    #[must_use]
    pub fn ipc_domain(mut self, domain: DomainId) -> Self {
        self.place.domain = domain;
        self
    }
}
