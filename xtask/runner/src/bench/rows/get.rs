//! `get`: plain copies from a peer's buffer into the local one.

use warpwire::device::LaunchConfig;
use warpwire_kernels::transfer::Get;

use crate::bench::case::{Case, Contestant, Row};
use crate::bench::setup::Bench;
use crate::bench::transfer::{Move, Transfer, Value, shapes};
use crate::size::Size;

/// The row.
pub const ROW: Row = Row {
    name: "get",
    about: "plain copies from a peer's buffer; GB/s count what is read and what is written",
    cases,
};

const SIZES: [usize; 5] = [1 << 10, 64 << 10, 1 << 20, 32 << 20, 1 << 30];
const BLOCKS: [u32; 3] = [1, 8, 32];

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let largest = bench.memory()?.largest;
    let rate = |bytes: usize| Value::Rate(2 * bytes);
    let mut cases = Vec::new();
    for bytes in SIZES.into_iter().filter(|&bytes| bytes <= largest) {
        let case =
            Case::new("get", format!("{}, best grid", Size(bytes)), rate(bytes).unit(), move |bench| {
                get(bench, Move::of(bytes), &shapes(bench, bytes / 16), rate(bytes))
            });
        cases.push(case.point("get", bytes as u64));
    }
    let (bytes, threads) = bench.pick((largest.min(256 << 20), 1024), (64 << 10, 64));
    for blocks in BLOCKS.into_iter().filter(|&blocks| bench.is_gpu() || blocks <= 8) {
        let configuration = format!("{}, {blocks} x {threads}", Size(bytes));
        cases.push(Case::new("get", configuration, rate(bytes).unit(), move |bench| {
            get(bench, Move::of(bytes), &[LaunchConfig::new(blocks, threads)], rate(bytes))
        }));
    }
    Ok(cases)
}

fn get<'b>(
    bench: &'b Bench,
    what: Move,
    shapes: &[LaunchConfig],
    value: Value,
) -> anyhow::Result<Vec<Contestant<'b>>> {
    let memory = bench.memory()?;
    let transfer = Transfer {
        args: what.get(bench)?,
        shapes,
        arrange: &|| memory.poison(),
        check: &|| memory.expect_copy(what.to, what.from, what.bytes),
        value,
    };
    // SAFETY: both ranges lie in the bench's memory.
    let mut contestants = unsafe { transfer.contestants(bench, bench.entries::<Get>()?) }?;
    contestants.push(transfer.driver(bench, what)?);
    Ok(contestants)
}
