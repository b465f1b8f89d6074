//! Ranks that are threads of one process.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use warpwire_device::abi::Rank;

use super::group::Group;
use super::mailbox::{Address, Failure, Limits, Loss, Mailbox};
use super::topology::Place;
use super::transport::Transport;
use super::{DEFAULT_TIMEOUT, MAX_WORLD};
use crate::env::HostId;
use crate::error::{Departure, Error, Result};
use crate::net::Deadline;

/// Makes the ranks of a job that is one process: for tests, and for one thread a rank.
#[derive(Debug)]
pub struct LocalBootstrap {
    places: Vec<Place>,
    timeout: Duration,
}

impl LocalBootstrap {
    /// A job of `size` ranks: give each thread one of them.
    ///
    /// # Errors
    ///
    /// A size of 0 or beyond [`MAX_WORLD`]; a machine that cannot be told from others.
    pub fn group(size: usize) -> Result<Vec<Group>> {
        let host = crate::env::host_id()?;
        Ok(Self::on_hosts(&vec![host; size])?.start())
    }

    /// A job of a rank for each of `hosts`, which it will believe to be on that host.
    ///
    /// # Errors
    ///
    /// No host, or more than [`MAX_WORLD`].
    pub fn on_hosts(hosts: &[HostId]) -> Result<Self> {
        if !(1..=MAX_WORLD).contains(&hosts.len()) {
            return Err(Error::RankCount { ranks: hosts.len(), least: 1, most: MAX_WORLD });
        }
        let places = hosts.iter().map(|host| Place { host: *host, domain: (*host).into() }).collect();
        Ok(Self { places, timeout: DEFAULT_TIMEOUT })
    }

    /// Sets how long calls may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The ranks.
    #[must_use]
    pub fn start(self) -> Vec<Group> {
        let size = self.places.len();
        let mailbox = || Arc::new(Mailbox::new(size, Limits::default(), Box::new(|_| ())));
        let mailboxes: Vec<Arc<Mailbox>> = (0..size).map(|_| mailbox()).collect();
        let peers: Arc<[Weak<Mailbox>]> = mailboxes.iter().map(Arc::downgrade).collect();
        let rank = |(rank, mailbox)| {
            let rank = Rank(rank);
            let transport =
                LocalTransport { rank, mailbox, peers: Arc::clone(&peers), timeout: self.timeout };
            Group::world(Arc::new(transport), rank, self.places.clone())
        };
        (0..).zip(mailboxes).map(rank).collect()
    }
}

/// Mailboxes in one process.
#[derive(Debug)]
struct LocalTransport {
    rank: Rank,
    mailbox: Arc<Mailbox>,
    /// Everybody's, as long as they are there.
    peers: Arc<[Weak<Mailbox>]>,
    timeout: Duration,
}

impl LocalTransport {
    fn tell_others(&self, departure: Departure, detail: &str) {
        let loss = Loss { rank: self.rank, departure, detail: detail.to_owned() };
        for (rank, peer) in (0..).map(Rank).zip(&*self.peers) {
            if rank != self.rank
                && let Some(peer) = peer.upgrade()
            {
                peer.depart(&loss);
            }
        }
    }
}

impl Transport for LocalTransport {
    fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    fn send(&self, to: Rank, address: Address, parts: &[&[u8]], deadline: Deadline) -> Result<(), Failure> {
        if self.mailbox.is_aborted() {
            return Err(Failure::Aborted);
        }
        if let Some(loss) = self.mailbox.loss(to) {
            return Err(Failure::Lost(loss));
        }
        let Some(peer) = self.peers[to.0 as usize].upgrade() else {
            let detail = "it dropped its bootstrap".to_owned();
            return Err(Failure::Lost(Loss { rank: to, departure: Departure::Left, detail }));
        };
        let delivered = peer.deliver_within(self.rank, address, &parts.concat(), deadline);
        delivered.ok_or(Failure::Timeout { rank: to })
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn abort(&self) {
        self.mailbox.abort();
        self.tell_others(Departure::Aborted, "it called abort");
    }
}

impl Drop for LocalTransport {
    fn drop(&mut self) {
        if thread::panicking() {
            self.tell_others(Departure::Aborted, "its thread panicked");
        } else {
            self.tell_others(Departure::Left, "it dropped its bootstrap");
        }
        // Those of this process that still wait for room here need not.
        self.mailbox.abort();
    }
}
