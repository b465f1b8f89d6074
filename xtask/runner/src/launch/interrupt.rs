//! Signals that end the launcher, while a job runs: first the job, then the launcher.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// What the handlers touch; they stay for as long as the program runs.
#[derive(Clone)]
struct Handlers {
    /// No job runs: the signal takes its usual effect at once.
    idle: Arc<AtomicBool>,
    /// The signal that has come, or 0.
    signal: Arc<AtomicUsize>,
}

struct State {
    handlers: Option<Handlers>,
    jobs: usize,
}

static STATE: Mutex<State> = Mutex::new(State { handlers: None, jobs: 0 });

/// Held while a job runs. A signal is then only noted; when the last job has gone, it takes its usual effect.
pub struct Watch {
    signal: Arc<AtomicUsize>,
}

impl Watch {
    /// Notes signals from here on.
    pub fn begin() -> io::Result<Self> {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        let handlers = match &state.handlers {
            Some(handlers) => handlers.clone(),
            None => state.handlers.insert(Handlers::install()?).clone(),
        };
        state.jobs += 1;
        handlers.idle.store(false, Ordering::SeqCst);
        Ok(Self { signal: handlers.signal })
    }

    /// The signal that has come, where one has.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs -= 1;
        if state.jobs > 0 {
            return;
        }
        if let Some(handlers) = &state.handlers {
            handlers.idle.store(true, Ordering::SeqCst);
        }
        drop(state);
        if let Some(signal) = self.signal() {
            // Ends the program. Where it cannot, the error that names the signal is on its way up.
            let _ = low_level::emulate_default_handler(signal);
        }
    }
}

impl Handlers {
    fn install() -> io::Result<Self> {
        let handlers = Self { idle: Arc::new(AtomicBool::new(true)), signal: Arc::new(AtomicUsize::new(0)) };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: they run in the order in which they are registered.
            flag::register_conditional_default(signal, Arc::clone(&handlers.idle))?;
            flag::register_usize(signal, Arc::clone(&handlers.signal), signal as usize)?;
        }
        Ok(handlers)
    }
}
