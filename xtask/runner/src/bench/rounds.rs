//! Launches that repeat what is measured by themselves.

use warpwire::device::LaunchConfig;

use super::kernels::Entry;
use super::setup::Bench;
use super::timing;

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
