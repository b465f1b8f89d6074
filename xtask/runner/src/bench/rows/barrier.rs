//! `barrier`: the grid barrier.

use anyhow::ensure;
use warpwire::abi::{BarrierHandle, Global};
use warpwire::device::{Buffer, LaunchConfig};
use warpwire_kernels::barrier::{BarrierRounds, BarrierRoundsArgs};

use crate::bench::case::{Case, Contestant, Row, Unit};
use crate::bench::rounds::Rounds;
use crate::bench::setup::Bench;

/// The row.
pub const ROW: Row = Row { name: "barrier", about: "one barrier over all blocks of a grid", cases };

/// Blocks, and the aim on an H200.
const GPU: [(u32, Option<f64>); 3] = [(8, Some(720.0)), (32, Some(920.0)), (132, Some(1130.0))];
const CPU: [(u32, Option<f64>); 2] = [(2, None), (8, None)];

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let threads = bench.pick(1024, 32);
    let shapes = if bench.is_gpu() { &GPU[..] } else { &CPU[..] };
    let fitting = shapes
        .iter()
        .filter(|(blocks, _)| !bench.is_gpu() || *blocks <= bench.device.properties().multiprocessors);
    let case = |&(blocks, aim): &(u32, Option<f64>)| {
        let configuration = format!("{blocks} x {threads}");
        Case::new("grid barrier", configuration, Unit::Nanoseconds, move |bench| {
            barrier(bench, blocks, threads)
        })
        .aim(aim.and_then(|aim| bench.aim(aim)))
    };
    Ok(fitting.map(case).collect())
}

fn barrier(bench: &Bench, blocks: u32, threads: u32) -> anyhow::Result<Vec<Contestant<'_>>> {
    let rounds = bench.pick(1000, 20);
    let mut contestants = Vec::new();
    for entry in bench.entries::<BarrierRounds>()? {
        // One word; a peer's barrier may take a few more.
        let word: Buffer<u32> = bench.device.allocate(4)?;
        let (progress, late): (Buffer<u32>, Buffer<u32>) =
            (bench.device.allocate(blocks as usize)?, bench.device.allocate(blocks as usize)?);
        let args = BarrierRoundsArgs {
            barrier: BarrierHandle { word: word.address() },
            policy: bench.policy(),
            progress: progress.address(),
            late: late.address(),
            rounds,
            reserved: 0,
        };
        let who = entry.who;
        let config = LaunchConfig::new(blocks, threads).concurrent(1);
        let mut run = Rounds { bench, entry, config, args, hops: rounds };
        late.fill_bytes(0xA5)?;
        // SAFETY: the words are the contestant's own, and live as long as its closure.
        unsafe { run.once() }?;
        ensure!(
            progress.read()?.iter().all(|&round| round == rounds),
            "not every block came to the last barrier"
        );
        let late = late.read()?;
        ensure!(
            late.iter().all(|&late| late == 0),
            "blocks passed before their neighbours had come: {late:?} times"
        );
        run.args.late = Global::NULL;
        contestants.push(Contestant::new(who, move || {
            let _alive = (&word, &progress);
            // SAFETY: as above.
            unsafe { run.nanoseconds() }
        }));
    }
    Ok(contestants)
}
