//! What a rank's set-up takes from its device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::connection::{Connection, Link};
use crate::device::{Device, Stream, WeakAbortHandle};
use crate::error::Result;
use crate::memory::TokenPool;

/// A device, the slots of its semaphores, and what runs on it for a communicator. A cheap clone.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    tokens: TokenPool,
    running: Mutex<Running>,
}

/// What an abort ends. It keeps nothing.
#[derive(Debug, Default)]
struct Running {
    aborted: bool,
    streams: Vec<WeakAbortHandle>,
    links: Vec<Weak<dyn Link>>,
}

impl Context {
    pub(super) fn new(device: &Device) -> Self {
        let (device, tokens) = (device.clone(), TokenPool::new(device));
        Self { inner: Arc::new(Inner { device, tokens, running: Mutex::default() }) }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// The slots of its semaphores.
    #[must_use]
    pub fn tokens(&self) -> &TokenPool {
        &self.inner.tokens
    }

    /// A new stream of the device's, as [`Context::watch`] would have it.
    ///
    /// # Errors
    ///
    /// As for [`Device::stream`].
    pub fn stream(&self) -> Result<Stream> {
        let stream = self.inner.device.stream()?;
        self.watch(&stream);
        Ok(stream)
    }

    /// From now on an abort of the communicator, and its drop, end the waits of this stream's kernels.
    pub fn watch(&self, stream: &Stream) {
        let mut running = self.lock();
        running.streams.retain(|known| known.upgrade().is_some());
        running.streams.push(stream.abort_handle().downgrade());
        if running.aborted {
            stream.abort();
        }
    }

    /// From now on an abort closes the connection.
    pub(super) fn serve(&self, connection: &Connection) {
        let mut running = self.lock();
        running.links.retain(|known| known.strong_count() > 0);
        running.links.push(connection.downgrade());
        if running.aborted {
            // Nobody else has it yet.
            connection.close();
        }
    }

    /// From now on streams and connections that come are aborted and closed at once.
    pub(super) fn abort_what_comes(&self) {
        self.lock().aborted = true;
    }

    /// Ends the waits of the streams' kernels.
    pub(super) fn abort_streams(&self) {
        self.lock().streams.iter().filter_map(WeakAbortHandle::upgrade).for_each(|stream| stream.abort());
    }

    /// Closes the connections.
    pub(super) fn close_connections(&self) {
        let links: Vec<_> = self.lock().links.iter().filter_map(Weak::upgrade).collect();
        links.into_iter().for_each(|link| link.close());
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        // Each change is one push or a removal of what is dead: a panic elsewhere leaves the lists whole.
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
