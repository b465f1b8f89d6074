//! The thread that does for kernels what only the host can: it takes triggers from a FIFO and hands them to a handler.
//!
//! [`Proxy`] runs any [`Handler`]; [`ProxyService`] is a proxy whose handler serves port channels.
//!
//! # Failure
//!
//! A handler that fails or panics ends the thread. [`Proxy::health`] says why, and the waits of every stream that the proxy
//! [watches](Proxy::watch) are aborted: nobody waits for a proxy that is gone.
//!
//! # Layers
//!
//! `affinity` < `setup`; `oversight` (whose waits hang on the proxy, and its failure) < `worker` (the loop) < this < `service`.

mod affinity;
mod oversight;
mod service;
mod setup;
mod worker;

use std::fmt;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use warpwire_device::abi::{Position, Trigger};

use crate::device::{Device, Stream};
use crate::error::{Error, ProxyError, Result};
use crate::fifo::Fifo;
use oversight::Oversight;
use worker::{Core, Worker};

pub use service::{PortChannel, ProxyOptions, ProxyService};

/// How long a proxy that is dropped goes on.
const DROP_DRAIN: Duration = Duration::from_secs(1);

/// Does what triggers ask for. All calls come from the proxy's one thread.
pub trait Handler: Send + 'static {
    /// Does what the trigger at `position` asks for, or starts it. When this returns, the trigger counts as taken.
    ///
    /// # Errors
    ///
    /// Whatever it likes; the proxy ends with it, and the trigger is not taken.
    fn handle(&mut self, position: Position, trigger: Trigger) -> Result<()>;

    /// Moves on what was started, without waiting, and says how many pieces are still under way. Called between triggers, all
    /// the time.
    ///
    /// # Errors
    ///
    /// Whatever it likes; the proxy ends with it.
    fn progress(&mut self) -> Result<usize> {
        Ok(0)
    }
}

impl<F: FnMut(Position, Trigger) -> Result<()> + Send + 'static> Handler for F {
    fn handle(&mut self, position: Position, trigger: Trigger) -> Result<()> {
        self(position, trigger)
    }
}

/// A FIFO, its handler, and the thread between them, which runs from [`Proxy::start`] to [`Proxy::stop`].
///
/// A drop stops it like [`Proxy::stop`], within a second.
pub struct Proxy {
    device: Device,
    fifo: Arc<Fifo>,
    core: Arc<Mutex<Core>>,
    oversight: Arc<Oversight>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// A proxy that has not been started, for the triggers of `device`'s kernels.
    #[must_use]
    pub fn new(device: &Device, fifo: Arc<Fifo>, handler: impl Handler) -> Self {
        Self {
            device: device.clone(),
            fifo,
            core: Arc::new(Mutex::new(Core::new(Box::new(handler)))),
            oversight: Arc::default(),
            thread: Mutex::default(),
        }
    }

    /// Starts the thread, and returns when it is set up. After a stop it goes on where it has stopped; after a failure it passes
    /// over the trigger that it failed at, and the failure is forgotten.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Running`]; [`ProxyError::Consumed`] where another proxy has the FIFO; [`ProxyError::Setup`].
    pub fn start(&self) -> Result<()> {
        let ready = self.spawn()?;
        // The thread says so, or ends and drops its end: either way this ends.
        match ready.recv() {
            Ok(()) => Ok(()),
            Err(mpsc::RecvError) => self.health(),
        }
    }

    /// As [`Proxy::start`], without waiting: [`Proxy::health`] says later whether the thread could be set up.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Running`]; [`ProxyError::Consumed`].
    pub fn start_in_background(&self) -> Result<()> {
        self.spawn().map(drop)
    }

    fn spawn(&self) -> Result<mpsc::Receiver<()>> {
        let mut thread = self.lock_thread();
        // One that has failed has nothing left to do but to end.
        if let Some(ended) = thread.take_if(|thread| thread.is_finished() || self.health().is_err()) {
            join(ended);
        }
        if thread.is_some() {
            return Err(ProxyError::Running.into());
        }
        let consumer = self.fifo.consumer()?;
        self.oversight.begin();
        let (core, oversight) = (Arc::clone(&self.core), Arc::clone(&self.oversight));
        let (device, (sender, ready)) = (self.device.clone(), mpsc::channel());
        let spawned = thread::Builder::new().name("warpwire-proxy".to_owned()).spawn(move || {
            // Before any call that could make a context of its own.
            let prepared = setup::prepare(&device);
            let mut core = core.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = match prepared {
                Ok(()) => {
                    // Nobody may be listening.
                    let _ = sender.send(());
                    Worker::new(&device, consumer, &mut core, &oversight).run()
                }
                Err(error) => Err(ProxyError::Setup { source: Arc::new(error) }),
            };
            if let Err(error) = ended {
                match &error {
                    // Whoever has stopped it hears of it.
                    ProxyError::Unfinished { .. } => tracing::debug!(%error, "a proxy has ended"),
                    _ => tracing::error!(%error, "a proxy has ended"),
                }
                oversight.fail(error);
            }
        });
        let started = |source| Error::System { operation: "starting a proxy's thread".to_owned(), source };
        *thread = Some(spawned.map_err(started)?);
        Ok(ready)
    }

    /// Stops the thread, and returns when it has ended. Until then, and for at most `drain`, it goes on: it takes what is
    /// pushed, completes what is under way, and waits for watched streams that have work in flight.
    ///
    /// A proxy that does not run is stopped already.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Unfinished`] where something was left after `drain`: the waits of the watched streams that have work in
    /// flight are aborted. Otherwise as [`Proxy::health`].
    pub fn stop(&self, drain: Duration) -> Result<()> {
        let mut thread = self.lock_thread();
        if let Some(thread) = thread.take() {
            self.oversight.order_stop(drain);
            join(thread);
        }
        self.health()
    }

    /// Whether the thread runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.lock_thread().as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Why the thread has ended, where it did not end well. Any thread may ask, at any time; it costs a lock.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Handler`], [`ProxyError::HandlerPanicked`], [`ProxyError::Setup`], [`ProxyError::Unfinished`], until the
    /// next start.
    pub fn health(&self) -> Result<()> {
        Ok(self.oversight.health()?)
    }

    /// Ties a stream to this proxy: when the proxy fails, or stops while the stream has work in flight, its waits are aborted
    /// ([`Stream::abort`]). For every stream whose kernels push to it. A stream that is watched after a failure is aborted at
    /// once.
    pub fn watch(&self, stream: &Stream) {
        self.oversight.watch(stream.watch());
    }

    fn lock_thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a thread that catches what its handler panics with.
fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a proxy's thread panicked outside its handler");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Err(error) = self.stop(DROP_DRAIN) {
            tracing::debug!(%error, "a proxy was dropped that had not ended well");
        }
        // Also where it had been stopped before, or was never started.
        self.oversight.abort_busy();
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("fifo", &self.fifo).finish_non_exhaustive()
    }
}
