//! `multi-all-reduce`: all-reduce among devices.

use crate::bench::case::{Case, Row, Unit};
use crate::bench::processes::{Fleet, Task};
use crate::bench::setup::Bench;
use crate::size::Size;

/// The row.
pub const ROW: Row = Row {
    name: "multi-all-reduce",
    about: "all-reduce (f32, sum) among devices, a process each, rounds played from graphs; the slowest rank's time",
    cases,
};

const SIZES: [usize; 6] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let devices = bench.devices()?;
    let largest = bench.pick(1 << 20, 16 << 10);
    let mut counts = vec![2, devices];
    counts.dedup();
    let mut cases = Vec::new();
    for ranks in counts {
        let fleet = Fleet::apart(ranks);
        for bytes in SIZES.into_iter().filter(|&bytes| bytes <= largest) {
            let configuration = format!("{ranks} devices, {}", Size(bytes));
            let case = fleet.case("all-reduce", configuration, Unit::Microseconds, Task::AllReduce { bytes });
            cases.push(case.point(&format!("{ranks} devices"), bytes as u64));
        }
    }
    Ok(cases)
}
