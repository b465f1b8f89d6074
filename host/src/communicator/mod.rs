//! Ranks that share memory, connections and channels, whatever processes they are in.
//!
//! A [`Communicator`] is one rank's part of a group. Each call that another rank has to make too says so: those with a rank
//! and a tag give a [`Pending`], which the other rank's call of the same kind, with this rank and the same tag, makes ready;
//! those named collective are made by every rank. Everything else concerns this rank alone.
//!
//! ```
//! use std::time::Duration;
//! use std::sync::Arc;
//! use warpwire::abi::Rank;
//! use warpwire::bootstrap::{LocalBootstrap, Tag};
//! use warpwire::communicator::Communicator;
//! use warpwire::device::{Device, DeviceSelector};
//! use warpwire::memory::Transports;
//!
//! # fn main() -> warpwire::Result<()> {
//! // One rank here; the others are threads or processes that do the same.
//! let bootstrap = LocalBootstrap::group(1)?.remove(0);
//! let device = Device::open(DeviceSelector::Cpu)?;
//! let communicator = Communicator::new(Arc::new(bootstrap), &device)?;
//! let buffer = device.allocate_shareable::<f32>(100)?;
//! let memory = communicator.register_memory(&buffer, Transports::CUDA_IPC)?;
//! communicator.send_memory(&memory, Rank(0), Tag(1))?;
//! let peers = communicator.recv_memory(Rank(0), Tag(1))?.wait(Duration::from_secs(10))?;
//! assert_eq!(peers.bytes(), 400);
//! # Ok(())
//! # }
//! ```
//!
//! # Failures
//!
//! The death of a rank ends what waits for it, with an error that names it. A kernel that waits for a dead rank ends by its
//! own deadline. [`Communicator::abort`] takes this rank out of the job at once: its streams' kernels end their waits, its
//! connections close, and what other ranks await of it ends.
//!
//! Layers: `message`, `pending`, `context` < this < `setup`, `collective`.

mod collective;
mod context;
mod message;
mod pending;
mod setup;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use warpwire_device::abi::Rank;

pub(crate) use collective::same;
pub use context::Context;
pub use pending::Pending;

use crate::bootstrap::{Bootstrap, Colour};
use crate::connection::Site;
use crate::device::{Device, LaunchConfig};
use crate::error::{CommunicatorError, Error, Result};
use crate::semaphore::Lending;
use message::Hello;

/// One rank's part of a group that shares memory and channels. A cheap clone.
///
/// When the last clone is dropped, the waits of the streams that it watches end: synchronize them before. Semaphores,
/// channels and connections may outlive it.
#[derive(Clone)]
pub struct Communicator {
    shared: Arc<Shared>,
    _end: Arc<End>,
}

/// What semaphores and pending results refer to as well.
#[derive(Debug)]
struct Shared {
    bootstrap: Arc<dyn Bootstrap>,
    context: Context,
    /// By rank.
    sites: Vec<Site>,
    lending: Arc<Lending>,
}

/// What ends with the last communicator.
#[derive(Debug)]
struct End(Context);

impl Drop for End {
    fn drop(&mut self) {
        self.0.abort_streams();
    }
}

impl Communicator {
    /// This rank's part of the bootstrap's group, with `device`. The messages go through groups split off from it: every tag
    /// is the user's, on both. Collective.
    ///
    /// # Errors
    ///
    /// The bootstrap's, which name the rank that is missing or gone; [`CommunicatorError::Version`] on every rank where they
    /// are of several versions.
    pub fn new(bootstrap: Arc<dyn Bootstrap>, device: &Device) -> Result<Self> {
        let whole = |group: &dyn Bootstrap| {
            group.split(Some(Colour(0)), 0)?.ok_or(Error::from(CommunicatorError::NoGroup))
        };
        let bootstrap = whole(&*bootstrap)?;
        let of_lending = whole(&*bootstrap)?;
        let (rank, topology) = (bootstrap.rank(), bootstrap.topology());
        let domain = topology.domain(rank).ok_or(CommunicatorError::NoGroup)?;
        let site = Site::here(device, bootstrap.host_id(), domain)?;
        let hellos = bootstrap.all_gather(&message::seal(&Hello { site })?)?;
        let site = |(rank, bytes): (u32, &Vec<u8>)| Ok(message::open::<Hello>(Rank(rank), bytes)?.site);
        let sites = (0..).zip(&hellos).map(site).collect::<Result<_>>()?;
        let context = Context::new(device);
        let lending = Lending::new(of_lending, context.tokens().clone());
        let end = Arc::new(End(context.clone()));
        Ok(Self { shared: Arc::new(Shared { bootstrap, context, sites, lending }), _end: end })
    }

    /// This rank.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.shared.bootstrap.rank()
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shared.bootstrap.size()
    }

    /// The group that it talks over. Its tags are the communicator's own: split it before sending messages of one's own.
    #[must_use]
    pub fn bootstrap(&self) -> &Arc<dyn Bootstrap> {
        &self.shared.bootstrap
    }

    /// The device and what runs on it.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.shared.context.device()
    }

    /// Where a rank is; none for a rank that is not in the group.
    #[must_use]
    pub fn site(&self, rank: Rank) -> Option<&Site> {
        self.shared.sites.get(rank.0 as usize)
    }

    /// The ranks on this rank's device, itself included.
    #[must_use]
    pub fn ranks_on_device(&self) -> u32 {
        self.count(|_, _| true)
    }

    /// The configuration of a launch whose kernels on all ranks wait for each other: those that share this rank's device
    /// have to be resident together, or the launch is refused.
    #[must_use]
    pub fn concurrent(&self, config: LaunchConfig) -> LaunchConfig {
        let elsewhere = self.count(|own, other| own.process != other.process);
        config.concurrent(self.ranks_on_device()).elsewhere(elsewhere)
    }

    /// The ranks on the device that has the most of them.
    pub(crate) fn most_ranks_on_a_device(&self) -> u32 {
        let sites = &self.shared.sites;
        let sharing = |own: &Site| sites.iter().filter(|other| own.shares_device(other)).count() as u32;
        sites.iter().map(sharing).max().unwrap_or(1)
    }

    /// How many ranks there are on this rank's device of which that is true.
    fn count(&self, counts: impl Fn(&Site, &Site) -> bool) -> u32 {
        let Some(own) = self.site(self.rank()) else { return 1 };
        let sites = self.shared.sites.iter();
        sites.filter(|other| own.shares_device(other) && counts(own, other)).count() as u32
    }

    /// How long the calls that take no time of their own may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.shared.bootstrap.timeout()
    }

    /// Takes this rank out of the whole job: ends the waits of the kernels of the streams that it watches, closes its
    /// connections, and ends its and the others' calls that wait for each other. Any thread may call it, at any time.
    pub fn abort(&self) {
        self.shared.context.abort_what_comes();
        // The kernels first: a connection's drop may wait for what runs.
        self.shared.context.abort_streams();
        self.shared.bootstrap.abort();
        self.shared.context.close_connections();
    }

    /// Slots of semaphores that this rank or a peer still has.
    #[must_use]
    pub fn lent_slots(&self) -> usize {
        self.shared.lending.lent()
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Communicator")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("device", &self.device().properties().name)
            .finish_non_exhaustive()
    }
}
