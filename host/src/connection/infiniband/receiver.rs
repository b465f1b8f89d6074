//! The thread that stores the peer's signals, for connections without atomics.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::inbox::{Arrival, Inbox};
use super::line::Line;
use super::scratch::MESSAGE_BYTES;
use super::words::Words;
use crate::env;
use crate::error::{Error, Result};
use crate::verbs::{Completion, Outcome};

/// How soon credits are tried again that there was no room for.
const RETRY: Duration = Duration::from_millis(1);

/// How long it sleeps at most. Of what the adapter says all threads are woken, but whichever is not asleep just then finds it
/// heard by another; it comes to look before long.
const LONGEST: Duration = Duration::from_secs(1);

/// The thread; ended and waited for on drop.
#[derive(Debug)]
pub(super) struct Receiver {
    stop: Arc<OwnedFd>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Receiver {
    /// Starts it. The receives have been posted.
    pub(super) fn start(line: &Arc<Line>) -> Result<Self> {
        let system = |operation: &str, source: std::io::Error| Error::system(operation, source);
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| system("making an event descriptor", error.into()))?;
        let stop = Arc::new(stop);
        let serving = Serving::new(Arc::clone(line), Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name(format!("warpwire-ib-{}", line.peer.0))
            .spawn(move || serving.run())
            .map_err(|error| system("starting the thread that stores signals", error))?;
        Ok(Self { stop, thread: Mutex::new(Some(thread)) })
    }

    /// Ends it, and waits until it has ended.
    pub(super) fn end(&self) {
        // An event counter takes a write unless it is full; then the thread has been woken already.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the thread that stores signals has panicked");
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.end();
    }
}

struct Serving {
    line: Arc<Line>,
    stop: Arc<OwnedFd>,
    inbox: Inbox,
    words: Words,
    /// Receives posted again so far, and how many the peer has been told of.
    posted: u64,
    told: u64,
}

impl Serving {
    fn new(line: Arc<Line>, stop: Arc<OwnedFd>) -> Self {
        let words = Words::new(line.adapter.domain());
        Self { line, stop, inbox: Inbox::default(), words, posted: 0, told: 0 }
    }

    /// Until it is told to end, or the connection has failed. No call below makes a GPU's context but that of the words'
    /// own device: each driver call enters it by itself.
    fn run(mut self) {
        env::numa::bind_to_adapter(self.line.adapter.name());
        if let Err(error) = self.serve() {
            // Where it has failed by itself, that is what counts; where it was closed, nothing has failed.
            self.line.fail(format!("its signals can no longer be stored: {error}"));
        }
    }

    fn serve(&mut self) -> Result<()> {
        while !self.line.is_closed() {
            self.drain()?;
            self.line.check_adapter()?;
            let owes = self.posted - self.told >= u64::from(self.line.receives() / 4).max(1);
            let waits_for_room = owes && !self.tell_credits()?;
            self.line.queue_pair.receive_completions().arm()?;
            // What came before the queue was armed wakes nobody.
            if self.drain()? == 0 && !self.line.is_closed() {
                self.sleep(if waits_for_room { RETRY } else { LONGEST })?;
            }
            self.line.queue_pair.receive_completions().acknowledge();
        }
        Ok(())
    }

    fn tell_credits(&mut self) -> Result<bool> {
        let done = self.line.return_credits(self.posted)?;
        if done {
            self.told = self.posted;
        }
        Ok(done)
    }

    /// Takes what has arrived, and says how much that was.
    fn drain(&mut self) -> Result<usize> {
        let mut completions: Vec<Completion> = Vec::new();
        self.line.queue_pair.receive_completions().poll(|completion| completions.push(completion))?;
        let mut arrivals = Vec::with_capacity(completions.len());
        for completion in &completions {
            match completion.outcome {
                Outcome::Immediate(low) => arrivals.push(Arrival::Low(low)),
                Outcome::Received(MESSAGE_BYTES) => {
                    arrivals.push(Arrival::of_message(self.line.scratch.message(completion.id)));
                }
                Outcome::Received(_) | Outcome::Sent => {
                    return Err(self.fault("a message that is none has come"));
                }
                Outcome::Failed(status) => {
                    let text = self.line.queue_pair.receive_completions().words(status);
                    let reason = format!("a receive ended with: {text}");
                    return Err(match status.is_flush() {
                        true => self.line.fail_swept(&reason),
                        false => self.fault(&reason),
                    });
                }
            }
        }
        // Stored first: a message is read before its place is given to the next.
        self.inbox.take(&arrivals, &mut self.words).map_err(|error| {
            error.unwrap_or_else(|| self.fault("a signal has come before its word was named"))
        })?;
        for completion in &completions {
            self.line.post_receive(completion.id)?;
            self.posted += 1;
        }
        Ok(completions.len())
    }

    fn fault(&self, reason: &str) -> Error {
        self.line.fail(reason.to_owned())
    }

    /// Until a completion comes, or the end, or the adapter says something, or the time has passed.
    fn sleep(&self, timeout: Duration) -> Result<()> {
        let Some(completions) = self.line.queue_pair.receive_completions().descriptor() else {
            return Ok(());
        };
        // SAFETY: the queue's own descriptor, open as long as the line.
        let completions = unsafe { BorrowedFd::borrow_raw(completions) };
        let mut waited = [
            PollFd::from_borrowed_fd(completions, PollFlags::IN),
            PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.line.adapter.events(), PollFlags::IN),
        ];
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(Error::system("waiting for a signal", std::io::Error::from(error))),
        }
    }
}
