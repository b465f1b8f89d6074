//! What waits to be sent over one connection.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::monitor::Monitor;
use crate::net::Deadline;

/// From here on senders wait. A message may be longer: it goes in whole once there is any room.
const FULL_BYTES: usize = 4 << 20;
/// Above this an empty outbox gives its memory back.
const KEPT_BYTES: usize = 256 << 10;

/// Bytes on their way to one peer. Any thread puts them in, and writes at once what the connection takes: what was sent is
/// then out of this process' hands. The rest is the service thread's.
#[derive(Debug)]
pub(super) struct Outbox<W = Arc<TcpStream>> {
    /// The connection's number.
    token: u64,
    state: Monitor<State<W>>,
}

#[derive(Debug)]
struct State<W> {
    connection: W,
    bytes: VecDeque<u8>,
    /// The connection takes nothing at the moment; the service thread knows, or is being told.
    blocked: bool,
    closed: bool,
}

/// Why nothing was put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The connection is closed.
    Closed,
    /// There was no room before the deadline.
    Full,
}

/// Whether the service thread has to be told that there is something to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum News {
    Tell,
    Nothing,
}

/// What is left after bytes were taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    Something,
}

impl<W> Outbox<W>
where
    for<'a> &'a W: Connected,
{
    pub(super) fn new(token: u64, connection: W) -> Self {
        let state = State { connection, bytes: VecDeque::new(), blocked: false, closed: false };
        Self { token, state: Monitor::new(state) }
    }

    pub(super) fn token(&self) -> u64 {
        self.token
    }

    /// Puts in a frame given in parts, as soon as there is room, and writes what the connection takes.
    pub(super) fn push(&self, parts: &[&[u8]], deadline: Deadline) -> Result<News, Refused> {
        self.state.wait_until(|state| {
            if state.closed {
                return ControlFlow::Break(Err(Refused::Closed));
            }
            if state.bytes.len() < FULL_BYTES {
                return ControlFlow::Break(state.push(parts));
            }
            match deadline.left() {
                Some(_) => ControlFlow::Continue(deadline.end()),
                None => ControlFlow::Break(Err(Refused::Full)),
            }
        })
    }

    /// Puts in a frame of the service's own, whatever room there is: these are few and short.
    pub(super) fn push_own(&self, frame: &[u8]) {
        self.state.with(|state| state.bytes.extend(frame));
    }

    /// Lets no more of the senders' frames in. What is there still goes out.
    pub(super) fn close(&self) {
        self.state.change(|state| state.closed = true);
    }

    /// Writes what the connection takes.
    pub(super) fn drain(&self) -> io::Result<Left> {
        self.state.change(|state| {
            let left = state.drain();
            state.blocked = matches!(left, Ok(Left::Something));
            left
        })
    }
}

/// A connection that bytes are written to without waiting.
pub(super) trait Connected {
    fn write_parts(self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
}

impl Connected for &Arc<TcpStream> {
    fn write_parts(self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut stream: &TcpStream = self;
        stream.write_vectored(parts)
    }
}

impl<W> State<W>
where
    for<'a> &'a W: Connected,
{
    fn push(&mut self, parts: &[&[u8]]) -> Result<News, Refused> {
        self.bytes.reserve(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| self.bytes.extend(*part));
        if self.blocked {
            return Ok(News::Nothing);
        }
        match self.drain() {
            Ok(Left::Nothing) => Ok(News::Nothing),
            Ok(Left::Something) => {
                self.blocked = true;
                Ok(News::Tell)
            }
            Err(_) => {
                self.closed = true;
                Err(Refused::Closed)
            }
        }
    }

    fn drain(&mut self) -> io::Result<Left> {
        while !self.bytes.is_empty() {
            let (front, back) = self.bytes.as_slices();
            match self.connection.write_parts(&[IoSlice::new(front), IoSlice::new(back)]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.bytes.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Left::Something),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.shrink_to(KEPT_BYTES);
        Ok(Left::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Takes `room` bytes, then would block.
    struct Pipe {
        room: usize,
        taken: Vec<u8>,
    }

    impl Connected for &Arc<Mutex<Pipe>> {
        fn write_parts(self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
            let mut pipe = self.lock().unwrap();
            let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            let count = all.len().min(pipe.room);
            if count == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            pipe.room -= count;
            pipe.taken.extend_from_slice(&all[..count]);
            Ok(count)
        }
    }

    fn with_room(room: usize) -> (Outbox<Arc<Mutex<Pipe>>>, Arc<Mutex<Pipe>>) {
        let pipe = Arc::new(Mutex::new(Pipe { room, taken: Vec::new() }));
        (Outbox::new(1, Arc::clone(&pipe)), pipe)
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_millis(10))
    }

    #[test]
    fn what_goes_in_comes_out_in_order() {
        let (outbox, pipe) = with_room(4);
        assert_eq!(outbox.push(&[b"ab", b"c"], soon()), Ok(News::Nothing));
        assert_eq!(outbox.push(&[b"de"], soon()), Ok(News::Tell), "one byte had room");
        pipe.lock().unwrap().room = 100;
        assert_eq!(outbox.push(&[b"f"], soon()), Ok(News::Nothing), "the service was told");
        assert_eq!(pipe.lock().unwrap().taken, b"abcd");
        assert_eq!(outbox.drain().unwrap(), Left::Nothing);
        assert_eq!(outbox.push(&[b"g"], soon()), Ok(News::Nothing));
        assert_eq!(pipe.lock().unwrap().taken, b"abcdefg");
    }

    #[test]
    fn a_full_outbox_lets_nobody_in_until_there_is_room() {
        let (outbox, pipe) = with_room(0);
        let message = vec![7; FULL_BYTES];
        assert_eq!(outbox.push(&[&message], soon()), Ok(News::Tell));
        assert_eq!(outbox.push(&[b"x"], soon()), Err(Refused::Full));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| outbox.push(&[b"x"], Deadline::after(Duration::from_secs(60))));
            pipe.lock().unwrap().room = usize::MAX;
            outbox.drain().unwrap();
            assert!(waiting.join().unwrap().is_ok());
        });
    }

    #[test]
    fn a_closed_outbox_still_goes_out() {
        let (outbox, pipe) = with_room(0);
        assert_eq!(outbox.push(&[b"last"], soon()), Ok(News::Tell));
        outbox.close();
        assert_eq!(outbox.push(&[b"x"], soon()), Err(Refused::Closed));
        outbox.push_own(b"!");
        pipe.lock().unwrap().room = 100;
        assert_eq!(outbox.drain().unwrap(), Left::Nothing);
        assert_eq!(pipe.lock().unwrap().taken, b"last!");
    }
}
