//! Ranks that go: when that is certain, and who is told.
//!
//! A rank may have several connections here, with messages that it sent before it went still in them. So it counts as gone
//! only once all of them have ended; the first sign, a farewell or the end of one or what another rank says, makes it
//! suspect. Only where a lost rank's connections do not end by themselves, as when its host is cut off, time decides.

use std::time::{Duration, Instant};

use warpwire_device::abi::Rank;

use super::super::super::mailbox::Loss;
use super::super::frame::Kind;
use super::super::payload::{Notice, SetupFailure, pack_value};
use super::Service;
use crate::error::Departure;

/// How long the connections of a rank that others call lost may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// Another rank, as the service sees it.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// Its connections.
    links: Vec<u64>,
    suspicion: Option<Suspicion>,
    gone: bool,
}

#[derive(Debug)]
struct Suspicion {
    departure: Departure,
    detail: String,
    /// When it counts as gone whatever its connections do.
    end: Option<Instant>,
}

impl Peer {
    pub(super) fn links(&self) -> &[u64] {
        &self.links
    }

    pub(super) fn add(&mut self, token: u64) {
        self.links.push(token);
    }

    pub(super) fn remove(&mut self, token: u64) {
        self.links.retain(|link| *link != token);
    }

    /// When it has to be looked at again.
    pub(super) fn moment(&self) -> Option<Instant> {
        self.suspicion.as_ref().filter(|_| !self.gone)?.end
    }
}

impl Service {
    /// There is a sign that a rank has gone.
    pub(super) fn suspect(&mut self, rank: Rank, departure: Departure, detail: String, end: Option<Instant>) {
        let peer = &mut self.peers[rank.0 as usize];
        if peer.suspicion.is_none() {
            peer.suspicion = Some(Suspicion { departure, detail: detail.clone(), end });
            self.news.push((rank, departure));
            if self.gather.is_some() {
                return self.fail_setup(SetupFailure::Lost { rank: rank.0, detail });
            }
        }
        let peer = &mut self.peers[rank.0 as usize];
        if let Some(suspicion) = &mut peer.suspicion
            && departure != Departure::Left
        {
            // One of its connections has ended: the others will too, or it is cut off.
            suspicion.end.get_or_insert_with(|| Instant::now() + GRACE);
        }
        self.settle(rank);
    }

    /// Another rank says that one has gone.
    pub(super) fn hear_of(&mut self, rank: Rank, departure: Departure, from: Rank) {
        if rank == self.shared.rank || rank.0 as usize >= self.shared.size {
            return tracing::debug!(rank = rank.0, from = from.0, "passed over a notice");
        }
        let end = (departure != Departure::Left).then(|| Instant::now() + GRACE);
        self.suspect(rank, departure, format!("rank {} said so", from.0), end);
    }

    pub(super) fn expire_suspicions(&mut self, now: Instant) {
        for index in 0..self.peers.len() {
            if self.peers[index].moment().is_none_or(|end| end > now) {
                continue;
            }
            let links = self.peers[index].links.clone();
            // While the mailbox has no room its connections are not read: what is in them is still to come.
            let unread = links.iter().filter_map(|token| self.connections.get(token)).any(|link| link.paused);
            if unread {
                if let Some(suspicion) = &mut self.peers[index].suspicion {
                    suspicion.end = Some(now + GRACE);
                }
                continue;
            }
            for token in links {
                if let Some(connection) = self.connections.remove(&token) {
                    connection.retire();
                }
            }
            self.peers[index].links.clear();
            self.settle(Rank(index as u32));
        }
    }

    /// A suspect without connections has gone.
    fn settle(&mut self, rank: Rank) {
        let peer = &mut self.peers[rank.0 as usize];
        let Some(suspicion) = peer.suspicion.as_ref().filter(|_| peer.links.is_empty() && !peer.gone) else {
            return;
        };
        let Suspicion { departure, detail, .. } = suspicion;
        let loss = Loss { rank, departure: *departure, detail: detail.clone() };
        peer.gone = true;
        if loss.departure == Departure::Left {
            tracing::debug!(rank = rank.0, "left the job");
        } else {
            tracing::warn!(rank = rank.0, detail = loss.detail, "{}", loss.departure);
        }
        self.shared.mailbox.depart(&loss);
    }

    /// Tells the others who has gone. Of a loss everybody tells everybody, since whoever noticed may know only a few; of one
    /// that left the root alone does, since everybody leaves some time.
    pub(super) fn spread_news(&mut self) {
        let news = std::mem::take(&mut self.news);
        let at_root = self.shared.rank == Rank(0);
        let notice: Notice = news
            .iter()
            .filter(|(_, departure)| at_root || *departure != Departure::Left)
            .map(|(rank, departure)| (rank.0, *departure))
            .collect();
        if notice.is_empty() || self.closing.is_some() {
            return;
        }
        let frame = pack_value(Kind::NOTICE, &notice);
        self.tell_all(&frame, |peer| news.iter().all(|(rank, _)| *rank != peer));
    }
}
