//! The place that one claimed message comes to.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use warpwire_device::abi::Rank;

use super::{Failure, Loss};
use crate::monitor::Monitor;

/// What comes of a claim.
pub(in super::super) type Outcome = Result<Vec<u8>, Failure>;

/// How long one who waits for a living rank goes on doing so after another rank of the call was lost. What a rank sent
/// before it was lost may still be on its way through others, and a rank that was lost after its part was done has harmed
/// nobody.
const GRACE: Duration = Duration::from_secs(1);

/// A claim's place.
#[derive(Debug)]
pub(in super::super) struct Slot {
    /// Whose message it is for.
    from: Rank,
    /// Ranks whose loss ends the wait, though the message is another's.
    watched: Arc<[Rank]>,
    state: Monitor<State>,
}

#[derive(Debug, Default)]
struct State {
    outcome: Option<Outcome>,
    /// Nobody will ask any more.
    abandoned: bool,
    /// A watched rank was lost: from then on the claim fails.
    doom: Option<(Loss, Instant)>,
    waker: Option<Waker>,
}

impl Slot {
    pub(super) fn new(from: Rank, watched: Arc<[Rank]>) -> Self {
        Self { from, watched, state: Monitor::default() }
    }

    /// Serves the claim. Gives back whom to wake, once no lock is held any more.
    #[must_use]
    pub(super) fn complete(&self, outcome: Outcome) -> Option<Waker> {
        self.state.change(|state| {
            if !state.abandoned {
                state.outcome = Some(outcome);
            }
            state.waker.take()
        })
    }

    /// Tells of the loss of a rank that is not this claim's sender.
    pub(super) fn lose(&self, loss: &Loss) {
        if self.watched.contains(&loss.rank) {
            let end = Instant::now() + GRACE;
            self.state.change(|state| _ = state.doom.get_or_insert_with(|| (loss.clone(), end)));
        }
    }

    /// What came of the claim, once; nothing where `end` passes first.
    pub(in super::super) fn wait(&self, end: Instant) -> Option<Outcome> {
        self.state.wait_until(|state| {
            if let Some(outcome) = state.outcome.take() {
                return ControlFlow::Break(Some(outcome));
            }
            let now = Instant::now();
            match &state.doom {
                Some((loss, doom)) if *doom <= now => {
                    ControlFlow::Break(Some(Err(Failure::Lost(loss.clone()))))
                }
                _ if end <= now => ControlFlow::Break(None),
                Some((_, doom)) => ControlFlow::Continue(end.min(*doom)),
                None => ControlFlow::Continue(end),
            }
        })
    }

    pub(in super::super) fn poll(&self, context: &Context<'_>) -> Poll<Outcome> {
        self.state.with(|state| match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        })
    }

    /// Whoever made the claim is gone: its message is for nobody.
    pub(in super::super) fn abandon(&self) {
        self.state.with(|state| {
            state.abandoned = true;
            state.outcome = None;
        });
    }

    pub(in super::super) fn from(&self) -> Rank {
        self.from
    }
}
