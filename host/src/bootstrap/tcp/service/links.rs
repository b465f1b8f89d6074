//! The connections to ranks: what comes, what goes, and how they end.

use std::sync::Arc;

use warpwire_device::abi::Rank;

use super::super::super::mailbox::Lane;
use super::super::dial::{Established, check_version};
use super::super::frame::{Fault, Frame, Kind, open_envelope};
use super::super::outbox::Outbox;
use super::super::payload::{Notice, open_value};
use super::Service;
use super::connection::{Connection, Reading, Stage};
use crate::error::Departure;

/// Reads of one connection in a turn: then the others have theirs.
const READS: usize = 16;

impl Service {
    /// Serves a connection that another thread made.
    pub(super) fn adopt(&mut self, peer: Rank, connection: Established, outbox: Arc<Outbox>) {
        let Established { stream, address, reader } = connection;
        if self.closing.is_some() {
            return outbox.close();
        }
        let token = outbox.token();
        self.connections.insert(token, Connection::new(stream, address, reader, outbox, Stage::Link(peer)));
        self.peers[peer.0 as usize].add(token);
        self.write(token);
        // Frames may have come with the handshake's last.
        self.process(token);
    }

    /// Writes what the outbox has and the connection takes.
    pub(super) fn write(&mut self, token: u64) {
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.write(self.closing.is_some());
            self.register(token);
        }
    }

    pub(super) fn read(&mut self, token: u64) {
        for _ in 0..READS {
            let Some(connection) = self.connections.get_mut(&token) else { return };
            if connection.paused {
                return;
            }
            match connection.read(&mut self.buffer) {
                Reading::Bytes => self.process(token),
                Reading::Nothing => return,
                Reading::Over(reason) => return self.end(token, Departure::Lost, reason),
            }
        }
    }

    /// Takes the frames that have come whole, as long as there is room for them.
    pub(super) fn process(&mut self, token: u64) {
        while let Some(connection) = self.connections.get_mut(&token) {
            if connection.paused {
                break;
            }
            let peer = connection.peer();
            let taken = match connection.reader.next() {
                Ok(None) => break,
                Ok(Some(frame)) => match peer {
                    None => {
                        self.hear(token, &frame);
                        Ok(())
                    }
                    Some(peer) => self.take(token, peer, frame),
                },
                Err(fault) => Err(fault),
            };
            match (taken, peer) {
                (Ok(()), _) => {}
                (Err(fault), None) => self.turn_away(token, &fault.to_string()),
                (Err(fault), Some(_)) => self.end(token, Departure::Lost, fault.to_string()),
            }
        }
        self.register(token);
    }

    /// Takes a frame of a rank.
    fn take(&mut self, token: u64, peer: Rank, frame: Frame) -> Result<(), Fault> {
        check_version(&frame)?;
        match frame.kind {
            Kind::MESSAGE => self.deliver(token, peer, Lane::Direct, frame)?,
            Kind::COLLECTIVE => self.deliver(token, peer, Lane::Collective, frame)?,
            Kind::BYE => {
                let departure = open_value(&frame)?;
                let detail = match departure {
                    Departure::Left => "it dropped its bootstrap",
                    Departure::Aborted | Departure::Lost => "it said so",
                };
                self.end(token, departure, detail.to_owned());
            }
            Kind::NOTICE => {
                for (rank, departure) in open_value::<Notice>(&frame)? {
                    self.hear_of(Rank(rank), departure, peer);
                }
            }
            other => tracing::debug!(from = peer.0, kind = other.0, "passed over a frame of an unknown kind"),
        }
        Ok(())
    }

    fn deliver(&mut self, token: u64, peer: Rank, lane: Lane, frame: Frame) -> Result<(), Fault> {
        let kind = frame.kind;
        let (address, bytes) = open_envelope(lane, frame.payload).ok_or(Fault::Payload(kind))?;
        let room = self.shared.mailbox.deliver(peer, address, bytes);
        if !room && let Some(connection) = self.connections.get_mut(&token) {
            connection.paused = true;
        }
        Ok(())
    }

    /// Reads a rank's connections again.
    pub(super) fn resume(&mut self, peer: Rank) {
        for token in self.peers[peer.0 as usize].links().to_vec() {
            if let Some(connection) = self.connections.get_mut(&token) {
                connection.paused = false;
                self.process(token);
            }
        }
    }

    /// Sends a frame of the service's own over every link whose peer is `meant`.
    pub(super) fn tell_all(&mut self, frame: &[u8], meant: impl Fn(Rank) -> bool) {
        let links: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.peer().is_some_and(&meant))
            .map(|(token, _)| *token)
            .collect();
        for token in links {
            if let Some(connection) = self.connections.get_mut(&token) {
                connection.outbox.push_own(frame);
                self.write(token);
            }
        }
    }

    /// Ends a connection.
    pub(super) fn end(&mut self, token: u64, departure: Departure, detail: String) {
        match self.connections.get(&token).map(Connection::peer) {
            None => {}
            Some(None) => self.turn_away(token, &detail),
            Some(Some(peer)) => {
                if let Some(connection) = self.connections.remove(&token) {
                    connection.retire();
                }
                self.peers[peer.0 as usize].remove(token);
                if self.closing.is_none() {
                    self.suspect(peer, departure, detail, None);
                }
            }
        }
    }

    fn register(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if let Err(error) = connection.register(&self.poller) {
            self.end(token, Departure::Lost, format!("its connection cannot be waited for: {error}"));
        }
    }
}
