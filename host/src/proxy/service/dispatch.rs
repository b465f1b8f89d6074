//! Does what port channels ask for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpwire_device::abi::{PortId, Position, Request, RequestDecoder, RequestKind, Trigger};

use super::port::Tables;
use crate::connection::Mark;
use crate::error::{ProxyError, Result};
use crate::proxy::Handler;

/// The service's handler. A flush is only begun when its trigger is handled: its position and the connection's mark are kept,
/// and the position is published when the connection has passed the mark. No other port waits for that.
#[derive(Clone, Debug)]
pub(super) struct Dispatcher {
    tables: Arc<Tables>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    decoder: RequestDecoder,
    ports: Vec<PortState>,
    /// Ports that have flushes under way.
    flushing: Vec<PortId>,
}

#[derive(Debug, Default)]
struct PortState {
    /// Signals sent: what the peer's token is set to.
    signals: u64,
    /// Flushes under way, in the order in which they were asked for, which is also that of their marks.
    flushes: VecDeque<(Mark, Position)>,
}

impl Dispatcher {
    pub(super) fn new(tables: Arc<Tables>) -> Self {
        Self { tables, state: Arc::default() }
    }

    /// Forgets half a request and every flush; signals are counted on.
    pub(super) fn reset(&self) {
        let mut state = self.lock();
        state.decoder = RequestDecoder::default();
        state.flushing.clear();
        state.ports.iter_mut().for_each(|port| port.flushes.clear());
    }

    fn perform(&self, state: &mut State, request: Request, position: Position) -> Result<()> {
        let Request { kind, port, .. } = request;
        let end = self.tables.ports.get(port.number())?;
        let number = port.number() as usize;
        if state.ports.len() <= number {
            state.ports.resize_with(number + 1, PortState::default);
        }
        let of_port = &mut state.ports[number];
        if kind.contains(RequestKind::DATA) {
            let destination = self.tables.memories.get(request.destination.number())?;
            let source = self.tables.memories.get(request.source.number())?;
            let (to, from) = (request.destination_offset, request.source_offset);
            end.connection.write(destination, to, source, from, request.bytes)?;
        }
        if kind.contains(RequestKind::SIGNAL) {
            of_port.signals += 1;
            end.connection.update(&end.peer_token, 0, of_port.signals)?;
        }
        if kind.contains(RequestKind::FLUSH) {
            let mark = end.connection.mark()?;
            if of_port.flushes.is_empty() {
                state.flushing.push(port);
            }
            of_port.flushes.push_back((mark, position));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for Dispatcher {
    fn handle(&mut self, position: Position, trigger: Trigger) -> Result<()> {
        let mut state = self.lock();
        match state.decoder.decode(trigger) {
            Ok(None) => Ok(()),
            Ok(Some(request)) => self.perform(&mut state, request, position),
            Err(_) => Err(ProxyError::NoRequest { rank: self.tables.rank, words: trigger.words() }.into()),
        }
    }

    fn progress(&mut self) -> Result<usize> {
        let mut state = self.lock();
        let State { ports, flushing, .. } = &mut *state;
        let (mut pending, mut at) = (0, 0);
        while let Some(&port) = flushing.get(at) {
            let end = self.tables.ports.get(port.number())?;
            let flushes = &mut ports[port.number() as usize].flushes;
            let mut last = None;
            while let Some(&(mark, position)) = flushes.front() {
                if !end.connection.is_complete(mark)? {
                    break;
                }
                flushes.pop_front();
                last = Some(position);
            }
            if let Some(position) = last {
                self.tables.publish_flush(port, position);
            }
            pending += flushes.len();
            if flushes.is_empty() {
                flushing.swap_remove(at);
            } else {
                at += 1;
            }
        }
        Ok(pending)
    }
}
