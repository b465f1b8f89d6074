//! All-reduce among ranks that share one device.

use std::time::Duration;

use warpwire::abi::{Global, Rank, WaitError, WaitKind};
use warpwire::collective::{AllReduce, Operands};
use warpwire::device::{Buffer, Device, Stream};
use warpwire::{Error, ErrorKind};
use warpwire_kernels::all_pair::{AllPairArgs, MAX_BLOCKS, Round};

use super::rig::{LONG, filled, zeroed};

/// What stands behind both buffers.
const GUARD: f32 = -12345.0;

/// Ranks with an input and an output each, room for `room` elements, and guards behind.
struct Ranks {
    group: AllReduce,
    streams: Vec<Stream>,
    inputs: Vec<Buffer<f32>>,
    outputs: Vec<Buffer<f32>>,
    room: usize,
}

impl Ranks {
    fn new(device: &Device, ranks: usize, room: usize) -> Self {
        let buffers = || (0..ranks).map(|_| filled(device, &vec![GUARD; room + 4])).collect();
        Self {
            group: AllReduce::new(&vec![device.clone(); ranks], room).unwrap(),
            streams: (0..ranks).map(|_| device.stream().unwrap()).collect(),
            inputs: buffers(),
            outputs: buffers(),
            room,
        }
    }

    fn len(&self) -> usize {
        self.streams.len()
    }

    /// Element `i` of rank `rank`: integers that a sum over any number of ranks holds exactly.
    fn element(rank: usize, i: usize, round: usize) -> f32 {
        ((i * 7 + rank * 31 + round * 13) % 1021) as f32 - 300.0
    }

    fn sum(&self, i: usize, round: usize) -> f32 {
        (0..self.len()).map(|rank| Self::element(rank, i, round)).sum()
    }

    fn write_inputs(&self, count: usize, round: usize) {
        for (rank, input) in self.inputs.iter().enumerate() {
            let values: Vec<f32> = (0..count).map(|i| Self::element(rank, i, round)).collect();
            input.write(&values).unwrap();
            input.write_at(count, &vec![GUARD; self.room + 4 - count]).unwrap();
        }
    }

    fn operands(&self, rank: usize, count: usize, in_place: bool) -> Operands {
        let (input, output) = (self.inputs[rank].address(), self.outputs[rank].address());
        Operands { input, output: if in_place { input } else { output }, count }
    }

    fn enqueue(&self, rank: usize, operands: Operands, timeout: Duration) {
        // SAFETY: the buffers and the group live as long as `self`, and each check synchronizes before it ends.
        unsafe { self.group.enqueue(Rank(rank as u32), &self.streams[rank], operands, timeout) }.unwrap();
    }

    fn synchronize(&self) {
        for (rank, stream) in self.streams.iter().enumerate() {
            stream.synchronize().unwrap_or_else(|error| panic!("rank {rank} of {}: {error}", self.len()));
        }
    }

    /// Every element of `buffers` is the sum, and the guards behind stand.
    fn check(&self, buffers: &[Buffer<f32>], count: usize, round: usize) {
        let expected: Vec<f32> = (0..count).map(|i| self.sum(i, round)).collect();
        for (rank, buffer) in buffers.iter().enumerate() {
            let seen = buffer.read().unwrap();
            let wrong = (0..count).find(|&i| seen[i] != expected[i]);
            let what = format!("rank {rank} of {}, {count} elements, round {round}", self.len());
            assert_eq!(wrong.map(|i| (i, seen[i], expected[i])), None, "{what}: (element, seen, expected)");
            assert!(
                seen[count..count + 4].iter().all(|&value| value == GUARD),
                "{what}: written behind the end"
            );
        }
    }

    /// One round out of place.
    fn round(&self, count: usize, round: usize) {
        self.write_inputs(count, round);
        for output in &self.outputs {
            output.write(&vec![GUARD; self.room + 4]).unwrap();
        }
        (0..self.len()).for_each(|rank| self.enqueue(rank, self.operands(rank, count, false), LONG));
        self.synchronize();
        self.check(&self.outputs, count, round);
    }
}

/// Those numbers of ranks that the device runs at once.
fn possible(device: &Device, ranks: &[usize]) -> Vec<usize> {
    let limit = device.properties().max_concurrent_streams.unwrap_or(u32::MAX) as usize;
    let (possible, rest): (Vec<_>, Vec<_>) = ranks.iter().partition(|&&ranks| ranks <= limit);
    for ranks in rest {
        crate::skip::skipped(
            "an all-reduce",
            &format!("{ranks} ranks, and the device runs {limit} streams at once"),
        );
    }
    possible
}

/// C25: 1 to 9 elements among 8 ranks.
pub fn fewer_elements_than_ranks(device: &Device) {
    for ranks in possible(device, &[8]) {
        let ranks = Ranks::new(device, ranks, 16);
        (1..=9).for_each(|count| ranks.round(count, count));
    }
}

/// C26: counts that neither packets, threads nor ranks divide, one after the other in one group.
pub fn counts_that_do_not_divide(device: &Device) {
    for ranks in possible(device, &[2, 3, 8]) {
        let ranks = Ranks::new(device, ranks, 65_537);
        for (round, count) in [1, 2, 3, 5, 6, 7, 63, 127, 16_385, 65_537, 4].into_iter().enumerate() {
            ranks.round(count, round);
        }
    }
    // More than it was made for, by far and by one, is refused as a whole: no part of it is reduced.
    for ranks in possible(device, &[2]) {
        let ranks = Ranks::new(device, ranks, 16_384);
        ranks.round(16_384, 0);
        for count in [16_385, 10_556_587] {
            let operands = Operands { count, ..ranks.operands(0, 1, false) };
            // SAFETY: refused, as is checked.
            let refused = unsafe { ranks.group.enqueue(Rank(0), &ranks.streams[0], operands, LONG) };
            let limit_is_named =
                matches!(refused, Err(Error::TooManyElements { count: c, limit: 16_384 }) if c == count);
            assert!(limit_is_named, "{refused:?}");
        }
        ranks.check(&ranks.outputs, 16_384, 0);
    }
}

/// C22: more ranks than a warp has lanes.
pub fn more_ranks_than_a_warp(device: &Device) {
    for ranks in possible(device, &[31, 32, 33]) {
        let ranks = Ranks::new(device, ranks, 600);
        [1, 40, 600].into_iter().for_each(|count| ranks.round(count, count));
    }
}

/// C27: out of place the input stays; in place the result is the same, bit for bit.
pub fn input_stays_and_in_place_is_the_same(device: &Device) {
    let (ranks, count) = (Ranks::new(device, 3, 5001), 5001);
    // Numbers whose sum depends on the order of the additions.
    let rough = |rank: usize| (0..count).map(move |i| (i as f32 + 0.1) * 10_f32.powi(rank as i32 * 3 - 3));
    let inputs: Vec<Vec<f32>> = (0..ranks.len()).map(|rank| rough(rank).collect()).collect();
    let bits =
        |buffer: &Buffer<f32>| -> Vec<u32> { buffer.read().unwrap().into_iter().map(f32::to_bits).collect() };
    ranks.inputs.iter().zip(&inputs).for_each(|(buffer, values)| buffer.write(values).unwrap());
    let before: Vec<_> = ranks.inputs.iter().map(bits).collect();
    (0..ranks.len()).for_each(|rank| ranks.enqueue(rank, ranks.operands(rank, count, false), LONG));
    ranks.synchronize();
    assert_eq!(ranks.inputs.iter().map(bits).collect::<Vec<_>>(), before, "the input was written to");
    (0..ranks.len()).for_each(|rank| ranks.enqueue(rank, ranks.operands(rank, count, true), LONG));
    ranks.synchronize();
    let expected = bits(&ranks.outputs[0]);
    for rank in 0..ranks.len() {
        assert!(bits(&ranks.outputs[rank]) == expected, "rank {rank} has other bits than rank 0");
        assert!(bits(&ranks.inputs[rank]) == expected, "rank {rank} has other bits in place");
    }

    // Buffers that overlap without being one are refused.
    let overlapping = Operands { output: ranks.inputs[0].address().add(1), ..ranks.operands(0, 100, true) };
    // SAFETY: refused, as is checked.
    let refused = unsafe { ranks.group.enqueue(Rank(0), &ranks.streams[0], overlapping, LONG) };
    assert!(matches!(refused, Err(Error::Overlap { .. })), "{refused:?}");
}

/// C02: a captured round, replayed 5 times with new inputs and an eager round between, is right each time, and the flag in
/// device memory rises by one a round. Once with one captured round a graph, once with three.
pub fn a_captured_round_replays(device: &Device) {
    for captured in [1, 3] {
        let (ranks, count) = (Ranks::new(device, 2, 777), 777);
        let words: Vec<Buffer<Word>> = (0..2).map(|_| zeroed(device, MAX_BLOCKS as usize)).collect();
        let queue = |rank: usize, rounds: u32| {
            let operands = ranks.operands(rank, count, false);
            (0..rounds)
                .try_for_each(|_| launch_counted(&ranks, rank, &ranks.streams[rank], operands, &words[rank]))
        };
        let record = |rank: usize| ranks.streams[rank].capture(|_| queue(rank, captured)).unwrap();
        let graphs = [record(0), record(1)];
        let mut flag = 0;
        for replay in 1..=5 {
            ranks.write_inputs(count, replay);
            for (graph, stream) in graphs.iter().zip(&ranks.streams) {
                // SAFETY: what the captured launches touch lives until the end of this turn.
                unsafe { graph.launch(stream) }.unwrap();
            }
            ranks.synchronize();
            ranks.check(&ranks.outputs, count, replay);
            flag += captured;
            words
                .iter()
                .for_each(|words| assert_eq!(words.read().unwrap()[0][0], flag, "the flag after {replay}"));

            ranks.write_inputs(count, 10 * replay);
            (0..2).for_each(|rank| queue(rank, 1).unwrap());
            ranks.synchronize();
            ranks.check(&ranks.outputs, count, 10 * replay);
            flag += 1;
        }
    }
}

/// A [`Round`] as plain numbers: the flag, the half.
type Word = [u32; 2];

/// A round of `rank` that counts in `rounds` instead of the group's own words.
fn launch_counted(
    ranks: &Ranks,
    rank: usize,
    stream: &Stream,
    operands: Operands,
    rounds: &Buffer<Word>,
) -> warpwire::Result<()> {
    const { assert!(size_of::<Round>() == size_of::<Word>()) };
    let (kernel, config, args) = ranks.group.launch_of(Rank(rank as u32), stream, operands, LONG)?;
    let rounds: Global<Round> = rounds.address().cast();
    // SAFETY: one word a block, which like the operands outlive the launch; every rank of the round counts so.
    unsafe { stream.launch(kernel, config, AllPairArgs { rounds, ..args }) }
}

/// C03: rounds of different lengths from flag 0xFFFFFFFE on, past the wrap, which skips 0.
pub fn flags_wrap(device: &Device) {
    let ranks = Ranks::new(device, 2, 1024);
    let before = vec![[0xFFFF_FFFD, 0]; MAX_BLOCKS as usize];
    let rounds: Vec<Buffer<Word>> = (0..2).map(|_| filled(device, &before)).collect();
    let mut flags = Vec::new();
    for (round, count) in [2, 1024, 2, 1024].into_iter().enumerate() {
        ranks.write_inputs(count, round);
        for (rank, words) in rounds.iter().enumerate() {
            ranks.outputs[rank].write(&vec![GUARD; ranks.room + 4]).unwrap();
            let operands = ranks.operands(rank, count, false);
            launch_counted(&ranks, rank, &ranks.streams[rank], operands, words).unwrap();
        }
        ranks.synchronize();
        ranks.check(&ranks.outputs, count, round);
        flags.push(rounds[0].read().unwrap()[0][0]);
    }
    assert_eq!(flags, [0xFFFF_FFFE, 0xFFFF_FFFF, 1, 2]);
}

/// A rank that does not take part: the others say whom they waited for, and after a reset the next round is right.
pub fn a_missing_rank_is_reported(device: &Device) {
    let mut ranks = Ranks::new(device, 3, 100);
    ranks.round(100, 0);
    ranks.write_inputs(100, 1);
    for rank in [0, 2] {
        ranks.enqueue(rank, ranks.operands(rank, 100, false), Duration::from_millis(50));
    }
    for rank in [0_u32, 2] {
        let error = ranks.streams[rank as usize].synchronize().unwrap_err();
        assert!(
            matches!(error, Error::WaitFailed { outcome: WaitError::Timeout, kind: WaitKind::Packet, rank: by, peer, .. }
                if (by, peer) == (Rank(rank), Rank(1))),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::Timeout);
        ranks.streams[rank as usize].reset().unwrap();
    }
    ranks.group.reset().unwrap();
    ranks.round(100, 2);
}
