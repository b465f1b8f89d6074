//! The thread that hands exported memory over, and keeps what other processes hold.
//!
//! An importer connects, proves itself (by its user, which the kernel vouches for, and by the export's token), and gets the
//! export's descriptor, or has the export kept as long as the connection stands. When an importer dies, the kernel closes
//! its connection: nothing is kept for it any more. One thread does this for the whole process: it never waits for a peer.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::export::Export;
use super::message::{Operation, REQUEST_BYTES, Request, Status};
use super::{identity, socket};
use crate::error::{Error, Result};

/// How long a connection that holds nothing may stand.
const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// How long no connection is accepted after this process had no descriptor for one.
const BREATHER: Duration = Duration::from_millis(50);

/// A service with its thread, which ends with it.
#[derive(Debug)]
pub(super) struct Service {
    name: [u8; 16],
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// This process' service: begun by the first export, it lives as long as the process.
    pub(super) fn global() -> Result<Arc<Self>> {
        static GLOBAL: Mutex<Option<Arc<Service>>> = Mutex::new(None);
        let mut global = GLOBAL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = &*global {
            return Ok(Arc::clone(service));
        }
        let service = Arc::new(Self::start(geteuid().as_raw())?);
        *global = Some(Arc::clone(&service));
        Ok(service)
    }

    /// A service for the processes of `user`.
    pub(super) fn start(user: u32) -> Result<Self> {
        let name = identity::random()?;
        let listener = socket::serve(&name).map_err(|e| Error::system("listening on a Unix socket", e))?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let stop = Arc::new(stop.map_err(|e| Error::system("making an eventfd", e))?);
        let mut server =
            Server { listener, user, stop: Arc::clone(&stop), connections: Vec::new(), breather: None };
        let thread = thread::Builder::new()
            .name("warpwire-share".to_owned())
            .spawn(move || server.run())
            .map_err(|source| Error::system("starting the sharing thread", source))?;
        Ok(Self { name, stop, thread: Some(thread) })
    }

    /// The number in its address.
    pub(super) fn name(&self) -> [u8; 16] {
        self.name
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // A counter that is not 0 is what the thread ends at. Writing 1 to a new eventfd cannot fail for want of room.
        if let Err(error) = rustix::io::write(&*self.stop, &1u64.to_ne_bytes()) {
            tracing::warn!(%error, "stopping the sharing thread failed");
            return;
        }
        if let Some(thread) = self.thread.take() {
            // It catches nothing and panics nowhere; a panic has printed itself.
            let _ = thread.join();
        }
    }
}

/// What the thread has.
#[derive(Debug)]
struct Server {
    listener: OwnedFd,
    user: u32,
    stop: Arc<OwnedFd>,
    connections: Vec<Connection>,
    /// Until when nobody is accepted.
    breather: Option<Instant>,
}

/// An importer.
#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    since: Instant,
    /// What is kept for it.
    held: Option<Arc<Export>>,
}

impl Server {
    fn run(&mut self) {
        loop {
            let ready = match self.wait() {
                Ok(Some(ready)) => ready,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "the sharing thread cannot poll");
                    thread::sleep(BREATHER);
                    continue;
                }
            };
            let mut index = 0;
            self.connections.retain_mut(|connection| {
                let stays = !ready.connections[index] || connection.serve();
                index += 1;
                stays && (connection.held.is_some() || connection.since.elapsed() < IDLE_LIMIT)
            });
            if ready.listener {
                self.accept();
            }
        }
    }

    /// Waits for something to do; `None` where that is to end.
    fn wait(&mut self) -> Result<Option<Ready>, Errno> {
        let now = Instant::now();
        self.breather = self.breather.filter(|&until| until > now);
        let idle = self.connections.iter().filter(|connection| connection.held.is_none());
        let deadline = idle.map(|connection| connection.since + IDLE_LIMIT).chain(self.breather).min();
        // A little later, so that the deadline has passed when the poll ends.
        let timeout =
            deadline.map(|deadline| deadline.saturating_duration_since(now) + Duration::from_millis(1));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        // Whoever waits to be accepted makes the listener ready all the time.
        let listen = if self.breather.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let fixed = [(self.stop.as_fd(), PollFlags::IN), (self.listener.as_fd(), listen)];
        let connections =
            self.connections.iter().map(|connection| (connection.socket.as_fd(), PollFlags::IN));
        let polled = fixed.into_iter().chain(connections);
        let mut polled: Vec<_> = polled.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let mut ready = polled.iter().map(|fd| !fd.revents().is_empty());
        if ready.next() == Some(true) {
            return Ok(None);
        }
        let listener = ready.next() == Some(true);
        Ok(Some(Ready { listener, connections: ready.collect() }))
    }

    fn accept(&mut self) {
        match socket::accept(self.listener.as_fd()) {
            Ok(Some(socket)) => match socket::peer_user(socket.as_fd()) {
                Ok(user) if user == self.user => {
                    self.connections.push(Connection { socket, since: Instant::now(), held: None });
                }
                Ok(user) => {
                    tracing::warn!(user, "another user's process asked for memory, and was refused");
                    let _ = socket::send(socket.as_fd(), &Status::OtherUser.pack(), None);
                }
                Err(error) => tracing::warn!(%error, "an importer's user is unknown"),
            },
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "accepting an importer failed: it waits");
                self.breather = Some(Instant::now() + BREATHER);
            }
        }
    }
}

/// What can be done without waiting.
struct Ready {
    listener: bool,
    /// In the order of the connections.
    connections: Vec<bool>,
}

impl Connection {
    /// Answers a request; false where the connection is at its end.
    fn serve(&mut self) -> bool {
        let received = match socket::receive::<REQUEST_BYTES>(self.socket.as_fd()) {
            Ok(received) => received,
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        };
        if received.message().is_empty() {
            return false;
        }
        let (status, export) = match Request::unpack(received.message()).and_then(|request| grant(&request)) {
            Ok((operation, export)) => match operation {
                Operation::Hold => {
                    self.held = Some(export);
                    (Status::Done, None)
                }
                Operation::Descriptor if export.descriptor().is_some() => (Status::Done, Some(export)),
                Operation::Descriptor => (Status::NoDescriptor, None),
            },
            Err(status) => (status, None),
        };
        let descriptor = export.as_ref().and_then(|export| export.descriptor());
        // The reply fits in the socket's buffer, so a failure means that the importer has gone.
        socket::send(self.socket.as_fd(), &status.pack(), descriptor).is_ok() && status == Status::Done
    }
}

/// The export that a request is entitled to.
fn grant(request: &Request) -> Result<(Operation, Arc<Export>), Status> {
    let export = Export::find(request.export).ok_or(Status::NoExport)?;
    if export.admits(&request.token) { Ok((request.operation, export)) } else { Err(Status::WrongToken) }
}
