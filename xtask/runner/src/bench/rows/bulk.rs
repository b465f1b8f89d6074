//! `bulk`: copies by the bulk asynchronous copy engine.

use warpwire::device::LaunchConfig;
use warpwire_device::bulk::RING_BYTES;
use warpwire_kernels::bulk::PutBulk;

use crate::bench::case::{Case, Contestant, Row};
use crate::bench::setup::Bench;
use crate::bench::transfer::{Move, Transfer, Value};
use crate::size::Size;

/// The row.
pub const ROW: Row = Row {
    name: "bulk",
    about: "copies by the copy engine, one thread a block; GB/s count what is read and what is written",
    cases,
};

/// Blocks, and the aim on an H200.
const BLOCKS: [(u32, Option<f64>); 6] =
    [(1, None), (8, Some(790.0)), (16, Some(1560.0)), (32, Some(3050.0)), (64, Some(3470.0)), (132, None)];
/// Threads of a block: the kernel's one warp, of which the first thread works.
const THREADS: u32 = 32;

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let largest = bench.memory()?.largest;
    let bytes = largest.min(bench.pick(256 << 20, 256 << 10));
    let shapes = BLOCKS.iter().filter(|(blocks, _)| bench.is_gpu() || *blocks <= 8);
    let mut cases: Vec<_> =
        shapes.map(|&(blocks, aim)| case(bytes, blocks).aim(aim.and_then(|aim| bench.aim(aim)))).collect();
    if largest > bytes {
        let blocks = bench.pick(132, 4);
        cases.push(case(largest, blocks));
    }
    Ok(cases)
}

fn case<'b>(bytes: usize, blocks: u32) -> Case<'b> {
    let value = Value::Rate(2 * bytes);
    let configuration = format!("{}, {blocks} x {THREADS}", Size(bytes));
    Case::new("bulk put", configuration, value.unit(), move |bench| put(bench, bytes, blocks, value))
}

fn put(bench: &Bench, bytes: usize, blocks: u32, value: Value) -> anyhow::Result<Vec<Contestant<'_>>> {
    let memory = bench.memory()?;
    let what = Move::of(bytes);
    let transfer = Transfer {
        args: what.put(bench, 0)?,
        shapes: &[LaunchConfig::new(blocks, THREADS).shared_bytes(RING_BYTES)],
        arrange: &|| memory.poison(),
        check: &|| memory.expect_copy(what.to, what.from, what.bytes),
        value,
    };
    // SAFETY: both ranges lie in the bench's memory; the shape has the ring's shared memory.
    unsafe { transfer.contestants(bench, bench.entries::<PutBulk>()?) }
}
