//! `multi-hop`: one signal or packet from one device to another.

use crate::bench::case::{Case, Row, Unit};
use crate::bench::processes::{Fleet, Format, Task};
use crate::bench::setup::Bench;

/// The row.
pub const ROW: Row = Row {
    name: "multi-hop",
    about: "one signal or packet from one device to another, a process each; the slower one's time",
    cases,
};

/// What `red.release.sys` took between two H100s over NVLink, in MSCCL++.
const SEMAPHORE: f64 = 2345.0;

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    bench.devices()?;
    let two = Fleet::apart(2);
    let many = bench.pick(1024, 128);
    let packets = |format, threads| Task::Packets { format, threads };
    let hops = [
        ("semaphore, ordered", 1, Task::Semaphore { relaxed: false }, Some(SEMAPHORE)),
        ("semaphore, relaxed", 1, Task::Semaphore { relaxed: true }, None),
        ("LL8 packet", 1, packets(Format::Ll8, 1), None),
        ("LL16 packet", 1, packets(Format::Ll16, 1), None),
        ("LL8 packet", many, packets(Format::Ll8, many), None),
        ("LL16 packet", many, packets(Format::Ll16, many), None),
    ];
    let case = |(name, threads, task, aim): (&str, u32, Task, Option<f64>)| {
        let configuration = format!("2 devices, 1 x {threads} thread{}", if threads == 1 { "" } else { "s" });
        let case = two.case(name, configuration, Unit::Nanoseconds, task);
        case.aim(aim.and_then(|aim| bench.aim(aim)))
    };
    Ok(hops.into_iter().map(case).collect())
}
