//! `processes`: what goes from one process to another, all of them on this device.

use std::rc::Rc;

use crate::bench::case::{Case, Row, Unit};
use crate::bench::processes::{Fleet, Format, Task};
use crate::bench::setup::Bench;

/// The row.
pub const ROW: Row = Row {
    name: "processes",
    about: "one signal or packet from a process to another, on one device; the slower one's time",
    cases,
};

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let mut cases = Vec::new();
    let two = Fleet::new(2);
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
        let fleet = Rc::clone(&two);
        let case =
            Case::new(name, configuration, Unit::Nanoseconds, move |bench| fleet.prepare(bench, task));
        cases.push(case.aim(aim.and_then(|aim| bench.aim(aim))));
    }
    Ok(cases)
}
