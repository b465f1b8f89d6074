//! `put`: plain copies from the local buffer into a peer's.

use warpwire::device::LaunchConfig;
use warpwire_kernels::transfer::Put;

use crate::bench::case::{Case, Contestant, Row, Who};
use crate::bench::setup::Bench;
use crate::bench::transfer::{Move, Transfer, Value, shapes};
use crate::size::Size;

/// The row.
pub const ROW: Row = Row {
    name: "put",
    about: "plain copies into a peer's buffer; GB/s count what is read and what is written",
    cases,
};

/// Blocks of 1,024 threads, and the aim on an H200.
const BLOCKS: [(u32, Option<f64>); 6] =
    [(1, None), (8, Some(760.0)), (16, Some(1500.0)), (32, Some(2900.0)), (64, Some(3760.0)), (132, None)];
/// Short ones, whose data stay in the cache, and the aim.
const HOT: [(usize, f64); 4] = [(1 << 10, 0.97), (64 << 10, 1.03), (1 << 20, 1.40), (16 << 20, 5.2)];
/// By how much a misaligned one is off.
const OFF: usize = 4;

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let largest = bench.memory()?.largest;
    let rate = |bytes: usize| Value::Rate(2 * bytes);
    let at_1_gib = |bytes: usize, aim: f64| (bytes == 1 << 30).then(|| bench.aim(aim)).flatten();
    let mut cases = Vec::new();
    let sizes = (10..=30).step_by(bench.pick(2, 5)).map(|shift| 1 << shift).filter(|&bytes| bytes <= largest);
    for bytes in sizes {
        let case =
            Case::new("put", format!("{}, best grid", Size(bytes)), rate(bytes).unit(), move |bench| {
                put(bench, Move::of(bytes), &shapes(bench, bytes / 16), rate(bytes))
            });
        cases.push(case.aim(at_1_gib(bytes, 4060.0)).point("put", bytes as u64));
    }
    let off = |from, to, how: &str| {
        let what = Move { from, to, bytes: largest };
        let configuration = format!("{}, {how}", Size(largest));
        Case::new("put", configuration, rate(largest).unit(), move |bench| {
            put(bench, what, &shapes(bench, largest / 16), rate(largest))
        })
    };
    cases.push(off(OFF, OFF, &format!("both sides misaligned by {OFF}")).aim(at_1_gib(largest, 3700.0)));
    cases.push(off(0, OFF, &format!("one side misaligned by {OFF}")));
    // On the CPU device a block of 1,024 threads is as many coroutines, and a few blocks show what there is.
    let (bytes, threads) = bench.pick((largest.min(256 << 20), 1024), (64 << 10, 64));
    for &(blocks, aim) in BLOCKS.iter().filter(|(blocks, _)| bench.is_gpu() || *blocks <= 8) {
        let configuration = format!("{}, {blocks} x {threads}", Size(bytes));
        let case = Case::new("put", configuration, rate(bytes).unit(), move |bench| {
            put(bench, Move::of(bytes), &[LaunchConfig::new(blocks, threads)], rate(bytes))
        });
        cases.push(case.aim(aim.and_then(|aim| bench.aim(aim))));
    }
    for (bytes, aim) in HOT.into_iter().filter(|&(bytes, _)| bytes <= bench.pick(largest, 64 << 10)) {
        let case =
            Case::new("put in a graph", format!("{}, hot", Size(bytes)), Value::Time.unit(), move |bench| {
                put(bench, Move::of(bytes), &shapes(bench, bytes / 16), Value::Time)
            });
        cases.push(case.aim(bench.aim(aim)).point("put in a graph", bytes as u64));
    }
    Ok(cases)
}

fn put<'b>(
    bench: &'b Bench,
    what: Move,
    shapes: &[LaunchConfig],
    value: Value,
) -> anyhow::Result<Vec<Contestant<'b>>> {
    let memory = bench.memory()?;
    let transfer = Transfer {
        args: what.put(bench, 0)?,
        shapes,
        arrange: &|| memory.poison(),
        check: &|| memory.expect_copy(what.to, what.from, what.bytes),
        value,
    };
    let mut entries = bench.entries::<Put>()?;
    if what.from % 16 != what.to % 16 {
        // MSCCL++ copies between addresses that are misaligned alike only.
        entries.retain(|entry| entry.who != Who::Peer);
    }
    // SAFETY: both ranges lie in the bench's memory.
    let mut contestants = unsafe { transfer.contestants(bench, entries) }?;
    contestants.push(transfer.driver(bench, what)?);
    Ok(contestants)
}
