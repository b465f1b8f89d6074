//! `fifo`: triggers from a kernel to the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::ensure;
use warpwire::abi::{ChannelId, Position, Rank, Trigger};
use warpwire::device::LaunchConfig;
use warpwire::fifo::Fifo;
use warpwire::proxy::Proxy;
use warpwire_kernels::fifo::{FifoPush, FifoPushArgs};

use crate::bench::case::{Case, Contestant, Row, Unit};
use crate::bench::rounds::Rounds;
use crate::bench::setup::Bench;

/// The row.
pub const ROW: Row = Row {
    name: "fifo",
    about: "triggers from a kernel to a proxy's thread that does nothing with them, through a ring of 512",
    cases,
};

const SLOTS: usize = 512;

/// Blocks, threads of each, and the aim on an H200 in millions of triggers a second.
const GPU: [(u32, u32, Option<f64>); 7] = [
    (1, 1, Some(1.4)),
    (1, 32, Some(40.0)),
    (32, 1, Some(20.0)),
    (8, 16, Some(30.0)),
    (32, 32, None),
    (132, 1, None),
    (132, 32, None),
];
const CPU: [(u32, u32, Option<f64>); 3] = [(1, 1, None), (1, 32, None), (8, 16, None)];

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let shapes = if bench.is_gpu() { &GPU[..] } else { &CPU[..] };
    let rate = |&(blocks, threads, aim): &(u32, u32, Option<f64>)| {
        let all =
            if blocks * threads == 1 { bench.pick(1 << 16, 1 << 14) } else { bench.pick(1 << 20, 1 << 14) };
        let count = (all / (blocks * threads)).max(1);
        let case =
            Case::new("push", format!("{blocks} x {threads}"), Unit::MillionsPerSecond, move |bench| {
                pushes(bench, LaunchConfig::new(blocks, threads), count, false, |nanoseconds| {
                    1e3 / nanoseconds
                })
            });
        case.aim(aim.and_then(|aim| bench.aim(aim)))
    };
    let mut cases: Vec<Case<'_>> = shapes.iter().map(rate).collect();
    let latency = |(blocks, count): (u32, u32)| {
        Case::new("push to sync", format!("{blocks} x 1"), Unit::Microseconds, move |bench| {
            // All threads wait at once: one's round takes as long as all of them together.
            let each = move |nanoseconds: f64| nanoseconds * f64::from(blocks) / 1e3;
            pushes(bench, LaunchConfig::new(blocks, 1), count, true, each)
        })
    };
    cases.push(latency((1, bench.pick(5000, 200))).aim(bench.aim(2.9)));
    cases.push(latency(if bench.is_gpu() { (132, 200) } else { (8, 50) }));
    Ok(cases)
}

/// Each thread pushes `count` triggers; what is measured is made of the nanoseconds a trigger.
fn pushes(
    bench: &Bench,
    config: LaunchConfig,
    count: u32,
    sync: bool,
    measured: impl Fn(f64) -> f64 + Copy + 'static,
) -> anyhow::Result<Vec<Contestant<'_>>> {
    let mut contestants = Vec::new();
    for entry in bench.entries::<FifoPush>()? {
        let fifo = Arc::new(Fifo::new(&bench.device, SLOTS)?);
        let taken: Arc<AtomicU64> = Arc::default();
        let of_handler = Arc::clone(&taken);
        let proxy = Proxy::new(&bench.device, Arc::clone(&fifo), move |_: Position, _: Trigger| {
            of_handler.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        proxy.watch(&bench.stream);
        proxy.start()?;
        let args = FifoPushArgs {
            fifo: fifo.handle(Rank(0), ChannelId(0)),
            policy: bench.policy(),
            count,
            sync: sync.into(),
        };
        let all = config.blocks * config.threads * count;
        let who = entry.who;
        let run = Rounds { bench, entry, config, args, hops: all };
        // SAFETY: the ring is the contestant's own, and lives as long as its closure.
        unsafe { run.once() }?;
        // Stopped when all are taken: what is counted then is all there was.
        proxy.stop(bench.patience())?;
        let seen = taken.load(Ordering::Relaxed);
        ensure!(seen == u64::from(all), "of {all} triggers {seen} were taken");
        proxy.start()?;
        contestants.push(Contestant::new(who, move || {
            let _alive = &fifo;
            proxy.health()?;
            // SAFETY: as above.
            unsafe { run.nanoseconds() }.map(measured)
        }));
    }
    Ok(contestants)
}
