//! A message to come.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::Result;

/// A claim on one message, to be waited for or polled. Claims on one (peer, tag) are served in the order in which they were
/// made, whichever is asked first; one that is dropped unserved takes its message with it.
///
/// As a future it has no deadline of its own; the sender's death ends it.
pub struct PendingRecv(Option<Box<dyn Receipt>>);

/// What stands behind a [`PendingRecv`]; for those who write a bootstrap of their own. Dropped unserved, it has to take its
/// message with it.
pub trait Receipt: Send {
    /// Waits for the message; nothing where the time passes first.
    ///
    /// # Errors
    ///
    /// The message will never come.
    fn wait(&mut self, timeout: Duration) -> Result<Option<Vec<u8>>>;

    /// Looks for the message, and has the context's waker called when there is something to see.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<u8>>>;
}

impl PendingRecv {
    /// A claim that `receipt` serves.
    #[must_use]
    pub fn new(receipt: Box<dyn Receipt>) -> Self {
        Self(Some(receipt))
    }

    /// Waits for the message. Nothing where the time passes first, and the claim stands; nothing too where it has been
    /// served before.
    ///
    /// # Errors
    ///
    /// The message will never come: its sender is gone, or this rank was aborted.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Vec<u8>>> {
        let Some(receipt) = &mut self.0 else { return Ok(None) };
        let outcome = receipt.wait(timeout);
        if !matches!(outcome, Ok(None)) {
            self.0 = None;
        }
        outcome
    }
}

impl Future for PendingRecv {
    type Output = Result<Vec<u8>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(receipt) = &mut self.0 else { return Poll::Pending };
        let outcome = receipt.poll(context);
        if outcome.is_ready() {
            self.0 = None;
        }
        outcome
    }
}

impl fmt::Debug for PendingRecv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "PendingRecv(open)" } else { "PendingRecv(served)" })
    }
}
