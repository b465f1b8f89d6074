//! `processes`: what goes from one process to another, all of them on this device.

use std::rc::Rc;

use crate::bench::case::{Case, Row, Unit};
use crate::bench::processes::{Fleet, Format, Task};
use crate::bench::setup::Bench;
use crate::size::Size;

/// The row.
pub const ROW: Row = Row {
    name: "processes",
    about: "a signal or a packet from one process to another, and all-reduce among processes, all on this device; the slowest rank's time",
    cases,
};

const SIZES: [usize; 4] = [1 << 10, 16 << 10, 64 << 10, 1 << 20];
/// Ranks, and the aims on an H200, in microseconds.
const ALL_REDUCE: [(usize, [f64; 4]); 3] =
    [(2, [2.95, 3.43, 3.59, 7.79]), (4, [3.71, 4.39, 4.88, 13.3]), (8, [5.57, 6.22, 7.10, 24.1])];

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let mut cases = Vec::new();
    let two = Fleet::together(2);
    // A block's threads are coroutines on the CPU device: a hop of a thousand takes a thousand switches.
    let threads = bench.pick(1024, 128);
    let ordered = Task::Semaphore { relaxed: false };
    let relaxed = Task::Semaphore { relaxed: true };
    let [ll8, ll16] = [Format::Ll8, Format::Ll16].map(|format| Task::Packets { format, threads });
    let hops = [
        ("semaphore, ordered", 1, ordered, Some(919.0)),
        ("semaphore, relaxed", 1, relaxed, None),
        ("LL8 packet", threads, ll8, Some(854.0)),
        ("LL16 packet", threads, ll16, Some(1094.0)),
    ];
    for (name, threads, task, aim) in hops {
        let configuration = format!("2 ranks, 1 x {threads} thread{}", if threads == 1 { "" } else { "s" });
        let case = two.case(name, configuration, Unit::Nanoseconds, task);
        cases.push(case.aim(aim.and_then(|aim| bench.aim(aim))));
    }
    let largest = bench.pick(1 << 20, 16 << 10);
    for (ranks, aims) in ALL_REDUCE {
        let fleet = if ranks == 2 { Rc::clone(&two) } else { Fleet::together(ranks) };
        for (bytes, aim) in SIZES.into_iter().zip(aims).filter(|(bytes, _)| *bytes <= largest) {
            let configuration = format!("{ranks} ranks, {}", Size(bytes));
            let case = fleet.case("all-reduce", configuration, Unit::Microseconds, Task::AllReduce { bytes });
            cases.push(case.aim(bench.aim(aim)).point(&format!("{ranks} processes"), bytes as u64));
        }
    }
    Ok(cases)
}
