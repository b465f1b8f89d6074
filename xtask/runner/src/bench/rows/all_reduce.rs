//! `all_reduce`: the all-pair all-reduce among ranks that share the device.

use std::rc::Rc;

use anyhow::ensure;
use warpwire_kernels::all_pair::{AllPairArgs, AllReduceAllPair};

use crate::bench::case::{Case, Contestant, Row, Unit};
use crate::bench::kernels::Entry;
use crate::bench::setup::Bench;
use crate::bench::timing;
use crate::group::{Enqueue, Group};
use crate::size::Size;

/// The row.
pub const ROW: Row = Row {
    name: "all_reduce",
    about: "all-reduce (f32, sum) by all-pair packets, all ranks on this device, rounds played from graphs",
    cases,
};

const RANKS: [usize; 3] = [2, 4, 8];
const SIZES: [usize; 6] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let largest = bench.pick(1 << 20, 16 << 10);
    let mut cases = Vec::new();
    for ranks in RANKS {
        for bytes in SIZES.into_iter().filter(|&bytes| bytes <= largest) {
            let configuration = format!("{ranks} ranks, {}", Size(bytes));
            let case = Case::new("all-reduce", configuration, Unit::Microseconds, move |bench| {
                all_reduce(bench, ranks, bytes)
            });
            cases.push(case.point(&format!("{ranks} ranks"), bytes as u64));
        }
    }
    Ok(cases)
}

fn all_reduce(bench: &Bench, ranks: usize, bytes: usize) -> anyhow::Result<Vec<Contestant<'_>>> {
    let count = bytes / size_of::<f32>();
    let rounds = bench.pick(50, 2);
    let mut contestants = Vec::new();
    for entry in bench.entries::<AllReduceAllPair>()? {
        let group = Group::new(&bench.device, ranks, count, bench.patience())?;
        let who = entry.who;
        let enqueue = by(entry);
        ensure!(group.check(count, &*enqueue)?.right, "elements of {who}'s result are wrong");
        let graphs = group.record(count, rounds, &*enqueue)?;
        contestants.push(Contestant::new(who, move || {
            // What the graphs launch.
            let _alive = &enqueue;
            Ok(timing::seconds(group.play(&graphs)?)? * 1e6 / f64::from(rounds))
        }));
    }
    Ok(contestants)
}

/// Rounds by a contender's kernel, with the shape and the arguments that ours takes.
fn by(entry: Entry<AllPairArgs>) -> Rc<Enqueue<'static>> {
    let by_entry = move |group: &Group, rank, operands| {
        let (all_reduce, stream, timeout) = group.parts(rank);
        let (_, config, args) = all_reduce.launch_of(rank, stream, operands, timeout)?;
        // SAFETY: the operands are the group's own buffers, and its scratch lives as long as it does.
        unsafe { entry.launch(stream, config, args) }
    };
    Rc::new(by_entry)
}
