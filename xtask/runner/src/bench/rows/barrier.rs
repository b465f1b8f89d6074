//! `barrier`: the grid barrier.

use std::rc::Rc;

use anyhow::ensure;
use warpwire::abi::{BarrierHandle, Global};
use warpwire::device::{Buffer, LaunchConfig};
use warpwire_kernels::barrier::{BarrierRounds, BarrierRoundsArgs};

use crate::bench::case::{Case, Contestant, Row, Unit};
use crate::bench::rounds::{PLACES, Rounds, mean_nanoseconds};
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
    // One word; a peer's barrier may take a few more.
    let words = (0..PLACES).map(|_| bench.device.allocate(4)).collect::<Result<Vec<Buffer<u32>>, _>>()?;
    let words = Rc::new(words);
    let mut contestants = Vec::new();
    for entry in bench.entries::<BarrierRounds>()? {
        let (progress, late): (Buffer<u32>, Buffer<u32>) =
            (bench.device.allocate(blocks as usize)?, bench.device.allocate(blocks as usize)?);
        let run = |word: &Buffer<u32>| {
            let args = BarrierRoundsArgs {
                barrier: BarrierHandle { word: word.address() },
                policy: bench.policy(),
                progress: progress.address(),
                late: late.address(),
                rounds,
                reserved: 0,
            };
            let config = LaunchConfig::new(blocks, threads).concurrent(1);
            Rounds { bench, entry: entry.clone(), config, args, hops: rounds }
        };
        let mut runs: Vec<_> = words.iter().map(run).collect();
        for (run, word) in runs.iter_mut().zip(&*words) {
            word.fill_bytes(0)?;
            late.fill_bytes(0xA5)?;
            // SAFETY: the words are the case's own, contenders take turns, and they live as long as each one's closure.
            unsafe { run.once() }?;
            let progress = progress.read()?;
            ensure!(
                progress.iter().all(|&round| round == rounds),
                "not every block came to the last barrier"
            );
            let late = late.read()?;
            ensure!(
                late.iter().all(|&late| late == 0),
                "blocks passed before their neighbours had come: {late:?} times"
            );
            run.args.late = Global::NULL;
        }
        let kept = Rc::clone(&words);
        contestants.push(Contestant::new(entry.who, move || {
            let _alive = &progress;
            // What one contender leaves in a word need not be another's beginning.
            kept.iter().try_for_each(|word| word.fill_bytes(0))?;
            // SAFETY: as above.
            unsafe { mean_nanoseconds(&runs) }
        }));
    }
    Ok(contestants)
}
