//! Ranks of one process that reduce together on one device: the check and the timing that the demo and the benchmark share.

use std::time::Duration;

use anyhow::ensure;
use warpwire::abi::Rank;
use warpwire::collective::{AllReduce, Operands};
use warpwire::device::{Buffer, Device, Graph, Stream};

/// Elements behind each buffer's message that nobody may touch, and what they hold.
const GUARD: usize = 64;
const POISON: f32 = -12345.0;

/// The ranks and their buffers, for messages up to the largest size.
pub struct Group {
    all_reduce: AllReduce,
    ranks: Vec<Member>,
    timeout: Duration,
}

/// Dropped in this order: the stream waits for its work, then its memory goes.
struct Member {
    stream: Stream,
    input: Buffer<f32>,
    output: Buffer<f32>,
}

/// Queues a rank's part of a round: [`Group::enqueue`], or another kernel by [`Group::parts`].
pub type Enqueue<'a> = dyn Fn(&Group, Rank, Operands) -> warpwire::Result<()> + 'a;

impl Group {
    /// `ranks` ranks that share `device`, for messages of up to `largest` elements.
    pub fn new(device: &Device, ranks: usize, largest: usize, timeout: Duration) -> anyhow::Result<Self> {
        let all_reduce = AllReduce::new(&vec![device.clone(); ranks], largest)?;
        let member = || {
            Ok(Member {
                stream: device.stream()?,
                input: device.allocate(largest + GUARD)?,
                output: device.allocate(largest + GUARD)?,
            })
        };
        let ranks = (0..ranks).map(|_| member()).collect::<warpwire::Result<_>>()?;
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
        let inputs: Vec<Vec<f32>> = (0..self.ranks.len()).map(|rank| input(rank, count)).collect();
        for (rank, data) in self.ranks.iter().zip(&inputs) {
            for buffer in [&rank.input, &rank.output] {
                buffer.write(&vec![POISON; buffer.len()])?;
            }
            rank.input.write(data)?;
        }
        self.round(count, false, enqueue)?;
        let mut checked = Checked { largest_error: 0.0, right: true };
        let mut outputs = Vec::new();
        for (rank, data) in self.ranks.iter().zip(&inputs) {
            // Out of place: the input is as it was, and neither buffer is touched behind the message.
            checked.right &= same_bits(&rank.input.read()?[..count], data);
            checked.right &= is_poisoned(&rank.input, count)? && is_poisoned(&rank.output, count)?;
            outputs.push(rank.output.read()?);
        }
        checked.compare(&inputs, &outputs[0][..count]);
        // Every rank adds in the same order, so all have the same bits.
        checked.right &= outputs.iter().all(|output| same_bits(&output[..count], &outputs[0][..count]));

        self.round(count, true, enqueue)?;
        for rank in &self.ranks {
            checked.right &= same_bits(&rank.input.read()?[..count], &outputs[0][..count]);
            checked.right &= is_poisoned(&rank.input, count)?;
        }
        Ok(checked)
    }

    /// Queues one round on every rank and waits for it.
    fn round(&self, count: usize, in_place: bool, enqueue: &Enqueue<'_>) -> anyhow::Result<()> {
        for rank in 0..self.ranks.len() {
            enqueue(self, Rank(rank as u32), self.operands(rank, count, in_place))?;
        }
        // All of them, also where one failed: none may still run when its buffers go.
        let outcomes: Vec<_> = self.ranks.iter().map(|rank| rank.stream.synchronize()).collect();
        Ok(outcomes.into_iter().collect::<warpwire::Result<()>>()?)
    }

    /// The rank's own buffers, which live as long as the group.
    fn operands(&self, rank: usize, count: usize, in_place: bool) -> Operands {
        let member = &self.ranks[rank];
        let input = member.input.address();
        let output = if in_place { input } else { member.output.address() };
        Operands { input, output, count }
    }

    /// Records `rounds` rounds of every rank, so that the host is out of the way when they are played.
    pub fn record(&self, count: usize, rounds: u32, enqueue: &Enqueue<'_>) -> warpwire::Result<Vec<Graph>> {
        let record = |rank: usize| {
            let operands = self.operands(rank, count, false);
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

/// What a check found.
pub struct Checked {
    /// The largest difference from the reference.
    pub largest_error: f64,
    /// Whether every element of every rank is right, and nothing else was touched.
    pub right: bool,
}

impl Checked {
    /// Compares with the sum in f64. Each of the `n - 1` additions in f32 rounds by at most half a unit in the last place of
    /// a partial sum, which the sum of the magnitudes bounds.
    fn compare(&mut self, inputs: &[Vec<f32>], output: &[f32]) {
        for (i, &got) in output.iter().enumerate() {
            let terms = || inputs.iter().map(|input| f64::from(input[i]));
            let error = (f64::from(got) - terms().sum::<f64>()).abs();
            let bound = (inputs.len() - 1) as f64 * f64::from(f32::EPSILON) / 2.0
                * terms().map(f64::abs).sum::<f64>();
            // Not `error > bound`: a NaN is wrong too.
            self.right &= error <= bound;
            self.largest_error = self.largest_error.max(error);
        }
    }
}

/// A rank's input: numbers between -1 and 1 without a pattern, other ones for each rank and length.
fn input(rank: usize, count: usize) -> Vec<f32> {
    let seed = (rank as u64) << 40 | count as u64;
    (0..count as u64)
        .map(|i| {
            // splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
            let mut z = (seed ^ i << 20).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(i | 1);
            z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            (z >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

fn is_poisoned(buffer: &Buffer<f32>, from: usize) -> warpwire::Result<bool> {
    let mut guard = vec![0.0; GUARD];
    buffer.read_at(from, &mut guard)?;
    Ok(guard.iter().all(|&element| element.to_bits() == POISON.to_bits()))
}
