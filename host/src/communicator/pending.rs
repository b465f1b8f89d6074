//! Results that wait for another rank.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use warpwire_device::abi::Rank;

use crate::bootstrap::{PendingRecv, Tag};
use crate::error::{CommunicatorError, Error, Result};

type Finish<T> = Box<dyn FnOnce(Vec<u8>, Duration) -> Result<T> + Send>;

/// What will come of a call that another rank has to make too: to be waited for, polled, or awaited.
///
/// Results of one (rank, tag) come in the order of the calls, whichever is asked first. One that is dropped takes its peer's
/// message with it: the next does not get it.
///
/// As a future it has no deadline of its own for the other rank's call; that rank's death ends it.
#[must_use = "the other rank's message is for this value"]
pub struct Pending<T> {
    request: Request,
    receipt: PendingRecv,
    arrived: Option<Result<Vec<u8>>>,
    /// What makes the result of the message; taken when it does.
    finish: Option<Finish<T>>,
}

/// What was asked for, for errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) operation: &'static str,
    pub(super) peer: Rank,
    pub(super) tag: Tag,
    /// For the steps behind the message, where nobody says how long they may take.
    pub(super) timeout: Duration,
}

impl Request {
    /// An error of the exchange.
    pub(super) fn failed(&self, source: Error) -> Error {
        let Self { operation, peer, tag: Tag(tag), .. } = *self;
        CommunicatorError::Exchange { operation, peer, tag, source: Box::new(source) }.into()
    }

    fn timed_out(&self, waited: Duration) -> Error {
        let Self { operation, peer, tag: Tag(tag), .. } = *self;
        CommunicatorError::Timeout { operation, peer, tag, waited }.into()
    }

    fn taken(&self) -> Error {
        let Self { operation, peer, tag: Tag(tag), .. } = *self;
        CommunicatorError::Taken { operation, peer, tag }.into()
    }
}

impl<T> Pending<T> {
    pub(super) fn new(
        request: Request,
        receipt: PendingRecv,
        finish: impl FnOnce(Vec<u8>, Duration) -> Result<T> + Send + 'static,
    ) -> Self {
        Self { request, receipt, arrived: None, finish: Some(Box::new(finish)) }
    }

    /// The rank that it waits for.
    #[must_use]
    pub fn peer(&self) -> Rank {
        self.request.peer
    }

    /// Waits for the result, which comes once.
    ///
    /// # Errors
    ///
    /// [`CommunicatorError::Timeout`], which names the rank, and after which the request stands and may be waited for again;
    /// [`CommunicatorError::Taken`]; [`CommunicatorError::Exchange`] with what went wrong: the rank's death, what it sent.
    pub fn wait(&mut self, timeout: Duration) -> Result<T> {
        if self.finish.is_none() {
            return Err(self.request.taken());
        }
        let begun = Instant::now();
        let message = match self.arrived.take() {
            Some(message) => message,
            None => match self.receipt.wait(timeout) {
                Ok(None) => return Err(self.request.timed_out(timeout)),
                Ok(Some(message)) => Ok(message),
                Err(error) => Err(error),
            },
        };
        self.finish(message, timeout.saturating_sub(begun.elapsed()))
    }

    /// Whether [`Pending::wait`] would have something to give without waiting for the other rank's call: also an error.
    pub fn is_ready(&mut self) -> bool {
        if self.arrived.is_none() && self.finish.is_some() {
            self.arrived = self.receipt.wait(Duration::ZERO).transpose();
        }
        self.arrived.is_some()
    }

    fn finish(&mut self, message: Result<Vec<u8>>, left: Duration) -> Result<T> {
        let finish = self.finish.take().ok_or_else(|| self.request.taken())?;
        message.and_then(|message| finish(message, left)).map_err(|error| self.request.failed(error))
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.finish.is_none() {
            return Poll::Ready(Err(self.request.taken()));
        }
        let message = match self.arrived.take() {
            Some(message) => message,
            None => match Pin::new(&mut self.receipt).poll(context) {
                Poll::Ready(message) => message,
                Poll::Pending => return Poll::Pending,
            },
        };
        let left = self.request.timeout;
        Poll::Ready(self.finish(message, left))
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("request", &self.request).finish_non_exhaustive()
    }
}
