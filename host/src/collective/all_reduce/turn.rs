//! Whose turn it is: the rounds of one rank use the same scratch and the same count, so they run one after the other.

use std::sync::{Mutex, PoisonError};

use warpwire_device::abi::Rank;

use crate::device::{Stream, StreamWatch};
use crate::error::{Error, Result};

/// The stream that a rank's last round was queued on. One stream keeps the order by itself; another may only come when that one
/// has nothing in flight.
#[derive(Debug, Default)]
pub(super) struct Turn {
    last: Mutex<Option<StreamWatch>>,
}

impl Turn {
    /// Queues a round of `rank` on `stream`. Two threads that ask at once do so one after the other.
    ///
    /// # Errors
    ///
    /// [`Error::RankBusy`], and `queue` is not called; `queue`'s.
    pub(super) fn take(&self, rank: Rank, stream: &Stream, queue: impl FnOnce() -> Result<()>) -> Result<()> {
        // The one change is an assignment: a panic elsewhere leaves it whole.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stream.watch();
        if last.as_ref().is_some_and(|last| !last.is_same(&now) && last.is_busy()) {
            return Err(Error::RankBusy { rank });
        }
        queue()?;
        *last = Some(now);
        Ok(())
    }
}
