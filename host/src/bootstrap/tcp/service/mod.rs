//! The thread that serves a rank's connections: it alone reads and writes them.
//!
//! It never waits for anything but the poller: a peer that is slow, silent or hostile holds up nobody else.

mod connection;
mod departures;
mod gather;
mod greeting;
mod links;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use warpwire_device::abi::Rank;

use super::commands::Command;
use super::message;
use super::payload::SetupFailure;
use super::shared::Shared;
use crate::error::{Departure, Result};
use crate::net::dial::Established;
use crate::net::interface::system;
use crate::net::payload::pack_value;
use crate::net::poller::{Interest, Poller};
use crate::net::secret::Secret;
use connection::{Connection, Stage};
use departures::Peer;

pub(super) use gather::Gather;

const LISTENER: u64 = 0;
const BELL: u64 = 1;

/// Read at once from a connection.
const READ_BYTES: usize = 64 << 10;

/// How long a rank that leaves waits for its last messages to go out and its peers to have read them.
const LINGER: Duration = Duration::from_secs(10);
/// How long one that gives up does.
const SHORT_LINGER: Duration = Duration::from_secs(1);

/// The service of one rank.
pub(super) struct Service {
    shared: Arc<Shared>,
    poller: Poller,
    listener: Option<TcpListener>,
    /// While set, nobody is let in: the system had no descriptor for another connection.
    listener_rests: Option<Instant>,
    /// What those who connect have to know.
    secret: Secret,
    connections: HashMap<u64, Connection>,
    /// The connections that have not said who they are, oldest first, and when each has to have.
    greetings: VecDeque<(u64, Instant)>,
    peers: Vec<Peer>,
    /// Ranks that have gone since the last turn, for the others to know.
    news: Vec<(Rank, Departure)>,
    /// At the root, until everybody is there.
    gather: Option<Gather>,
    /// The session's secret, for the job that a gathering becomes.
    session: Secret,
    /// Set once this rank goes: by then all connections have to be closed.
    closing: Option<Instant>,
    buffer: Vec<u8>,
}

/// What a service begins with.
pub(super) struct Beginning {
    pub(super) listener: TcpListener,
    pub(super) secret: Secret,
    pub(super) session: Secret,
    /// At the root.
    pub(super) gather: Option<Gather>,
    /// At the others: the connection to the root.
    pub(super) to_root: Option<Established>,
}

/// Starts the service thread.
pub(super) fn start(shared: Arc<Shared>, beginning: Beginning) -> Result<JoinHandle<()>> {
    let name = format!("warpwire-boot-{}", shared.rank.0);
    let starting = system("starting the bootstrap's service");
    let mut service = Service::new(Arc::clone(&shared), beginning).map_err(&starting)?;
    let run = move || {
        // However the thread ends, nobody goes on waiting for it.
        let finish = Finish(Arc::clone(&service.shared));
        if let Err(error) = service.run() {
            tracing::error!(rank = service.shared.rank.0, %error, "the bootstrap's service ended");
        }
        drop(service);
        drop(finish);
    };
    thread::Builder::new().name(name).spawn(run).map_err(starting)
}

struct Finish(Arc<Shared>);

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.finish();
    }
}

impl Service {
    fn new(shared: Arc<Shared>, beginning: Beginning) -> io::Result<Self> {
        let Beginning { listener, secret, session, gather, to_root } = beginning;
        let poller = Poller::new()?;
        poller.set(&*shared.commands, BELL, Interest::default(), Interest::READ)?;
        listener.set_nonblocking(true)?;
        poller.set(&listener, LISTENER, Interest::default(), Interest::READ)?;
        let peers = (0..shared.size).map(|_| Peer::default()).collect();
        let mut service = Self {
            shared,
            poller,
            listener: Some(listener),
            listener_rests: None,
            secret,
            connections: HashMap::new(),
            greetings: VecDeque::new(),
            peers,
            news: Vec::new(),
            gather,
            session,
            closing: None,
            buffer: vec![0; READ_BYTES],
        };
        if let Some(connection) = to_root {
            connection.stream.set_nonblocking(true)?;
            let outbox = service.shared.new_outbox(&connection.stream);
            service.shared.offer_route(Rank(0), &outbox);
            service.adopt(Rank(0), connection, outbox);
        }
        // A job of one rank is complete at once.
        service.conclude_gathering();
        Ok(service)
    }

    fn run(&mut self) -> io::Result<()> {
        loop {
            for event in self.poller.wait(self.next_moment())? {
                match event.token {
                    BELL => self.obey(),
                    LISTENER => self.accept(),
                    token => {
                        if event.writable {
                            self.write(token);
                        }
                        if event.readable {
                            self.read(token);
                        }
                    }
                }
            }
            self.expire(Instant::now());
            self.spread_news();
            if self.closing.is_some_and(|end| self.connections.is_empty() || end <= Instant::now()) {
                return Ok(());
            }
        }
    }

    fn obey(&mut self) {
        for command in self.shared.commands.take() {
            match command {
                Command::Write(token) => self.write(token),
                Command::Resume(peer) => self.resume(peer),
                Command::Adopt { peer, connection, outbox } => self.adopt(peer, connection, outbox),
                Command::GiveUp { waited } => {
                    if let Some(gather) = &self.gather {
                        let failure = gather.failure(waited);
                        self.fail_setup(failure);
                    }
                }
                Command::Close(departure) => {
                    let linger = if departure == Departure::Left { LINGER } else { SHORT_LINGER };
                    self.close(&pack_value(message::BYE, &departure), linger);
                }
            }
        }
    }

    /// When something has to be done though nothing happens.
    fn next_moment(&self) -> Option<Instant> {
        let greeting = self.greetings.front().map(|(_, end)| *end);
        let suspicion = self.peers.iter().filter_map(Peer::moment).min();
        [greeting, suspicion, self.listener_rests, self.closing].into_iter().flatten().min()
    }

    fn expire(&mut self, now: Instant) {
        self.expire_greetings(now);
        self.expire_suspicions(now);
        if self.listener_rests.is_some_and(|end| end <= now) {
            self.wake_listener();
        }
    }

    /// At the root: the job cannot start, and everybody is told.
    fn fail_setup(&mut self, failure: SetupFailure) {
        self.gather = None;
        let frame = pack_value(message::FAILED, &failure);
        self.shared.fail_setup(failure);
        self.close(&frame, SHORT_LINGER);
    }

    /// Sends `last` to every rank and lets nobody in any more. The thread ends once everybody has closed.
    fn close(&mut self, last: &[u8], linger: Duration) {
        if self.closing.is_some() {
            return;
        }
        self.closing = Some(Instant::now() + linger);
        self.listener = None;
        self.listener_rests = None;
        self.greetings.clear();
        self.connections.retain(|_, connection| matches!(connection.stage, Stage::Link(_)));
        let links: Vec<u64> = self.connections.keys().copied().collect();
        for token in links {
            if let Some(connection) = self.connections.get_mut(&token) {
                connection.outbox.push_own(last);
                connection.outbox.close();
                // What still comes is read, for the peer to be able to close; nobody receives it.
                connection.paused = false;
            }
            self.write(token);
            self.process(token);
        }
    }
}
