//! All-reduce from more streams than one a rank, and as the first thing in a recording.

use std::thread;

use warpwire::abi::Rank;
use warpwire::collective::{AllReduce, Operands};
use warpwire::device::{Buffer, Device, DeviceKind, Stream};
use warpwire::{Error, ErrorKind};

use super::rig::{LONG, filled, zeroed};
use crate::accuracy::Random;

const RANKS: usize = 2;

/// Elements of a round: no packet, no warp divides them.
const COUNT: usize = 33;

/// Rounds of one rank, each with memory of its own, so that many may be asked for before the first has been looked at.
struct Rounds {
    rank: usize,
    input: Buffer<f32>,
    output: Buffer<f32>,
}

impl Rounds {
    fn new(device: &Device, rank: usize, rounds: usize) -> Self {
        let values: Vec<f32> = (0..rounds * COUNT).map(|i| Self::element(rank, i)).collect();
        Self { rank, input: filled(device, &values), output: zeroed(device, rounds * COUNT) }
    }

    /// Integers that a sum holds exactly, and that tell rounds and elements apart.
    fn element(rank: usize, i: usize) -> f32 {
        (i % 4093 + 5000 * rank + 1) as f32
    }

    fn enqueue(&self, group: &AllReduce, stream: &Stream, round: usize) -> warpwire::Result<()> {
        let first = (round * COUNT) as u64;
        let (input, output) = (self.input.address().add(first), self.output.address().add(first));
        let operands = Operands { input, output, count: COUNT };
        // SAFETY: the buffers and the groups outlive the launches: each check synchronizes before it ends.
        unsafe { group.enqueue(Rank(self.rank as u32), stream, operands, LONG) }
    }

    /// Every round has its sum.
    fn check(&self) {
        for (i, seen) in self.output.read().unwrap().into_iter().enumerate() {
            let expected: f32 = (0..RANKS).map(|rank| Self::element(rank, i)).sum();
            assert_eq!(seen, expected, "rank {}, round {}, element {}", self.rank, i / COUNT, i % COUNT);
        }
    }
}

fn pair_of_streams(device: &Device) -> [Stream; 2] {
    [device.stream().unwrap(), device.stream().unwrap()]
}

fn group(device: &Device) -> AllReduce {
    AllReduce::new(&vec![device.clone(); RANKS], COUNT).unwrap()
}

/// C20: a second stream is refused while a rank's round is in flight on the first, by an error that says whose, and nothing is
/// queued; when the round has ended it is taken.
pub fn a_second_stream_waits_its_turn(device: &Device) {
    let group = group(device);
    let (first, second, peers) =
        (device.stream().unwrap(), device.stream().unwrap(), device.stream().unwrap());
    let [own, peer] = [0, 1].map(|rank| Rounds::new(device, rank, 3));
    // In flight until the peer's part comes.
    own.enqueue(&group, &first, 0).unwrap();
    let refused = own.enqueue(&group, &second, 1).unwrap_err();
    assert!(matches!(refused, Error::RankBusy { rank: Rank(0) }), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::State);
    assert!(second.is_idle().unwrap(), "what was refused was queued");
    // The same stream keeps the order itself; the other rank's turn is its own.
    own.enqueue(&group, &first, 1).unwrap();
    (0..3).for_each(|round| peer.enqueue(&group, &peers, round).unwrap());
    first.synchronize().unwrap();
    own.enqueue(&group, &second, 2).unwrap();
    [&second, &peers].into_iter().for_each(|stream| stream.synchronize().unwrap());
    [own, peer].iter().for_each(Rounds::check);
}

/// C20: every rank takes one of its two streams at random for each round, and the other's end where it is told to wait: every
/// round is right.
pub fn rounds_of_two_streams(device: &Device) {
    let rounds = if device.properties().kind == DeviceKind::Cuda { 1000 } else { 150 };
    let group = &group(device);
    thread::scope(|scope| {
        for rank in 0..RANKS {
            let (own, streams) = (Rounds::new(device, rank, rounds), pair_of_streams(device));
            scope.spawn(move || {
                let mut random = Random::new(rank as u64 + 1);
                for round in 0..rounds {
                    let choice = (random.next() >> 40) as usize % 2;
                    match own.enqueue(group, &streams[choice], round) {
                        Err(Error::RankBusy { .. }) => {
                            streams[1 - choice].synchronize().unwrap();
                            own.enqueue(group, &streams[choice], round)
                        }
                        queued => queued,
                    }
                    .unwrap();
                }
                streams.iter().for_each(|stream| stream.synchronize().unwrap());
                own.check();
            });
        }
    });
}

/// C20: two groups are in flight at once, each on a stream of its own, and the ranks ask for them in opposite orders.
pub fn two_groups_at_once(device: &Device) {
    const ROUNDS: usize = 20;
    let groups = [group(device), group(device)];
    let ranks: Vec<_> = (0..RANKS)
        .map(|rank| (pair_of_streams(device), [0, 1].map(|_| Rounds::new(device, rank, ROUNDS))))
        .collect();
    for round in 0..ROUNDS {
        for (rank, (streams, rounds)) in ranks.iter().enumerate() {
            for turn in 0..2 {
                let which = (rank + turn) % 2;
                rounds[which].enqueue(&groups[which], &streams[which], round).unwrap();
            }
        }
    }
    for (streams, rounds) in &ranks {
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        rounds.iter().for_each(Rounds::check);
    }
}

/// C55: a group's first rounds are recorded, and what else a recording may meet before them: a group that is made meanwhile, and
/// every call that has no place in it, each refused by an error, after which the recording goes on.
pub fn the_first_round_is_recorded(device: &Device) {
    let own: Vec<_> = (0..RANKS).map(|rank| Rounds::new(device, rank, 1)).collect();
    let streams = pair_of_streams(device);
    let mut made = None;
    let first = streams[0].capture(|stream| {
        refused_in_a_recording(stream);
        let group = made.insert(group(device));
        let too_many =
            Operands { input: own[0].input.address(), output: own[0].output.address(), count: 10 * COUNT };
        // SAFETY: refused, as is checked; nothing is recorded.
        let refused = unsafe { group.enqueue(Rank(0), stream, too_many, LONG) };
        assert!(matches!(refused, Err(Error::TooManyElements { .. })), "{refused:?}");
        own[0].enqueue(group, stream, 0)
    });
    let first = first.unwrap();
    let group = made.as_ref().unwrap();
    let second = streams[1].capture(|stream| own[1].enqueue(group, stream, 0)).unwrap();
    assert_eq!(own[0].output.read().unwrap(), [0.0; COUNT], "a recording has run");
    for _ in 0..3 {
        own.iter().for_each(|rank| rank.output.fill_bytes(0).unwrap());
        for (graph, stream) in [&first, &second].into_iter().zip(&streams) {
            // SAFETY: what was recorded lives until the end of this function, and each repetition is waited for.
            unsafe { graph.launch(stream) }.unwrap();
        }
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        own.iter().for_each(Rounds::check);
    }
}

/// C55: a recording that fails, at its first call or behind a round, leaves stream and group as they were.
pub fn a_failed_recording_leaves_all_as_it_was(device: &Device) {
    let (group, streams) = (group(device), pair_of_streams(device));
    let own: Vec<_> = (0..RANKS).map(|rank| Rounds::new(device, rank, 2)).collect();
    for behind in [false, true] {
        let failed = streams[0].capture(|stream| {
            if behind {
                own[0].enqueue(&group, stream, 0)?;
            }
            stream.synchronize()
        });
        assert!(matches!(failed, Err(Error::CaptureActive { .. })), "{failed:?}");
        for (rank, stream) in own.iter().zip(&streams) {
            rank.enqueue(&group, stream, usize::from(behind)).unwrap();
        }
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
    }
    own.iter().for_each(Rounds::check);
}

/// What waits or asks for what has been done, which nothing has.
fn refused_in_a_recording(stream: &Stream) {
    type Call = fn(&Stream) -> warpwire::Result<()>;
    let calls: [(&str, Call); 5] = [
        ("synchronize", Stream::synchronize),
        ("is_idle", |stream| stream.is_idle().map(drop)),
        ("record", |stream| stream.record().map(drop)),
        ("reset", Stream::reset),
        ("capture", |stream| stream.capture(|_| Ok(())).map(drop)),
    ];
    for (name, call) in calls {
        let refused = call(stream);
        assert!(matches!(refused, Err(Error::CaptureActive { .. })), "{name}: {refused:?}");
    }
}
