//! Those who connect, until they have said who they are.

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpwire_device::abi::Rank;

use super::super::dial::prepare;
use super::super::frame::{Frame, FrameReader, HANDSHAKE_LIMIT, Kind, PAYLOAD_LIMIT};
use super::super::handshake::{Host, Step, refusal_frame};
use super::super::payload::{Claim, Purpose, Roster, SetupFailure, pack_value};
use super::super::shared::Job;
use super::connection::{Connection, Stage};
use super::poller::Interest;
use super::{LISTENER, Service};
use crate::error::Refusal;

/// How long one who connects may take to say who it is.
const GREETING: Duration = Duration::from_secs(10);
/// How many strangers are heard at once beside the job's ranks; then the one that has been silent longest has to go.
const STRANGERS: usize = 512;
/// Let in at once.
const ACCEPTED: usize = 64;
/// How long nobody is let in when the system has no descriptor left.
const REST: Duration = Duration::from_millis(100);

impl Service {
    pub(super) fn accept(&mut self) {
        for _ in 0..ACCEPTED {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, address)) => {
                    if let Err(error) = self.greet(stream, address) {
                        tracing::warn!(%address, %error, "lost a connection as it was made");
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot let in a connection: trying again soon");
                    return self.rest_listener();
                }
            }
        }
    }

    fn greet(&mut self, stream: TcpStream, address: SocketAddr) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        prepare(&stream)?;
        let stream = Arc::new(stream);
        let outbox = self.shared.new_outbox(&stream);
        let token = outbox.token();
        let stage = Stage::Greeting(Box::new(Host::new(self.secret.clone())));
        let mut connection =
            Connection::new(stream, address, FrameReader::new(HANDSHAKE_LIMIT), outbox, stage);
        connection.register(&self.poller)?;
        self.connections.insert(token, connection);
        self.greetings.push_back((token, Instant::now() + GREETING));
        if self.greetings.len() > STRANGERS + 2 * self.shared.size
            && let Some((oldest, _)) = self.greetings.pop_front()
        {
            self.turn_away(oldest, "it said nothing while many others came");
        }
        Ok(())
    }

    pub(super) fn expire_greetings(&mut self, now: Instant) {
        while let Some((token, _)) = self.greetings.pop_front_if(|(_, end)| *end <= now) {
            self.turn_away(token, "it did not say in time who it is");
        }
    }

    /// A frame of one who is not known yet.
    pub(super) fn hear(&mut self, token: u64, frame: &Frame) {
        let Some(Connection { stage: Stage::Greeting(host), outbox, .. }) = self.connections.get_mut(&token)
        else {
            return;
        };
        match host.receive(frame) {
            Ok(Step::Say(answer)) => {
                outbox.push_own(&answer);
                self.write(token);
            }
            Ok(Step::Proven { claim, welcome }) => match self.judge(&claim) {
                Ok(()) => self.let_in(token, claim, &welcome),
                Err(refusal) => self.refuse(token, &refusal, matches!(claim.purpose, Purpose::CheckIn(_))),
            },
            Ok(Step::Refuse { refusal, proven }) => self.refuse(token, &refusal, proven),
            Err(error) => self.turn_away(token, &error.to_string()),
        }
    }

    /// Whether one who knows the secret gets what it claims.
    fn judge(&mut self, claim: &Claim) -> Result<(), Refusal> {
        let (here, size) = (self.shared.rank.0, self.shared.size as u32);
        match (&claim.purpose, &mut self.gather) {
            (Purpose::CheckIn(member), Some(gather)) => gather.check_in(claim, member.clone()),
            (Purpose::CheckIn(_), None) => Err(Refusal::Complete),
            (Purpose::Link { to }, _) if *to != here => Err(Refusal::OtherRank { asked: *to, here }),
            (Purpose::Link { .. }, _) if claim.size != size => {
                Err(Refusal::OtherSize { joiner: claim.size, root: size })
            }
            (Purpose::Link { .. }, _) if claim.rank >= size => {
                Err(Refusal::RankBeyond { rank: claim.rank, size })
            }
            (Purpose::Link { .. }, _) if claim.rank == here => Err(Refusal::DuplicateRank { rank: here }),
            (Purpose::Link { .. }, _) => Ok(()),
        }
    }

    fn let_in(&mut self, token: u64, claim: Claim, welcome: &[u8]) {
        let peer = Rank(claim.rank);
        self.forget_greeting(token);
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if let Purpose::CheckIn(_) = claim.purpose {
            let at = connection.stream.local_addr().ok();
            tracing::debug!(rank = peer.0, ?at, from = %connection.address, "checked in");
        }
        connection.stage = Stage::Link(peer);
        connection.reader.set_limit(PAYLOAD_LIMIT);
        // Before anything else can be sent over it.
        connection.outbox.push_own(welcome);
        self.shared.offer_route(peer, &connection.outbox);
        self.peers[peer.0 as usize].add(token);
        self.write(token);
        self.conclude_gathering();
    }

    /// Starts the job once everybody is there.
    pub(super) fn conclude_gathering(&mut self) {
        let Some(members) = self.gather.as_ref().and_then(super::Gather::complete) else { return };
        self.gather = None;
        let roster = Roster { session: *self.session.as_bytes(), members };
        let frame = pack_value(Kind::ROSTER, &roster);
        let scope = roster.members.first().map_or(0, |root| root.endpoint.scope);
        let job = Job { session: self.session.clone(), members: roster.members, scope };
        // Set once, here alone.
        _ = self.shared.job.set(job);
        self.tell_all(&frame, |_| true);
        self.shared.complete_setup();
    }

    /// Turns one away that is to know why. One that is `known` as a rank of this job ends the gathering.
    fn refuse(&mut self, token: u64, refusal: &Refusal, known: bool) {
        if let Some(connection) = self.connections.get_mut(&token) {
            // A new connection has room for a frame this short; where it has none, its end finds out by the close.
            _ = (&*connection.stream).write(&refusal_frame(refusal));
            let address = connection.address.to_string();
            if known && self.gather.is_some() {
                self.turn_away(token, &refusal.to_string());
                return self.fail_setup(SetupFailure::CheckIn { address, refusal: refusal.clone() });
            }
        }
        self.turn_away(token, &refusal.to_string());
    }

    /// Closes the connection of a stranger.
    pub(super) fn turn_away(&mut self, token: u64, why: &str) {
        self.forget_greeting(token);
        let Some(connection) = self.connections.remove(&token) else { return };
        let address = connection.address;
        tracing::warn!(rank = self.shared.rank.0, %address, "refused a connection: {why}");
        if let Some(gather) = &mut self.gather {
            gather.turned_away(address, why);
        }
    }

    fn forget_greeting(&mut self, token: u64) {
        self.greetings.retain(|(other, _)| *other != token);
    }

    fn rest_listener(&mut self) {
        if let Some(listener) = &self.listener {
            // Where the poller fails, the listener only rests no more.
            _ = self.poller.set(listener, LISTENER, Interest::READ, Interest::default());
            self.listener_rests = Some(Instant::now() + REST);
        }
    }

    pub(super) fn wake_listener(&mut self) {
        self.listener_rests = None;
        if let Some(listener) = &self.listener {
            _ = self.poller.set(listener, LISTENER, Interest::default(), Interest::READ);
        }
    }
}
