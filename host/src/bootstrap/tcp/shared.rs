//! What a rank's threads and its service thread share.

use std::net::TcpStream;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use warpwire_device::abi::Rank;

use super::super::mailbox::{Failure, Limits, Loss, Mailbox};
use super::commands::{Command, Commands};
use super::outbox::Outbox;
use super::payload::{Member, SetupFailure};
use crate::error::{Departure, Result};
use crate::monitor::Monitor;
use crate::net::Deadline;
use crate::net::interface::system;
use crate::net::secret::Secret;

/// Numbers of connections; lower ones are the listener's and the bell's.
pub(super) const FIRST_TOKEN: u64 = 2;

/// A rank's state.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) rank: Rank,
    pub(super) size: usize,
    pub(super) mailbox: Mailbox,
    pub(super) commands: Arc<Commands>,
    /// Everybody, once the job has started.
    pub(super) job: OnceLock<Job>,
    /// At the root: how the check-in stands.
    setup: Monitor<Setup>,
    /// By rank: the connection that messages to it go over.
    routes: Monitor<Vec<Route>>,
    next_token: AtomicU64,
}

/// A job that has started.
#[derive(Debug)]
pub(super) struct Job {
    /// By which its ranks know each other.
    pub(super) session: Secret,
    pub(super) members: Vec<Member>,
    /// The interface by which this rank reaches link-local addresses.
    pub(super) scope: u32,
}

/// How the check-in stands.
#[derive(Debug)]
enum Setup {
    Gathering,
    Complete,
    Failed(SetupFailure),
}

/// All messages to one rank go over one connection, the first there was in either direction: so they stay in order.
#[derive(Debug, Default)]
struct Route {
    outbox: Option<Arc<Outbox>>,
    /// A thread is connecting.
    dialling: bool,
}

/// What a thread that has a message to send finds.
pub(super) enum Way {
    /// The connection there is.
    Open(Arc<Outbox>),
    /// None, and nobody is making one: it is up to this thread.
    Dial,
    /// The deadline passed while another thread was making one.
    Late,
}

impl Shared {
    pub(super) fn new(rank: Rank, size: usize, limits: Limits) -> Result<Arc<Self>> {
        let commands = Arc::new(Commands::new().map_err(system("making an eventfd"))?);
        let bell = Arc::clone(&commands);
        let on_room = Box::new(move |from| bell.push(Command::Resume(from)));
        Ok(Arc::new(Self {
            rank,
            size,
            mailbox: Mailbox::new(size, limits, on_room),
            commands,
            job: OnceLock::new(),
            setup: Monitor::new(Setup::Gathering),
            routes: Monitor::new((0..size).map(|_| Route::default()).collect()),
            next_token: AtomicU64::new(FIRST_TOKEN),
        }))
    }

    /// The outbox of a new connection.
    pub(super) fn new_outbox(&self, connection: &Arc<TcpStream>) -> Arc<Outbox> {
        let token = self.next_token.fetch_add(1, Ordering::Relaxed);
        Arc::new(Outbox::new(token, Arc::clone(connection)))
    }

    /// How messages get to a rank.
    pub(super) fn way_to(&self, rank: Rank, deadline: Deadline) -> Way {
        self.routes.wait_until(|routes| {
            let route = &mut routes[rank.0 as usize];
            if let Some(outbox) = &route.outbox {
                return ControlFlow::Break(Way::Open(Arc::clone(outbox)));
            }
            if !route.dialling {
                route.dialling = true;
                return ControlFlow::Break(Way::Dial);
            }
            match deadline.left() {
                Some(_) => ControlFlow::Continue(deadline.end()),
                None => ControlFlow::Break(Way::Late),
            }
        })
    }

    /// A connection to that rank stands: messages to it go over it, unless there was one before.
    pub(super) fn offer_route(&self, rank: Rank, outbox: &Arc<Outbox>) {
        self.routes.change(|routes| {
            routes[rank.0 as usize].outbox.get_or_insert_with(|| Arc::clone(outbox));
        });
    }

    /// The thread that was told to dial has done what it could.
    pub(super) fn dialled(&self, rank: Rank) {
        self.routes.change(|routes| routes[rank.0 as usize].dialling = false);
    }

    /// Why nothing more can be sent to a rank.
    pub(super) fn why_closed(&self, rank: Rank) -> Failure {
        if self.mailbox.is_aborted() {
            return Failure::Aborted;
        }
        Failure::Lost(self.mailbox.loss(rank).unwrap_or_else(|| {
            let detail = "its connection closed".to_owned();
            Loss { rank, departure: Departure::Lost, detail }
        }))
    }

    /// At the root: waits for the check-in to end. Nothing where the deadline passes first.
    pub(super) fn wait_for_setup(&self, deadline: Deadline) -> Option<Result<(), SetupFailure>> {
        self.setup.wait_until(|setup| match setup {
            Setup::Complete => ControlFlow::Break(Some(Ok(()))),
            Setup::Failed(failure) => ControlFlow::Break(Some(Err(failure.clone()))),
            Setup::Gathering if deadline.left().is_none() => ControlFlow::Break(None),
            Setup::Gathering => ControlFlow::Continue(deadline.end()),
        })
    }

    pub(super) fn complete_setup(&self) {
        self.setup.change(|setup| *setup = Setup::Complete);
    }

    /// The job cannot start; the first reason counts.
    pub(super) fn fail_setup(&self, failure: SetupFailure) {
        self.setup.change(|setup| {
            if matches!(setup, Setup::Gathering) {
                *setup = Setup::Failed(failure);
            }
        });
    }

    /// The service thread is gone: nobody waits any more.
    pub(super) fn finish(&self) {
        self.mailbox.abort();
        let routes = self
            .routes
            .change(|routes| routes.iter().filter_map(|route| route.outbox.clone()).collect::<Vec<_>>());
        routes.iter().for_each(|outbox| outbox.close());
        let detail = "its service thread ended".to_owned();
        self.fail_setup(SetupFailure::Lost { rank: self.rank.0, detail });
    }
}
