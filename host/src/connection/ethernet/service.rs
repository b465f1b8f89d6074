//! The thread that serves one connection: it meets the other end, then receives, while another thread sends.

use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use socket2::SockRef;
use warpwire_device::abi::Rank;

use super::frame::PIECE_BYTES;
use super::greeting::{Greeted, greet};
use super::queue::{Queue, Serving};
use super::receiver::Receiver;
use super::request::End;
use super::sender::{BATCH_BYTES, Sender};
use super::staging::Staging;
use super::words::Words;
use crate::connection::Life;
use crate::device::Device;
use crate::env;
use crate::error::Result;
use crate::net::Deadline;
use crate::net::dial::{introduce, reach};
use crate::net::secret::Secret;

/// How long a peer may leave what is sent to it untaken before it counts as gone: about as long as it takes keep-alive probes
/// to find out that a host has gone without a word.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// An attempt to connect takes no longer: whether it is still wanted is to be looked at now and then.
const ATTEMPT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// How the connection comes about.
#[derive(Debug)]
pub(super) struct Meeting {
    pub(super) part: Part,
    /// When it has to have come about.
    pub(super) deadline: Deadline,
    /// Whether the other end may still come.
    pub(super) life: Life,
}

/// What this end does for it.
#[derive(Debug)]
pub(super) enum Part {
    /// It waits for the one that knows the secret and makes the claim.
    Listen { listener: TcpListener, secret: Secret, claim: Vec<u8> },
    /// It connects, and says who it is.
    Connect { address: SocketAddr, secret: Secret, claim: Vec<u8> },
    /// Nothing more.
    #[cfg(test)]
    Met(Greeted),
}

/// The connection's socket, once there is one: for whoever closes it.
pub(super) type Socket = Arc<OnceLock<TcpStream>>;

/// What the thread has.
#[derive(Debug)]
pub(super) struct Service {
    queue: Arc<Queue>,
    socket: Socket,
    peer: Rank,
    /// What is gathered to be sent, and what has come.
    batch: Staging,
    data: Staging,
    words: Words,
    sending: Serving,
    receiving: Serving,
}

impl Service {
    pub(super) fn new(queue: &Arc<Queue>, socket: &Socket, device: &Device, peer: Rank) -> Result<Self> {
        Ok(Self {
            queue: Arc::clone(queue),
            socket: Arc::clone(socket),
            peer,
            batch: Staging::new(device, BATCH_BYTES)?,
            data: Staging::new(device, PIECE_BYTES)?,
            words: Words::new(device)?,
            sending: queue.sending(),
            receiving: queue.receiving(),
        })
    }

    /// Serves until the connection ends.
    pub(super) fn run(self, meeting: Meeting) {
        match self.meet(meeting) {
            Ok(greeted) => self.serve(greeted),
            Err(reason) => fail(&self.queue, self.peer, reason),
        }
    }

    fn serve(self, greeted: Greeted) {
        let Self { queue, peer, batch, data, words, sending, receiving, .. } = self;
        let Greeted { stream, early } = greeted;
        let receiver = stream
            .try_clone()
            .and_then(|again| Receiver::new(Arc::clone(&queue), peer, again, early, data, words));
        let receiver = match receiver {
            Ok(receiver) => receiver,
            Err(error) => return fail(&queue, peer, format!("duplicating its socket: {error}")),
        };
        let sender = Sender::new(Arc::clone(&queue), stream, batch);
        let name = format!("warpwire-eth-send-{}", peer.0);
        thread::scope(|scope| {
            match thread::Builder::new().name(name).spawn_scoped(scope, || sender.run(sending)) {
                Ok(_) => receiver.run(receiving),
                Err(error) => fail(&queue, peer, format!("starting its thread: {error}")),
            }
        });
    }

    /// The socket, once the other end has proved to be the peer.
    fn meet(&self, meeting: Meeting) -> Result<Greeted, String> {
        let Meeting { part, deadline, life } = meeting;
        let greeted = match part {
            Part::Listen { listener, secret, claim } => {
                let mut death = None;
                let mut stop = || {
                    death = life.ended();
                    death.is_some() || self.queue.is_closing()
                };
                let greeted = greet(&listener, &secret, &claim, deadline, &mut stop);
                let greeted = greeted.map_err(|error| format!("waiting for it to connect: {error}"))?;
                let late = || format!("it did not connect within {:?}", deadline.given());
                greeted.ok_or_else(|| death.unwrap_or_else(late))?
            }
            Part::Connect { address, secret, claim } => {
                // Also where this end closes meanwhile: the other would wait for it else. A little later it is silenced.
                let stream = self.reach(address, deadline, &life)?;
                self.keep(&stream)?;
                if self.queue.is_silenced() {
                    return Err("it was closed".to_owned());
                }
                let mut claim = |_: &TcpStream| Ok(claim.clone());
                let introduced = introduce(stream, address, &secret, &mut claim, deadline);
                let established = introduced.map_err(|fault| format!("at {address}: {fault}"))?;
                let stream = established.stream.try_clone();
                let stream = stream.map_err(|error| format!("duplicating its socket: {error}"))?;
                Greeted { stream, early: established.reader.into_rest() }
            }
            #[cfg(test)]
            Part::Met(greeted) => greeted,
        };
        self.keep(&greeted.stream)?;
        let stream = &greeted.stream;
        let prepared = (|| {
            stream.set_read_timeout(None)?;
            stream.set_write_timeout(None)?;
            SockRef::from(stream).set_tcp_user_timeout(Some(SILENCE))
        })();
        prepared.map_err(|error| format!("setting up its socket: {error}"))?;
        if !self.queue.meet() {
            // Closed meanwhile: only the last words are left. It fails only on a connection that is closed already.
            _ = stream.shutdown(Shutdown::Read);
        }
        Ok(greeted)
    }

    /// A socket that is connected to where the peer has listened since before it said so, whatever else it does now.
    fn reach(&self, address: SocketAddr, deadline: Deadline, life: &Life) -> Result<TcpStream, String> {
        let mut last = "no attempt was made".to_owned();
        while let Some(left) = deadline.left()
            && !self.queue.is_silenced()
        {
            match reach(address, left.min(ATTEMPT)) {
                Ok(stream) => return Ok(stream),
                // Nobody listens there any more.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    return Err(format!("at {address}: {error}"));
                }
                Err(error) => last = error.to_string(),
            }
            if let Some(death) = life.ended() {
                return Err(death);
            }
            thread::sleep(PAUSE);
        }
        let waited = deadline.given();
        Err(format!(
            "at {address}, within {waited:?}: {last}; where its host has several networks, {} there says which to use",
            env::SOCKET_IFNAME
        ))
    }

    /// Leaves the socket for whoever closes the connection.
    fn keep(&self, stream: &TcpStream) -> Result<(), String> {
        let again = stream.try_clone().map_err(|error| format!("duplicating its socket: {error}"))?;
        // It is there already where this end has introduced itself over it.
        _ = self.socket.set(again);
        Ok(())
    }
}

/// Before the threads' presence ends: their end alone would say less.
fn fail(queue: &Queue, peer: Rank, reason: String) {
    if !queue.is_closing() {
        tracing::warn!(peer = peer.0, "an Ethernet connection did not come about: {reason}");
    }
    queue.end(End::Failed(reason));
}
