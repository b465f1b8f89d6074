//! One connection, as the service thread sees it.

use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use warpwire_device::abi::Rank;

use super::super::frame::FrameReader;
use super::super::handshake::Host;
use super::super::outbox::{Left, Outbox};
use super::poller::{Interest, Poller};

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Arc<TcpStream>,
    pub(super) address: SocketAddr,
    pub(super) reader: FrameReader,
    pub(super) outbox: Arc<Outbox>,
    pub(super) stage: Stage,
    /// Nothing is read: the mailbox has no room for this rank's messages.
    pub(super) paused: bool,
    /// The outbox has more than the connection takes at the moment.
    blocked: bool,
    interest: Interest,
}

/// How far a connection has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// Who is at the other end is not known yet.
    Greeting(Box<Host>),
    /// That rank is.
    Link(Rank),
}

/// What reading came to.
#[derive(Debug)]
pub(super) enum Reading {
    /// Some bytes came.
    Bytes,
    /// There are none at the moment.
    Nothing,
    /// There will be none any more, for that reason.
    Over(String),
}

impl Connection {
    pub(super) fn new(
        stream: Arc<TcpStream>,
        address: SocketAddr,
        reader: FrameReader,
        outbox: Arc<Outbox>,
        stage: Stage,
    ) -> Self {
        let interest = Interest::default();
        Self { stream, address, reader, outbox, stage, paused: false, blocked: false, interest }
    }

    /// The rank at the other end, once it is known.
    pub(super) fn peer(&self) -> Option<Rank> {
        match self.stage {
            Stage::Greeting(_) => None,
            Stage::Link(peer) => Some(peer),
        }
    }

    /// Reads what there is, up to the buffer's length.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Reading {
        match (&*self.stream).read(buffer) {
            Ok(0) => Reading::Over("its connection closed".to_owned()),
            Ok(count) => {
                self.reader.feed(&buffer[..count]);
                Reading::Bytes
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => Reading::Nothing,
                ErrorKind::Interrupted => Reading::Bytes,
                _ => Reading::Over(format!("its connection broke: {error}")),
            },
        }
    }

    /// Writes what the connection takes; `last` says that nothing will follow. A connection that takes nothing any more ends
    /// when it is read, so that what had come before is still received.
    pub(super) fn write(&mut self, last: bool) {
        match self.outbox.drain() {
            Ok(Left::Something) => self.blocked = true,
            Ok(Left::Nothing) => {
                self.blocked = false;
                if last {
                    // It fails only on a connection that is closed already.
                    _ = self.stream.shutdown(Shutdown::Write);
                }
            }
            Err(_) => {
                self.blocked = false;
                self.outbox.close();
            }
        }
    }

    /// Ends it at both ends. Senders may still refer to it, so a drop alone would keep it open, and a peer that leaves waits
    /// until it has been closed here.
    pub(super) fn retire(self) {
        self.outbox.close();
        // It fails only on a connection that is closed already.
        _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Has the poller wait for what this connection needs now.
    pub(super) fn register(&mut self, poller: &Poller) -> io::Result<()> {
        let now = Interest { read: !self.paused, write: self.blocked };
        poller.set(&self.stream, self.outbox.token(), self.interest, now)?;
        self.interest = now;
        Ok(())
    }
}
