//! The thread that receives: it places what the peer writes, and takes the peer's acknowledgements.
//!
//! It believes nothing that comes: a frame names memory by a key, and what is no memory of this process that is registered now,
//! or reaches beyond it, ends the connection before a byte is placed.

use std::io::{self, BufReader, Chain, Cursor, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use warpwire_device::abi::Rank;

use super::frame::{self, Message, Objection, Target, Unread};
use super::queue::{Queue, Serving};
use super::request::End;
use super::staging::Staging;
use super::words::Words;
use crate::error::{Error, Result};
use crate::memory::Region;

/// Read at once, where the peer sends many short frames.
const INPUT_BYTES: usize = 64 << 10;

/// What the receiving thread has.
#[derive(Debug)]
pub(super) struct Receiver {
    queue: Arc<Queue>,
    peer: Rank,
    stream: TcpStream,
    input: BufReader<Chain<Cursor<Vec<u8>>, TcpStream>>,
    data: Staging,
    words: Words,
}

/// Why nothing more is received.
enum Stop {
    End(End),
    /// The peer did what it may not.
    Object(Objection, String),
}

impl Receiver {
    /// `early` are bytes that came with the handshake; `data` has room for [`frame::PIECE_BYTES`].
    pub(super) fn new(
        queue: Arc<Queue>,
        peer: Rank,
        stream: TcpStream,
        early: Vec<u8>,
        data: Staging,
        words: Words,
    ) -> io::Result<Self> {
        let input = BufReader::with_capacity(INPUT_BYTES, Cursor::new(early).chain(stream.try_clone()?));
        Ok(Self { queue, peer, stream, input, data, words })
    }

    /// Receives until the connection ends.
    pub(super) fn run(mut self, serving: Serving) {
        self.receive();
        drop(serving);
    }

    fn receive(&mut self) {
        let stop = loop {
            if self.queue.is_closing() {
                return;
            }
            if let Err(stop) = self.step() {
                break stop;
            }
        };
        match stop {
            _ if self.queue.is_closing() => {}
            Stop::End(end) => {
                if let End::Failed(reason) = &end {
                    tracing::warn!(peer = self.peer.0, "an Ethernet connection has failed: {reason}");
                }
                self.queue.end(end);
                // It fails only on a connection that is closed already. It ends the sending thread's wait.
                _ = self.stream.shutdown(Shutdown::Both);
            }
            Stop::Object(objection, reason) => {
                tracing::warn!(peer = self.peer.0, "an Ethernet connection is given up: {reason}");
                // The sending thread tells the peer, then closes.
                self.queue.object(objection, reason);
            }
        }
    }

    fn step(&mut self) -> Result<(), Stop> {
        match frame::receive(&mut self.input).map_err(|unread| self.unread(unread))? {
            Message::Write { target, bytes } => {
                let region = find(target)?;
                let data = self.data.get_mut(..bytes).unwrap_or_default();
                let read = self.input.read_exact(data);
                read.map_err(|error| self.unread(error.into()))?;
                let data = self.data.get(..bytes).unwrap_or_default();
                region.write(target.offset, data).map_err(|error| refused(target, &error))?;
                self.queue.placed();
            }
            Message::Update { target, value } => {
                let region = find(target)?;
                self.words.set(&region, target.offset, value).map_err(|error| refused(target, &error))?;
                self.queue.placed();
            }
            Message::Acknowledge { frames } => self.queue.acknowledge(frames).map_err(|objection| {
                Stop::Object(objection, format!("it acknowledged {frames} frames, which were not sent"))
            })?,
            Message::Object(objection) => {
                return Err(Stop::End(End::Failed(format!(
                    "it gave the connection up: {}",
                    objection.words()
                ))));
            }
            Message::Bye => return Err(Stop::End(End::Left)),
        }
        Ok(())
    }

    fn unread(&self, unread: Unread) -> Stop {
        let reason = unread.to_string();
        match unread {
            // Where the sending thread has found it broken, it knows more.
            Unread::Closed | Unread::Broken(_) => {
                Stop::End(End::Failed(self.queue.broken().unwrap_or(reason)))
            }
            Unread::Frame(_) | Unread::Length { .. } => Stop::Object(Objection::MALFORMED, reason),
        }
    }
}

fn find(target: Target) -> Result<Arc<Region>, Stop> {
    Region::find(target.slot, target.generation).ok_or_else(|| {
        let reason = format!("it named memory that is not registered here (any more): {target:?}");
        Stop::Object(Objection::NO_SUCH_MEMORY, reason)
    })
}

fn refused(target: Target, error: &Error) -> Stop {
    let objection = match error {
        Error::OutsideMemory { .. } => Objection::OUTSIDE,
        Error::Misaligned { .. } => Objection::MISALIGNED,
        _ => Objection::DEVICE,
    };
    Stop::Object(objection, format!("placing what it sent to {target:?}: {error}"))
}
