//! Time, by the device's own clock, with the host out of the way.

use std::time::Duration;

use anyhow::ensure;
use warpwire::device::{Graph, Stream};

use super::setup::Bench;

/// How long one repetition of a short launch is made to last, in seconds.
const LENGTH: f64 = 3e-3;
/// The most launches of a repetition.
const MOST: f64 = 1000.0;
/// A launch that takes longer than this, in seconds, hides what the host does for the next one.
const HIDES_THE_HOST: f64 = 100e-6;

/// Queues one unit of work on a stream.
pub type Queue<'b> = Box<dyn Fn(&Stream) -> warpwire::Result<()> + 'b>;

/// The time of what `queue` queues, in seconds.
///
/// On a GPU it is queued twice, and the second one timed: the host is then well ahead of the device, and the clock runs at its
/// full rate.
pub fn time(bench: &Bench, queue: impl Fn(&Stream) -> warpwire::Result<()>) -> anyhow::Result<f64> {
    let stream = &bench.stream;
    if bench.is_gpu() {
        queue(stream)?;
    }
    let begin = stream.record()?;
    queue(stream)?;
    let end = stream.record()?;
    stream.synchronize()?;
    seconds(end.elapsed_since(&begin)?)
}

/// A time as a number; 0 would be no measurement.
pub fn seconds(time: Duration) -> anyhow::Result<f64> {
    ensure!(!time.is_zero(), "the device's clock did not advance");
    Ok(time.as_secs_f64())
}

/// The same launch many times over, as one repetition.
pub struct Batch<'b> {
    bench: &'b Bench,
    count: u32,
    work: Work<'b>,
}

enum Work<'b> {
    /// Launched one by one.
    Launches(Queue<'b>),
    /// Short ones: recorded once and played, so that the device never waits for the host. The queue keeps what it uses.
    Graph { graph: Graph, _queue: Queue<'b> },
}

impl<'b> Batch<'b> {
    /// As many of `queue`'s launches as make a repetition long enough for the clock.
    ///
    /// # Safety
    ///
    /// What `queue` queues may run again and again as long as the batch lives.
    pub unsafe fn new(bench: &'b Bench, queue: Queue<'b>) -> anyhow::Result<Self> {
        const TRIAL: u32 = 4;
        let once = time(bench, |stream| (0..TRIAL).try_for_each(|_| queue(stream)))? / f64::from(TRIAL);
        let count = (LENGTH / once).clamp(1.0, MOST) as u32;
        let work = if once > HIDES_THE_HOST {
            Work::Launches(queue)
        } else {
            let graph = bench.stream.capture(|stream| (0..count).try_for_each(|_| queue(stream)))?;
            Work::Graph { graph, _queue: queue }
        };
        Ok(Self { bench, count, work })
    }

    /// Runs one repetition; the seconds that one launch takes in it.
    pub fn time(&self) -> anyhow::Result<f64> {
        let whole = time(self.bench, |stream| match &self.work {
            Work::Launches(queue) => (0..self.count).try_for_each(|_| queue(stream)),
            // SAFETY: the promise of `Batch::new`.
            Work::Graph { graph, .. } => unsafe { graph.launch(stream) },
        })?;
        Ok(whole / f64::from(self.count))
    }
}
