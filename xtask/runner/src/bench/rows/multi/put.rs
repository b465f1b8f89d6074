//! `multi-put`: puts from one device into another's memory.

use crate::bench::case::{Case, Row, Unit};
use crate::bench::processes::{By, Fleet, Task};
use crate::bench::setup::Bench;
use crate::size::Size;

/// The row.
pub const ROW: Row = Row {
    name: "multi-put",
    about: "puts from one device into another's memory, each contender's best grid; GB/s count the message once, and both ways the slower one's",
    cases,
};

const SIZES: [usize; 4] = [64 << 10, 1 << 20, 16 << 20, 256 << 20];

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    bench.devices()?;
    let two = Fleet::apart(2);
    let largest = bench.pick(256 << 20, 64 << 10);
    let mut cases = Vec::new();
    for both in [false, true] {
        for (name, by) in [("put", By::Threads), ("bulk put", By::Bulk)] {
            for bytes in SIZES.into_iter().filter(|&bytes| bytes <= largest) {
                let way = if both { "both ways" } else { "one way" };
                let configuration = format!("{}, {way}", Size(bytes));
                let task = Task::Put { by, bytes, both };
                let case = two.case(name, configuration, Unit::GigabytesPerSecond, task);
                cases.push(case.point(&format!("{name}, {way}"), bytes as u64));
            }
        }
    }
    Ok(cases)
}
