//! Ranks of one process that reduce together on one device: the check and the timing that the demo and the benchmark share.

mod member;
mod participant;
mod reference;

use std::time::Duration;

use anyhow::ensure;
use warpwire::abi::Rank;
use warpwire::collective::{AllReduce, Operands};
use warpwire::device::{Device, Graph, Stream};

use member::Member;
use reference::same_bits;

pub use participant::{Contribute, Participant};
pub use reference::Checked;

/// The ranks and their buffers, for messages up to the largest size.
pub struct Group {
    all_reduce: AllReduce,
    ranks: Vec<Member>,
    timeout: Duration,
}

/// Queues a rank's part of a round: [`Group::enqueue`], or another kernel by [`Group::parts`].
pub type Enqueue<'a> = dyn Fn(&Group, Rank, Operands) -> warpwire::Result<()> + 'a;

impl Group {
    /// `ranks` ranks that share `device`, for messages of up to `largest` elements.
    pub fn new(device: &Device, ranks: usize, largest: usize, timeout: Duration) -> anyhow::Result<Self> {
        let all_reduce = AllReduce::new(&vec![device.clone(); ranks], largest)?;
        let ranks = (0..ranks).map(|_| Member::new(device, largest)).collect::<warpwire::Result<_>>()?;
        Ok(Self { all_reduce, ranks, timeout })
    }

    /// The collective, the rank's stream, and how long its waits may last.
    pub fn parts(&self, rank: Rank) -> (&AllReduce, &Stream, Duration) {
        (&self.all_reduce, &self.ranks[rank.0 as usize].stream, self.timeout)
    }

    /// Queues `rank`'s part of a round by warpwire's own kernel.
    ///
    /// # Safety
    ///
    /// As for [`AllReduce::enqueue`].
    pub unsafe fn enqueue(&self, rank: Rank, operands: Operands) -> warpwire::Result<()> {
        let (all_reduce, stream, timeout) = self.parts(rank);
        // SAFETY: the caller's contract.
        unsafe { all_reduce.enqueue(rank, stream, operands, timeout) }
    }

    /// One round out of place and one in place, every element of every rank compared.
    pub fn check(&self, count: usize, enqueue: &Enqueue<'_>) -> anyhow::Result<Checked> {
        for (rank, member) in self.ranks.iter().enumerate() {
            member.arrange(rank, count)?;
        }
        self.round(count, false, enqueue)?;
        let mut checked = Checked::new();
        let mut outputs = Vec::new();
        for (rank, member) in self.ranks.iter().enumerate() {
            let (output, untouched) = member.output(rank, count)?;
            checked.right &= untouched;
            outputs.push(output);
        }
        checked.compare(self.ranks.len(), &outputs[0]);
        // Every rank adds in the same order, so all have the same bits.
        checked.right &= outputs.iter().all(|output| same_bits(output, &outputs[0]));

        self.round(count, true, enqueue)?;
        for member in &self.ranks {
            checked.right &= member.gave_in_place(&outputs[0])?;
        }
        Ok(checked)
    }

    /// Queues one round on every rank and waits for it.
    fn round(&self, count: usize, in_place: bool, enqueue: &Enqueue<'_>) -> anyhow::Result<()> {
        for rank in 0..self.ranks.len() {
            enqueue(self, Rank(rank as u32), self.ranks[rank].operands(count, in_place))?;
        }
        // All of them, also where one failed: none may still run when its buffers go.
        let outcomes: Vec<_> = self.ranks.iter().map(|rank| rank.stream.synchronize()).collect();
        Ok(outcomes.into_iter().collect::<warpwire::Result<()>>()?)
    }

    /// Records `rounds` rounds of every rank, so that the host is out of the way when they are played.
    pub fn record(&self, count: usize, rounds: u32, enqueue: &Enqueue<'_>) -> warpwire::Result<Vec<Graph>> {
        let record = |rank: usize| {
            let operands = self.ranks[rank].operands(count, false);
            self.ranks[rank]
                .stream
                .capture(|_| (0..rounds).try_for_each(|_| enqueue(self, Rank(rank as u32), operands)))
        };
        (0..self.ranks.len()).map(record).collect()
    }

    /// Plays what [`Group::record`] recorded: the time of all its rounds on the slowest rank.
    pub fn play(&self, graphs: &[Graph]) -> anyhow::Result<Duration> {
        let mut marks = Vec::new();
        for (rank, graph) in self.ranks.iter().zip(graphs) {
            let begin = rank.stream.record()?;
            // SAFETY: the graphs were recorded over the group's own buffers, which live as long as it does.
            unsafe { graph.launch(&rank.stream)? };
            marks.push((begin, rank.stream.record()?));
        }
        for rank in &self.ranks {
            rank.stream.synchronize()?;
        }
        // The last rank begins when all the others wait for it: from there on they run together.
        let last = marks.len() - 1;
        let time = marks[last].1.elapsed_since(&marks[last].0)?;
        ensure!(!time.is_zero(), "the device's clock did not advance");
        Ok(time)
    }
}
