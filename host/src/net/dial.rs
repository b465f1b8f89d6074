//! Connecting to another rank, from the thread that wants it.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use super::deadline::Deadline;
use super::frame::{Fault, Frame, FrameReader, HANDSHAKE_LIMIT};
use super::handshake::{Guest, Rejection};
use super::secret::Secret;
use crate::error::{Error, Refusal, Result};

/// A connection that both ends agreed on. Bytes behind the handshake may have come already; the reader's limit is the handshake's
/// still.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) stream: Arc<TcpStream>,
    pub(crate) address: SocketAddr,
    pub(crate) reader: FrameReader,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum DialFault {
    /// The time is up.
    Late {
        attempts: u32,
        last: String,
    },
    /// The other end said no.
    Refused {
        address: SocketAddr,
        refusal: Refusal,
    },
    /// The other end is none of ours.
    Stranger {
        address: SocketAddr,
        reason: String,
    },
    /// It is pointless to go on.
    Stopped,
    Other(Error),
}

/// How one attempt failed.
#[derive(Debug)]
pub(crate) enum AttemptFault {
    /// The other end may not be there yet.
    Again(String),
    Rejected(Rejection),
    Other(Error),
}

impl fmt::Display for AttemptFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Again(reason) | Self::Rejected(Rejection::Stranger(reason)) => f.write_str(reason),
            Self::Rejected(Rejection::Refused(refusal)) => write!(f, "it turned this end away: {refusal}"),
            Self::Other(error) => error.fmt(f),
        }
    }
}

/// Between attempts, at first and at most.
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// One attempt to connect takes no longer: `stop` is to be looked at now and then.
const CONNECT: Duration = Duration::from_secs(3);

/// Connects to the first of `addresses` that takes it, again and again until the deadline: the other end may start later.
/// `claim` says who this is, once it is known by which address it goes; `stop` says when nobody is to be found any more.
pub(crate) fn dial(
    addresses: &[SocketAddr],
    secret: &Secret,
    claim: &mut dyn FnMut(&TcpStream) -> Result<Vec<u8>>,
    deadline: Deadline,
    stop: &dyn Fn() -> bool,
) -> Result<Established, DialFault> {
    let mut pause = PAUSE;
    let mut last = "none was made".to_owned();
    for (attempts, address) in (0..).zip(addresses.iter().cycle()) {
        if stop() {
            return Err(DialFault::Stopped);
        }
        let Some(left) = deadline.left() else { return Err(DialFault::Late { attempts, last }) };
        match attempt(*address, secret, claim, deadline) {
            Ok(connection) => return Ok(connection),
            Err(AttemptFault::Again(reason)) => last = format!("{address}: {reason}"),
            Err(AttemptFault::Rejected(Rejection::Refused(refusal))) => {
                return Err(DialFault::Refused { address: *address, refusal });
            }
            Err(AttemptFault::Rejected(Rejection::Stranger(reason))) => {
                return Err(DialFault::Stranger { address: *address, reason });
            }
            Err(AttemptFault::Other(error)) => return Err(DialFault::Other(error)),
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Err(DialFault::Late { attempts: 0, last: "there is no address".to_owned() })
}

fn attempt(
    address: SocketAddr,
    secret: &Secret,
    claim: &mut dyn FnMut(&TcpStream) -> Result<Vec<u8>>,
    deadline: Deadline,
) -> Result<Established, AttemptFault> {
    let left = deadline.left().unwrap_or(Duration::from_millis(1));
    let stream = reach(address, left.min(CONNECT)).map_err(|error| AttemptFault::Again(error.to_string()))?;
    introduce(stream, address, secret, claim, deadline)
}

/// A socket that is connected to `address`, where nothing has been said yet. One attempt.
pub(crate) fn reach(address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let stream = connect(address, timeout)?;
    // A port that nobody listens on may be the one that this very socket was given: it then reaches itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::Error::new(ErrorKind::ConnectionRefused, "nobody listens there"));
    }
    prepare(&stream)?;
    Ok(stream)
}

/// The guest's part of the handshake.
pub(crate) fn introduce(
    stream: TcpStream,
    address: SocketAddr,
    secret: &Secret,
    claim: &mut dyn FnMut(&TcpStream) -> Result<Vec<u8>>,
    deadline: Deadline,
) -> Result<Established, AttemptFault> {
    let mut wire = Wire { stream, reader: FrameReader::new(HANDSHAKE_LIMIT), deadline };
    let (mut guest, hello) = Guest::new(secret.clone()).map_err(AttemptFault::Other)?;
    wire.send(&hello)?;
    let challenge = wire.receive()?;
    let claim = claim(&wire.stream).map_err(AttemptFault::Other)?;
    let proof = guest.answer(&challenge, &claim).map_err(AttemptFault::Rejected)?;
    wire.send(&proof)?;
    guest.conclude(&wire.receive()?).map_err(AttemptFault::Rejected)?;
    let Wire { stream, reader, .. } = wire;
    Ok(Established { stream: Arc::new(stream), address, reader })
}

fn connect(address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.connect_timeout(&address.into(), timeout)?;
    Ok(socket.into())
}

/// What every connection has: no waiting for more bytes to send, and a way to find out that the other
/// host is gone without a word.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(10))
        .with_interval(Duration::from_secs(5))
        .with_retries(3);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// Frames over a blocking connection, by a deadline.
struct Wire {
    stream: TcpStream,
    reader: FrameReader,
    deadline: Deadline,
}

impl Wire {
    fn send(&mut self, frame: &[u8]) -> Result<(), AttemptFault> {
        let sent = self.limit().and_then(|()| self.stream.write_all(frame));
        sent.map_err(|error| AttemptFault::Again(error.to_string()))
    }

    fn receive(&mut self) -> Result<Frame, AttemptFault> {
        match next_frame(&self.stream, &mut self.reader, self.deadline) {
            Ok(frame) => Ok(frame),
            Err(ReadFault::Frame(fault)) => {
                Err(AttemptFault::Rejected(Rejection::Stranger(fault.to_string())))
            }
            Err(ReadFault::Late) => Err(AttemptFault::Again("it did not answer in time".to_owned())),
            Err(ReadFault::Io(error)) => Err(AttemptFault::Again(error.to_string())),
        }
    }

    fn limit(&self) -> io::Result<()> {
        self.stream.set_write_timeout(Some(self.deadline.left().ok_or(ErrorKind::TimedOut)?))
    }
}

/// Why no frame came.
#[derive(Debug)]
pub(crate) enum ReadFault {
    Late,
    Io(io::Error),
    Frame(Fault),
}

/// The next frame of a blocking connection.
pub(crate) fn next_frame(
    mut stream: &TcpStream,
    reader: &mut FrameReader,
    deadline: Deadline,
) -> Result<Frame, ReadFault> {
    let mut bytes = [0; 4096];
    loop {
        if let Some(frame) = reader.next().map_err(ReadFault::Frame)? {
            return Ok(frame);
        }
        let left = deadline.left().ok_or(ReadFault::Late)?;
        stream.set_read_timeout(Some(left)).map_err(ReadFault::Io)?;
        match stream.read(&mut bytes) {
            Ok(0) => {
                return Err(ReadFault::Io(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "it closed the connection",
                )));
            }
            Ok(count) => reader.feed(&bytes[..count]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                _ => return Err(ReadFault::Io(error)),
            },
        }
    }
}
