//! One rank of an all-reduce.

use anyhow::ensure;
use warpwire_kernels::all_pair::{AllPairArgs, AllReduceAllPair};

use super::nccl::Nccl;
use super::peers::Peers;
use crate::bench::case::{Contestant, Who};
use crate::bench::kernels::Entry;
use crate::bench::setup::Bench;
use crate::bench::timing;
use crate::group::{Contribute, Participant};

/// The all-pair all-reduce, for every contender that has the kernel, and NCCL's, where there is one: the microseconds of one
/// round.
pub fn all_reduce<'b>(
    bench: &'b Bench,
    peers: &'b Peers,
    nccl: Option<&'b Nccl>,
    bytes: usize,
) -> anyhow::Result<Vec<Contestant<'b>>> {
    let count = bytes / size_of::<f32>();
    let rounds = bench.pick(100, 2);
    let mut contestants = Vec::new();
    for entry in bench.entries::<AllReduceAllPair>()? {
        let participant = Participant::new(peers.communicator().clone(), count, bench.patience())?;
        let who = entry.who;
        let contribute = by(entry);
        let (checked, digest) = participant.check(count, &*contribute)?;
        ensure!(checked.right, "elements of {who}'s result are wrong");
        peers.communicator().agree("the digest of the result", digest)?;
        contestants.push(played(who, participant, count, rounds, contribute)?);
    }
    if let Some(nccl) = nccl {
        let participant = Participant::new(peers.communicator().clone(), count, bench.patience())?;
        let contribute: Box<Contribute<'b>> = Box::new(|participant, operands| {
            // SAFETY: the operands are the participant's own buffers, `count` elements each.
            unsafe { nccl.all_reduce(participant.parts().2, operands) }
        });
        let (checked, _) = participant.check_sum(count, &*contribute)?;
        ensure!(checked.right, "elements of NCCL's result are wrong");
        contestants.push(played(Who::Nccl, participant, count, rounds, contribute)?);
    }
    Ok(contestants)
}

/// A contender whose rounds are recorded once, and played.
fn played<'b>(
    who: Who,
    participant: Participant,
    count: usize,
    rounds: u32,
    contribute: Box<Contribute<'b>>,
) -> anyhow::Result<Contestant<'b>> {
    let graph = participant.record(count, rounds, &*contribute)?;
    Ok(Contestant::new(who, move || {
        // What the graph launches.
        let _alive = &contribute;
        Ok(timing::seconds(participant.play(&graph)?)? * 1e6 / f64::from(rounds))
    }))
}

/// The rank's part by a contender's kernel, with the shape and the arguments that ours takes.
fn by(entry: Entry<AllPairArgs>) -> Box<Contribute<'static>> {
    Box::new(move |participant, operands| {
        let (all_reduce, rank, stream, timeout) = participant.parts();
        let (_, config, args) = all_reduce.launch_of(rank, stream, operands, timeout)?;
        // SAFETY: the operands are the participant's own buffers, and the collective's scratch lives as long as it does.
        unsafe { entry.launch(stream, config, args) }.map_err(Into::into)
    })
}
