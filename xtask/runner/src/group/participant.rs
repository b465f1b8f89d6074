//! One rank of a job of processes that reduce together: the check and the timing that the demo and the benchmark share.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use warpwire::abi::Rank;
use warpwire::bootstrap::from_env;
use warpwire::collective::{AllReduce, Operands};
use warpwire::communicator::Communicator;
use warpwire::device::{Device, DeviceKind, Graph, Stream};

use super::member::Member;
use super::reference::Checked;

/// This process' rank, for messages up to a size.
pub struct Participant {
    all_reduce: AllReduce,
    member: Member,
    communicator: Communicator,
    timeout: Duration,
}

/// Queues this rank's part of a round: [`Participant::contribute`], or another kernel by [`Participant::parts`].
pub type Contribute<'a> = dyn Fn(&Participant, Operands) -> anyhow::Result<()> + 'a;

impl Participant {
    /// Joins the job that this process was started for, for messages of up to `largest` elements.
    pub fn join(device: &Device, largest: usize, timeout: Duration) -> anyhow::Result<Self> {
        let group = from_env().context("the ranks do not meet")?;
        let communicator = Communicator::new(Arc::new(group), device)?;
        Self::new(communicator, largest, timeout)
    }

    /// The communicator's rank. Collective.
    pub fn new(communicator: Communicator, largest: usize, timeout: Duration) -> anyhow::Result<Self> {
        // First: it refuses a size that is too large.
        let all_reduce = AllReduce::across(&communicator, largest)?;
        let member = Member::new(communicator.device(), largest)?;
        communicator.context().watch(&member.stream);
        Ok(Self { all_reduce, member, communicator, timeout })
    }

    /// The collective, this rank, its stream, and how long its waits may last.
    pub fn parts(&self) -> (&AllReduce, Rank, &Stream, Duration) {
        (&self.all_reduce, self.communicator.rank(), &self.member.stream, self.timeout)
    }

    /// Queues this rank's part of a round by warpwire's own kernel.
    ///
    /// # Safety
    ///
    /// As for [`AllReduce::enqueue`].
    pub unsafe fn contribute(&self, operands: Operands) -> warpwire::Result<()> {
        let (all_reduce, rank, stream, timeout) = self.parts();
        // SAFETY: the caller's contract.
        unsafe { all_reduce.enqueue(rank, stream, operands, timeout) }
    }

    /// One round out of place and one in place: whether every element of this rank's results is right, and a digest of their
    /// bits, which all ranks have alike. Collective.
    pub fn check(&self, count: usize, contribute: &Contribute<'_>) -> anyhow::Result<(Checked, u64)> {
        let (mut checked, output) = self.check_sum(count, contribute)?;
        self.round(count, true, contribute)?;
        checked.right &= self.member.gave_in_place(&output)?;
        let mut digest = DefaultHasher::new();
        output.iter().for_each(|element| element.to_bits().hash(&mut digest));
        Ok((checked, digest.finish()))
    }

    /// One round out of place: its result, and whether that is right, in whatever order it was added up. Collective.
    pub fn check_sum(
        &self,
        count: usize,
        contribute: &Contribute<'_>,
    ) -> anyhow::Result<(Checked, Vec<f32>)> {
        let (rank, ranks) = (self.communicator.rank().0 as usize, self.communicator.size());
        self.member.arrange(rank, count)?;
        self.round(count, false, contribute)?;
        let (output, untouched) = self.member.output(rank, count)?;
        let mut checked = Checked::new();
        checked.right &= untouched;
        checked.compare(ranks, &output);
        Ok((checked, output))
    }

    fn round(&self, count: usize, in_place: bool, contribute: &Contribute<'_>) -> anyhow::Result<()> {
        contribute(self, self.member.operands(count, in_place))?;
        Ok(self.member.stream.synchronize()?)
    }

    /// Records `rounds` rounds, so that the host is out of the way when they are played.
    pub fn record(&self, count: usize, rounds: u32, contribute: &Contribute<'_>) -> anyhow::Result<Graph> {
        let operands = self.member.operands(count, false);
        let mut queued = Ok(());
        let graph = self.member.stream.capture(|_| {
            queued = (0..rounds).try_for_each(|_| contribute(self, operands));
            Ok(())
        });
        // What went wrong first.
        queued?;
        Ok(graph?)
    }

    /// Plays what [`Participant::record`] recorded: the time of all its rounds on this rank. Collective.
    ///
    /// On a GPU the graph is played twice and the second time counts: no rank can be more than a round ahead by then, and
    /// the host is out of the way.
    pub fn play(&self, graph: &Graph) -> anyhow::Result<Duration> {
        self.communicator.barrier()?;
        let stream = &self.member.stream;
        if self.communicator.device().properties().kind == DeviceKind::Cuda {
            // SAFETY: it was recorded over this rank's own buffers and the collective's, which live as long as `self`.
            unsafe { graph.launch(stream) }?;
        }
        let begin = stream.record()?;
        // SAFETY: as above.
        unsafe { graph.launch(stream) }?;
        let end = stream.record()?;
        stream.synchronize()?;
        let time = end.elapsed_since(&begin)?;
        ensure!(!time.is_zero(), "the device's clock did not advance");
        Ok(time)
    }
}
