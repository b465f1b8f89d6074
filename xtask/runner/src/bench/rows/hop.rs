//! `hop`: one signal or packet from one block to another.

use std::rc::Rc;

use anyhow::ensure;
use warpwire::abi::{ChannelId, InboundHandle, OutboundHandle, Rank, SemaphoreHandle};
use warpwire::device::{Buffer, LaunchConfig};
use warpwire_kernels::ping_pong::{
    PacketPingPong8, PacketPingPong16, PacketPingPongArgs, SemaphorePingPong, SemaphorePingPongArgs,
    first_payload,
};

use crate::bench::case::{Case, Contestant, Row, Unit};
use crate::bench::kernels::HasBaseline;
use crate::bench::rounds::{PLACES, Rounds, mean_nanoseconds};
use crate::bench::setup::Bench;

/// The row.
pub const ROW: Row =
    Row { name: "hop", about: "one signal or packet from one block to another, both in one launch", cases };

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let mut cases = Vec::new();
    for (name, relaxed, aim) in [("semaphore, ordered", false, 800.0), ("semaphore, relaxed", true, 275.0)] {
        let case =
            Case::new(name, "2 x 1 thread", Unit::Nanoseconds, move |bench| semaphores(bench, relaxed));
        cases.push(case.aim(bench.aim(aim)));
    }
    // A block's threads are coroutines on the CPU device: a hop of a thousand takes a thousand switches.
    let many = bench.pick(1024, 256);
    for (threads, aims) in [(1, Some((352.0, 358.0))), (many, None)] {
        let configuration = format!("2 x {threads} thread{}", if threads == 1 { "" } else { "s" });
        let ll8 = Case::new("LL8 packet", &configuration, Unit::Nanoseconds, move |bench| {
            packets::<PacketPingPong8>(bench, threads, |value| u64::from(value as u32))
        });
        let ll16 = Case::new("LL16 packet", &configuration, Unit::Nanoseconds, move |bench| {
            packets::<PacketPingPong16>(bench, threads, |value| value)
        });
        cases.push(ll8.aim(aims.and_then(|(aim, _)| bench.aim(aim))));
        cases.push(ll16.aim(aims.and_then(|(_, aim)| bench.aim(aim))));
    }
    Ok(cases)
}

/// A token and a count for each of two ends, each on a cache line (128 bytes) of its own.
struct Ends {
    words: Buffer<u64>,
}

/// Words from one line to the next.
const LINE: usize = 16;

impl Ends {
    fn new(bench: &Bench) -> anyhow::Result<Self> {
        Ok(Self { words: bench.device.allocate(4 * LINE)? })
    }

    fn handles(&self) -> [SemaphoreHandle; 2] {
        let word = |line: usize| self.words.address().add((line * LINE) as u64);
        [0, 1].map(|end| SemaphoreHandle {
            inbound: InboundHandle {
                token: word(end),
                expected: word(2 + end),
                peer: Rank(1 - end as u32),
                channel: ChannelId(0),
            },
            outbound: OutboundHandle { token: word(1 - end) },
        })
    }

    /// Fails unless both tokens and both counts have come to `count`.
    fn expect(&self, count: u64) -> anyhow::Result<()> {
        let words = self.words.read()?;
        let seen: Vec<u64> = words.iter().step_by(LINE).copied().collect();
        ensure!(seen == [count; 4], "tokens and counts of waits stand at {seen:?}, not at {count}");
        Ok(())
    }
}

fn semaphores(bench: &Bench, relaxed: bool) -> anyhow::Result<Vec<Contestant<'_>>> {
    let rounds = bench.pick(2000, 200);
    let places = (0..PLACES).map(|_| Ends::new(bench)).collect::<anyhow::Result<Vec<_>>>()?;
    let places = Rc::new(places);
    let mut contestants = Vec::new();
    for (turn, entry) in (1..).zip(bench.entries::<SemaphorePingPong>()?) {
        let run = |ends: &Ends| {
            let args = SemaphorePingPongArgs {
                ends: ends.handles(),
                policy: bench.policy(),
                first_end: 0,
                rounds,
                relaxed: relaxed.into(),
                reserved: 0,
            };
            let config = LaunchConfig::new(2, 1).concurrent(1);
            Rounds { bench, entry: entry.clone(), config, args, hops: 2 * rounds }
        };
        let runs: Vec<_> = places.iter().map(run).collect();
        for (run, ends) in runs.iter().zip(&*places) {
            // SAFETY: the words are the case's own, contenders take turns, and they live as long as each one's closure.
            unsafe { run.once() }?;
            ends.expect(u64::from(turn * rounds))?;
        }
        let kept = Rc::clone(&places);
        contestants.push(Contestant::new(entry.who, move || {
            let _alive = &kept;
            // SAFETY: as above.
            unsafe { mean_nanoseconds(&runs) }
        }));
    }
    Ok(contestants)
}

/// Slots and received words of both ends of a packets' ping-pong.
struct Slots {
    slots: [Buffer<u64>; 2],
    received: [Buffer<u64>; 2],
}

impl Slots {
    fn new(bench: &Bench, count: usize) -> anyhow::Result<Self> {
        // Room for LL16, of which LL8 takes half.
        let slots = [bench.device.allocate(2 * count)?, bench.device.allocate(2 * count)?];
        Ok(Self { slots, received: [bench.device.allocate(count)?, bench.device.allocate(count)?] })
    }
}

fn packets<K: HasBaseline<Args = PacketPingPongArgs>>(
    bench: &Bench,
    threads: u32,
    carried: fn(u64) -> u64,
) -> anyhow::Result<Vec<Contestant<'_>>> {
    let rounds = bench.pick(2000, if threads == 1 { 200 } else { 10 });
    let new = |_| Slots::new(bench, threads as usize);
    let places = Rc::new((0..PLACES).map(new).collect::<anyhow::Result<Vec<_>>>()?);
    let mut contestants = Vec::new();
    for entry in bench.entries::<K>()? {
        let run = |place: &Slots| {
            let args = PacketPingPongArgs {
                slots: [place.slots[0].address().cast(), place.slots[1].address().cast()],
                received: [place.received[0].address(), place.received[1].address()],
                policy: bench.policy(),
                first_end: 0,
                rounds,
                // A launch leaves the slots at its last flag, so the next one may begin with the first again.
                flag: 1,
                reserved: 0,
            };
            let config = LaunchConfig::new(2, threads).concurrent(1);
            Rounds { bench, entry: entry.clone(), config, args, hops: 2 * rounds }
        };
        let runs: Vec<_> = places.iter().map(run).collect();
        for (run, place) in runs.iter().zip(&*places) {
            for words in &place.received {
                words.fill_bytes(0xA5)?;
            }
            // SAFETY: a slot and a word a thread, the case's own, and contenders take turns; they live as long as each one's
            // closure.
            unsafe { run.once() }?;
            for words in &place.received {
                for (thread, seen) in (0..threads).zip(words.read()?) {
                    let expected = carried(first_payload(thread).wrapping_add(u64::from(rounds)));
                    ensure!(
                        carried(seen) == expected,
                        "thread {thread} received {seen:#x}, not {expected:#x}"
                    );
                }
            }
        }
        let kept = Rc::clone(&places);
        contestants.push(Contestant::new(entry.who, move || {
            let _alive = &kept;
            // SAFETY: as above.
            unsafe { mean_nanoseconds(&runs) }
        }));
    }
    Ok(contestants)
}
