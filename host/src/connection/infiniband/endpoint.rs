//! An end that has yet to meet its peer, and how the two meet.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use warpwire_device::abi::Rank;

use super::config::{InfiniBandConfig, SignalMode};
use super::description::Description;
use super::line::Line;
use super::link::InfiniBandLink;
use super::receiver::Receiver;
use super::scratch::{self, MESSAGE_BYTES, Scratch};
use crate::connection::endpoint::{Endpoint, Life, Peer};
use crate::connection::link::{Link, Transport};
use crate::device::Device;
use crate::env;
use crate::error::{ConnectionError, Result, VerbsError};
use crate::verbs::{Adapter, Address, Depths, Outcome, Patience, QueuePair, Request, Route, Work};

/// Requests and receives that a connection has at least.
const LEAST_DEPTH: u32 = 4;

/// One end: a queue pair in INIT, with its receives posted.
#[derive(Debug)]
pub(in crate::connection) struct InfiniBandEndpoint {
    adapter: Adapter,
    mode: SignalMode,
    route: Route,
    max_message: u32,
    depths: Depths,
    patience: Patience,
    // In this order: an adapter lets go of memory before it goes.
    queue_pair: QueuePair,
    scratch: Scratch,
    first_packet: u32,
}

impl InfiniBandEndpoint {
    pub(in crate::connection) fn new(device: &Device, config: &InfiniBandConfig) -> Result<Self> {
        let adapter = Adapter::for_index(device.properties().ordinal as usize)?;
        let mode = mode(&adapter, config)?;
        let gid_index = match config.gid_index {
            Some(index) => Some(index),
            None => env::gid_index()?,
        };
        let (route, max_message) = adapter.route(config.port, gid_index)?;
        let deepest = adapter.queue_depth();
        let receive = if mode == SignalMode::HostNoAtomic { config.signal_depth } else { LEAST_DEPTH };
        let depths = Depths {
            send: config.queue_depth.clamp(LEAST_DEPTH, deepest.max(LEAST_DEPTH)),
            receive: receive.clamp(LEAST_DEPTH, deepest.max(LEAST_DEPTH)),
        };
        let scratch = Scratch::new(&adapter, depths.receive)?;
        let send = adapter.polled_queue(depths.send)?;
        let received = match mode {
            SignalMode::Host => adapter.polled_queue(depths.receive)?,
            SignalMode::HostNoAtomic => adapter.awaited_queue(depths.receive)?,
        };
        let queue_pair = QueuePair::new(adapter.domain(), &send, &received, depths)?;
        let patience = Patience {
            timeout: config.timeout.min(31),
            retries: config.retries.min(6),
            receiver_retries: RECEIVER_RETRIES,
            receiver_timer: RECEIVER_TIMER,
        };
        let end = Self {
            adapter,
            mode,
            route,
            max_message,
            depths,
            patience,
            queue_pair,
            scratch,
            first_packet: first_packet()?,
        };
        end.initialise()?;
        Ok(end)
    }

    fn initialise(&self) -> Result<()> {
        self.queue_pair.initialise(self.route.port)?;
        (0..self.depths.receive).try_for_each(|index| {
            let (address, key) = self.scratch.message_place(index.into());
            self.queue_pair.post_receive(index.into(), address, MESSAGE_BYTES, key)
        })
    }

    fn address(&self) -> Address {
        Address {
            number: self.queue_pair.number(),
            first_packet: self.first_packet,
            lid: self.route.lid,
            gid: self.route.gid,
            mtu: self.route.mtu,
            is_ethernet: self.route.is_ethernet,
        }
    }

    /// From INIT to RTS.
    fn connect(&self, far: &Description) -> Result<()> {
        self.queue_pair.answer(&self.route, &far.address, self.patience)?;
        self.queue_pair.speak(self.first_packet, self.patience)
    }

    /// Returns when both ends can be spoken to.
    ///
    /// An end that speaks before the other answers would count it as lost after a while. So the end with the lower name
    /// greets, and begins anew when that has failed; the other says nothing until it was greeted. Its packets are then sure
    /// to be the first that the greeter's queue pair sees.
    fn meet(&self, (peer, life): (Rank, &Life), far: &Description, deadline: Instant) -> Result<()> {
        let name = |adapter, number| (adapter, number);
        let own = name(self.adapter.guid(), self.queue_pair.number());
        let greets = own < name(far.adapter, far.address.number);
        let timeout = deadline.saturating_duration_since(Instant::now());
        self.connect(far)?;
        if greets {
            self.greet(far)?;
        }
        loop {
            let met = if greets { self.is_answered(peer)? } else { Some(self.scratch.is_greeted()) };
            match met {
                Some(true) => return Ok(()),
                Some(false) => {}
                None => {
                    self.begin_anew()?;
                    self.connect(far)?;
                    self.greet(far)?;
                }
            }
            let transport = Transport::InfiniBand.name();
            if let Some(reason) = life.ended() {
                return Err(ConnectionError::Failed { peer, transport, reason }.into());
            }
            if Instant::now() > deadline {
                return Err(ConnectionError::Timeout { peer, transport, timeout }.into());
            }
            thread::sleep(Duration::from_micros(200));
        }
    }

    fn greet(&self, far: &Description) -> Result<()> {
        let work = Work::WriteWord { value: 1, to: scratch::greeting_of(far.scratch) };
        self.queue_pair.post(&[Request { id: 0, work, signalled: true }])
    }

    /// Whether the greeting has arrived; `None` where the peer did not answer.
    fn is_answered(&self, peer: Rank) -> Result<Option<bool>> {
        let mut found = None;
        let completions = self.queue_pair.send_completions();
        completions.poll(|completion| found = found.or(Some(completion.outcome)))?;
        match found {
            None => Ok(Some(false)),
            Some(Outcome::Failed(status)) if status.is_unanswered() => Ok(None),
            Some(Outcome::Failed(status)) => {
                let reason = format!("its greeting ended with: {}", completions.words(status));
                let transport = Transport::InfiniBand.name();
                Err(ConnectionError::Failed { peer, transport, reason }.into())
            }
            Some(_) => Ok(Some(true)),
        }
    }

    /// From the state that a failure has left back to INIT.
    fn begin_anew(&self) -> Result<()> {
        self.queue_pair.reset()?;
        // What the failure has swept out.
        self.queue_pair.send_completions().poll(|_| {})?;
        self.queue_pair.receive_completions().poll(|_| {})?;
        self.initialise()
    }
}

/// How often, and how long, the peer's adapter asks to wait where it had no receive: about three seconds. Credits keep that
/// from ever being so while the peer's thread runs.
const RECEIVER_RETRIES: u8 = 6;
const RECEIVER_TIMER: u8 = 31;

fn mode(adapter: &Adapter, config: &InfiniBandConfig) -> Result<SignalMode> {
    let of_atomics = |atomics| if atomics { SignalMode::Host } else { SignalMode::HostNoAtomic };
    let asked = match config.mode {
        Some(mode) => Some(mode),
        None => env::verbs_atomics()?.map(of_atomics),
    };
    let mode = asked.unwrap_or(of_atomics(adapter.has_atomics()));
    if mode == SignalMode::Host && !adapter.has_atomics() {
        let lack = format!("has no atomics: choose the mode {}", SignalMode::HostNoAtomic);
        return Err(VerbsError::Incapable { adapter: adapter.name().to_owned(), lack }.into());
    }
    Ok(mode)
}

/// 24 bits that the last connection of these queue pairs has hardly begun with.
fn first_packet() -> Result<u32> {
    let system = |error| crate::Error::system("getting random bytes", std::io::Error::other(error));
    let random = getrandom::u32().map_err(system)?;
    Ok(random >> 8)
}

impl Endpoint for InfiniBandEndpoint {
    fn terms(&self) -> Vec<(String, String)> {
        let link = if self.route.is_ethernet { "Ethernet (RoCE)" } else { "InfiniBand" };
        vec![("the mode".to_owned(), self.mode.to_string()), ("the link layer".to_owned(), link.to_owned())]
    }

    fn description(&self) -> Result<Vec<u8>> {
        Description::new(
            self.address(),
            self.adapter.guid(),
            self.depths.receive,
            self.max_message,
            self.scratch.place(),
        )
        .seal()
    }

    fn join(self: Box<Self>, peer: Peer<'_>, timeout: Duration) -> Result<Arc<dyn Link>> {
        let far = Description::open(peer.description)?;
        self.meet((peer.rank, &peer.life), &far, Instant::now() + timeout)?;
        let (mode, depths) = (self.mode, self.depths);
        let line = Arc::new(Line::new(
            (peer.rank, far),
            (mode, self.max_message, depths),
            self.adapter,
            (self.scratch, self.queue_pair),
        ));
        let receiver = match mode {
            SignalMode::Host => None,
            SignalMode::HostNoAtomic => Some(Receiver::start(&line)?),
        };
        Ok(Arc::new(InfiniBandLink::new(line, receiver)))
    }
}
