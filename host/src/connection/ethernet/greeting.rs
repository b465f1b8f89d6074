//! Letting the peer in: whoever connects has to prove that it knows this connection's secret.
//!
//! Strangers are turned away and logged. One that is slow or silent holds up nobody: all are heard at once.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::error::Refusal;
use crate::net::Deadline;
use crate::net::dial::prepare;
use crate::net::frame::{FrameReader, HANDSHAKE_LIMIT};
use crate::net::handshake::{Host, Step, refusal_frame};
use crate::net::poller::{Interest, Poller};
use crate::net::secret::Secret;

const LISTENER: u64 = 0;
/// Strangers that are heard at once; then the one that came first has to go.
const GUESTS: usize = 64;
/// How long nobody is let in when the system has no descriptor left.
const REST: Duration = Duration::from_millis(100);

/// A connection whose other end is the peer, and what came behind its handshake.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) stream: TcpStream,
    pub(super) early: Vec<u8>,
}

/// One who has connected and not said yet who it is.
#[derive(Debug)]
struct Guest {
    stream: TcpStream,
    address: SocketAddr,
    reader: FrameReader,
    host: Host,
}

/// What came of hearing a guest.
enum Heard {
    /// It may say more.
    Nothing,
    /// It is the peer.
    Peer,
    /// It is to go, for that reason.
    Stranger(String),
}

/// No wait is longer: `stop` is to be looked at now and then.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// Listens until the one comes that knows the secret and makes `claim`; nothing where the deadline passes first, or `stop`
/// says that nobody is awaited any more.
pub(super) fn greet(
    listener: &TcpListener,
    secret: &Secret,
    claim: &[u8],
    deadline: Deadline,
    stop: &mut dyn FnMut() -> bool,
) -> io::Result<Option<Greeted>> {
    let poller = Poller::new()?;
    listener.set_nonblocking(true)?;
    poller.set(listener, LISTENER, Interest::default(), Interest::READ)?;
    let mut guests: BTreeMap<u64, Guest> = BTreeMap::new();
    let mut next = LISTENER + 1;
    while let Some(left) = deadline.left()
        && !stop()
    {
        for event in poller.wait(Some(Instant::now() + left.min(LOOK)))? {
            if event.token == LISTENER {
                let Some((stream, address)) = accept(listener) else { continue };
                match admit(&poller, next, stream, address, secret) {
                    Ok(guest) => _ = guests.insert(next, guest),
                    Err(error) => tracing::warn!(%address, %error, "lost a connection as it was made"),
                }
                next += 1;
                if guests.len() > GUESTS
                    && let Some((_, oldest)) = guests.pop_first()
                {
                    turn_away(&oldest, "it said nothing while many others came");
                }
                continue;
            }
            let Some(guest) = guests.get_mut(&event.token) else { continue };
            match guest.hear(claim) {
                Heard::Nothing => {}
                Heard::Stranger(reason) => {
                    turn_away(guest, &reason);
                    guests.remove(&event.token);
                }
                Heard::Peer => {
                    let Some(Guest { stream, reader, .. }) = guests.remove(&event.token) else { continue };
                    stream.set_nonblocking(false)?;
                    return Ok(Some(Greeted { stream, early: reader.into_rest() }));
                }
            }
        }
    }
    Ok(None)
}

fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept() {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            let passing = [ErrorKind::WouldBlock, ErrorKind::Interrupted, ErrorKind::ConnectionAborted];
            if !passing.contains(&error.kind()) {
                tracing::warn!(%error, "cannot let in a connection: trying again soon");
                std::thread::sleep(REST);
            }
            None
        }
    }
}

fn admit(
    poller: &Poller,
    token: u64,
    stream: TcpStream,
    address: SocketAddr,
    secret: &Secret,
) -> io::Result<Guest> {
    stream.set_nonblocking(true)?;
    prepare(&stream)?;
    poller.set(&stream, token, Interest::default(), Interest::READ)?;
    Ok(Guest { stream, address, reader: FrameReader::new(HANDSHAKE_LIMIT), host: Host::new(secret.clone()) })
}

fn turn_away(guest: &Guest, why: &str) {
    tracing::warn!(address = %guest.address, "refused an Ethernet connection: {why}");
}

impl Guest {
    fn hear(&mut self, claim: &[u8]) -> Heard {
        let mut bytes = [0; HANDSHAKE_LIMIT];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Heard::Stranger("it closed the connection".to_owned()),
            Ok(count) => self.reader.feed(bytes.get(..count).unwrap_or_default()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Heard::Nothing;
            }
            Err(error) => return Heard::Stranger(error.to_string()),
        }
        loop {
            let frame = match self.reader.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => return Heard::Nothing,
                Err(fault) => return Heard::Stranger(fault.to_string()),
            };
            let answer = match self.host.receive(&frame) {
                Ok(Step::Say(answer)) => answer,
                Ok(Step::Proven { claim: made, welcome }) if made == claim => {
                    return match self.say(&welcome) {
                        Ok(()) => Heard::Peer,
                        Err(error) => Heard::Stranger(error.to_string()),
                    };
                }
                Ok(Step::Proven { .. }) => {
                    return self.refuse(&Refusal::Protocol("it is not the peer".to_owned()));
                }
                Ok(Step::Refuse { refusal, .. }) => return self.refuse(&refusal),
                Err(error) => return Heard::Stranger(error.to_string()),
            };
            if let Err(error) = self.say(&answer) {
                return Heard::Stranger(error.to_string());
            }
        }
    }

    /// A new connection has room for frames this short; one that has none is no peer.
    fn say(&mut self, frame: &[u8]) -> io::Result<()> {
        self.stream.write_all(frame)
    }

    fn refuse(&mut self, refusal: &Refusal) -> Heard {
        // Where it cannot be told, it finds out by the close.
        _ = self.say(&refusal_frame(refusal));
        Heard::Stranger(refusal.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::dial::{DialFault, dial};
    use crate::net::listen;
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn strangers_are_turned_away_and_hold_up_nobody() {
        let (listener, address) = listener();
        let (right, wrong) = (Secret::from_text(Some("a")), Secret::from_text(Some("b")));
        // Silent, garbage, half a frame; all before the peer comes.
        let silent: Vec<_> = (0..GUESTS + 10).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut garbage = TcpStream::connect(address).unwrap();
        garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut half = TcpStream::connect(address).unwrap();
        half.write_all(b"WWBS\x01\x00\x01").unwrap();
        let greeted = thread::scope(|scope| {
            let host = scope
                .spawn(|| greet(&listener, &right, b"me", Deadline::after(LONG), &mut || false).unwrap());
            let other = |secret: &Secret, claim: &'static [u8]| {
                let mut claim = |_: &TcpStream| Ok(claim.to_vec());
                dial(&[address], secret, &mut claim, Deadline::after(LONG), &|| false)
            };
            let refused = other(&wrong, b"me").unwrap_err();
            assert!(matches!(refused, DialFault::Refused { refusal: Refusal::Secret, .. }), "{refused:?}");
            let refused = other(&right, b"somebody else").unwrap_err();
            assert!(
                matches!(refused, DialFault::Refused { refusal: Refusal::Protocol(_), .. }),
                "{refused:?}"
            );
            let guest = other(&right, b"me").unwrap();
            (&*guest.stream).write_all(b"early").unwrap();
            let Greeted { stream, early } = host.join().unwrap().unwrap();
            // What came with the handshake and what came later, together in order.
            let mut rest = vec![0; b"early".len() - early.len()];
            (&stream).read_exact(&mut rest).unwrap();
            assert_eq!([early, rest].concat(), b"early");
            stream
        });
        assert_eq!(garbage.read(&mut [0; 1]).map_or(0, |count| count), 0, "it was closed");
        drop((silent, half, greeted));
    }

    #[test]
    fn nobody_comes() {
        let (listener, _) = listener();
        let secret = Secret::from_text(None);
        let soon = Deadline::after(Duration::from_millis(20));
        assert!(greet(&listener, &secret, b"", soon, &mut || false).unwrap().is_none());
        assert!(greet(&listener, &secret, b"", Deadline::after(LONG), &mut || true).unwrap().is_none());
    }
}
