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
    /// Of each port, its flushes under way, in the order in which they were asked for, which is also that of their marks.
    flushes: Vec<VecDeque<(Mark, Position)>>,
    /// Ports that have flushes under way.
    flushing: Vec<PortId>,
}

impl Dispatcher {
    pub(super) fn new(tables: Arc<Tables>) -> Self {
        Self { tables, state: Arc::default() }
    }

    /// Forgets half a request and every flush.
    pub(super) fn reset(&self) {
        let mut state = self.lock();
        state.decoder = RequestDecoder::default();
        state.flushing.clear();
        state.flushes.iter_mut().for_each(VecDeque::clear);
    }

    fn perform(&self, state: &mut State, request: Request, position: Position) -> Result<()> {
        let Request { kind, port, .. } = request;
        let semaphore = self.tables.ports.get(port.number())?.semaphore();
        let connection = semaphore.connection();
        let signals = kind.contains(RequestKind::SIGNAL);
        if kind.contains(RequestKind::DATA) {
            let destination = self.tables.memories.get(request.destination.number())?;
            let source = self.tables.memories.get(request.source.number())?;
            let (to, from) = (request.destination_offset, request.source_offset);
            if signals {
                semaphore.write_and_signal((destination, to), (source, from), request.bytes)?;
            } else {
                connection.write(destination, to, source, from, request.bytes)?;
            }
        } else if signals {
            semaphore.signal()?;
        }
        if kind.contains(RequestKind::FLUSH) {
            let mark = connection.mark()?;
            let number = port.number() as usize;
            if state.flushes.len() <= number {
                state.flushes.resize_with(number + 1, VecDeque::new);
            }
            if state.flushes[number].is_empty() {
                state.flushing.push(port);
            }
            state.flushes[number].push_back((mark, position));
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
        let State { flushes, flushing, .. } = &mut *state;
        let (mut pending, mut at) = (0, 0);
        while let Some(&port) = flushing.get(at) {
            let connection = self.tables.ports.get(port.number())?.semaphore().connection();
            let flushes = &mut flushes[port.number() as usize];
            let mut last = None;
            while let Some(&(mark, position)) = flushes.front() {
                if !connection.is_complete(mark)? {
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
