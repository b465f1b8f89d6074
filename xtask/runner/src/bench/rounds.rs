//! Launches that repeat what is measured by themselves.

use warpwire::device::LaunchConfig;

use super::kernels::Entry;
use super::setup::Bench;
use super::timing;

/// Places for the words that a hop or a barrier is about. How long one takes depends on which part of the GPU's cache its words
/// fall into, by as much as a third: all contenders take turns in the same places, and the mean over them counts.
pub const PLACES: usize = 8;

/// The mean time of one hop over the runs of a contender, one in each place.
///
/// # Safety
///
/// As for [`Rounds::once`], for each run.
pub unsafe fn mean_nanoseconds<A: Copy>(runs: &[Rounds<'_, A>]) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for run in runs {
        // SAFETY: the caller's contract.
        sum += unsafe { run.nanoseconds() }?;
    }
    Ok(sum / runs.len() as f64)
}

/// A launch that passes through many hops (or barriers) itself.
pub struct Rounds<'b, A> {
    /// The surroundings.
    pub bench: &'b Bench,
    /// The contender's kernel.
    pub entry: Entry<A>,
    /// Its shape.
    pub config: LaunchConfig,
    /// Its arguments.
    pub args: A,
    /// How many hops it makes.
    pub hops: u32,
}

impl<A: Copy> Rounds<'_, A> {
    /// Launches once and waits.
    ///
    /// # Safety
    ///
    /// As for [`Stream::launch`](warpwire::device::Stream::launch).
    pub unsafe fn once(&self) -> anyhow::Result<()> {
        // SAFETY: the caller's contract.
        unsafe { self.entry.launch(&self.bench.stream, self.config, self.args) }?;
        Ok(self.bench.stream.synchronize()?)
    }

    /// The nanoseconds of one hop.
    ///
    /// # Safety
    ///
    /// As for [`Rounds::once`].
    pub unsafe fn nanoseconds(&self) -> anyhow::Result<f64> {
        // SAFETY: the caller's contract.
        let time =
            timing::time(self.bench, |stream| unsafe { self.entry.launch(stream, self.config, self.args) })?;
        Ok(time * 1e9 / f64::from(self.hops))
    }
}
