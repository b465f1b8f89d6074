//! The thread that sends: requests in their order, and acknowledgements between them.
//!
//! It alone writes to the socket. The receiving thread therefore never waits for the peer to read, and two ends that both have
//! much to send cannot block each other.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use super::frame::{self, ACKNOWLEDGE_BYTES, Objection, PIECE_BYTES, Target, UPDATE_BYTES, WRITE_HEAD_BYTES};
use super::queue::{Queue, Serving};
use super::request::{Request, Turn};
use super::staging::Staging;
use crate::memory::Region;

/// Frames are gathered up to this size before they are written to the socket.
pub(super) const BATCH_BYTES: usize = WRITE_HEAD_BYTES + PIECE_BYTES + ACKNOWLEDGE_BYTES;

/// What the sending thread has.
#[derive(Debug)]
pub(super) struct Sender {
    queue: Arc<Queue>,
    stream: TcpStream,
    batch: Staging,
    used: usize,
}

/// Why nothing more can be sent.
struct Stop;

impl Sender {
    /// `batch` has [`BATCH_BYTES`].
    pub(super) fn new(queue: Arc<Queue>, stream: TcpStream, batch: Staging) -> Self {
        Self { queue, stream, batch, used: 0 }
    }

    /// Sends until the connection ends.
    pub(super) fn run(mut self, serving: Serving) {
        while self.turn().is_ok() {}
        drop(serving);
    }

    fn turn(&mut self) -> Result<(), Stop> {
        match self.queue.turn() {
            Turn::Send(request) => {
                let mut next = request;
                while let Some(request) = next {
                    self.add(request)?;
                    next = self.queue.try_take();
                }
                self.flush()
            }
            Turn::Object(objection) => self.finish(&frame::object(objection)),
            Turn::Close => self.finish(&frame::bye()),
            Turn::End => Err(Stop),
        }
    }

    fn add(&mut self, request: Request) -> Result<(), Stop> {
        match request {
            Request::Write { target, source, offset, bytes } => {
                self.add_write(target, &source, offset, bytes)
            }
            Request::Update { target, value } => {
                self.make_room(UPDATE_BYTES)?;
                self.put(&frame::update(target, value));
                Ok(())
            }
        }
    }

    /// The source is read here, piece by piece, when it is its turn to be sent.
    fn add_write(&mut self, target: Target, source: &Region, offset: u64, bytes: u64) -> Result<(), Stop> {
        let mut done = 0;
        while done < bytes {
            let piece = (bytes - done).min(PIECE_BYTES as u64) as usize;
            self.make_room(WRITE_HEAD_BYTES + piece)?;
            self.put(&frame::write_head(Target { offset: target.offset + done, ..target }, piece));
            let data = self.batch.get_mut(self.used..self.used + piece).ok_or(Stop)?;
            if let Err(error) = source.read(offset + done, data) {
                // What has been gathered ends in half a frame: none of it is sent, and the peer is told why.
                self.used = 0;
                self.queue.object(Objection::DEVICE, format!("reading the source: {error}"));
                return Ok(());
            }
            self.used += piece;
            done += piece as u64;
        }
        Ok(())
    }

    /// There is always room for an acknowledgement besides.
    fn make_room(&mut self, bytes: usize) -> Result<(), Stop> {
        if self.used + bytes + ACKNOWLEDGE_BYTES > BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.batch.get_mut(self.used..self.used + bytes.len()) {
            place.copy_from_slice(bytes);
            self.used += bytes.len();
        }
    }

    /// Writes what has been gathered, and the acknowledgement that is due.
    fn flush(&mut self) -> Result<(), Stop> {
        self.acknowledge();
        self.write()
    }

    fn acknowledge(&mut self) {
        if let Some(frames) = self.queue.take_acknowledgement() {
            self.put(&frame::acknowledge(frames));
        }
    }

    fn write(&mut self) -> Result<(), Stop> {
        let gathered = self.batch.get(..self.used).unwrap_or_default();
        let written = self.stream.write_all(gathered);
        self.used = 0;
        written.map_err(|error| {
            // The peer may have said why, and the receiving thread has yet to read it: the end is for that to tell.
            self.queue.broke(format!("its connection broke: {error}"));
            // It fails only on a connection that is closed already. It ends the receiving thread's wait.
            _ = self.stream.shutdown(Shutdown::Both);
            Stop
        })
    }

    /// Writes the last frame.
    fn finish(&mut self, last: &[u8]) -> Result<(), Stop> {
        self.used = 0;
        self.acknowledge();
        self.put(last);
        self.write()?;
        // As above: it fails only where there is nobody any more to be told.
        _ = self.stream.shutdown(Shutdown::Write);
        Err(Stop)
    }
}
