//! Recorded work.

use std::sync::Arc;

use super::driver::DriverGraph;
use super::stream::Kept;
use super::{Device, Stream};
use crate::error::Result;

/// Work that [`Stream::capture`] recorded, to be queued again as often as one likes. A cheap clone.
#[derive(Clone, Debug)]
pub struct Graph {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    device: Device,
    driver: Arc<dyn DriverGraph>,
    /// What the recorded launches run: it lives as long as they may be repeated.
    _kept: Vec<Kept>,
}

impl Graph {
    pub(super) fn new(device: Device, driver: Arc<dyn DriverGraph>, kept: Vec<Kept>) -> Self {
        Self { inner: Arc::new(Inner { device, driver, _kept: kept }) }
    }

    /// Queues all of it on `stream`, any stream of the device that it was recorded on.
    ///
    /// The launches have the arguments that they were recorded with, waiting policies among them: a wait reports on the
    /// board, and listens to the abort, of the stream that its policy was made from. Launch a graph on the stream that
    /// recorded it, and that stream's `synchronize` tells of its waits.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignObject`](crate::Error::ForeignObject) for a stream of another device, or the driver's.
    ///
    /// # Safety
    ///
    /// The contract of each recorded launch and copy (see [`Stream::launch`], [`Stream::copy`]) holds again.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        stream.device().expect_own(&self.inner.device, "graph")?;
        stream.keep(Kept::Graph(Arc::clone(&self.inner)));
        // SAFETY: the caller's contract.
        unsafe { self.inner.driver.launch(stream.driver()) }
    }
}
