//! A rank of a job that the benchmark measures.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use warpwire::device::{Device, DeviceSelector};

use super::nccl::Nccl;
use super::order::{Order, Task};
use super::peers::Peers;
use super::{hop, put, reduce};
use crate::bench::case::{Contestant, Who};
use crate::bench::setup::{Bench, Files};
use crate::launch::Control;

/// What the benchmark starts for each rank.
#[derive(Args)]
pub struct BenchRank {
    #[arg(long)]
    device: DeviceSelector,
    #[arg(long)]
    baseline: Option<PathBuf>,
    #[arg(long)]
    peer: Option<PathBuf>,
    /// NCCL's library, where it is to take part.
    #[arg(long)]
    nccl: Option<PathBuf>,
}

impl BenchRank {
    /// Does what it is told until there is no more.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut control = Control::attach()?;
        let device = Device::open(self.device)?;
        let bench = Bench::new(device, self.device, Files { baseline: self.baseline, peer: self.peer })?;
        let peers = Peers::meet(&bench.device)?;
        let nccl = match &self.nccl {
            Some(path) => Nccl::join(path, &peers, &bench.stream)?,
            None => None,
        };
        let mut contestants: Option<Vec<Contestant<'_>>> = None;
        while let Some(order) = control.hear()? {
            match order {
                Order::Prepare(task) => {
                    // Nobody's memory goes while a peer may still use it.
                    peers.barrier()?;
                    drop(contestants.take());
                    contestants = prepare(&bench, &peers, nccl.as_ref(), task)?;
                    let who = contestants.as_ref().map(|all| all.iter().map(|contestant| contestant.who));
                    control.tell(&who.map(Iterator::collect::<Vec<Who>>))?;
                }
                Order::Measure(who) => {
                    peers.barrier()?;
                    let number = contestants.as_mut().map(|all| measure(all, who)).transpose()?;
                    control.tell(&number)?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn prepare<'b>(
    bench: &'b Bench,
    peers: &'b Peers,
    nccl: Option<&'b Nccl>,
    task: Task,
) -> anyhow::Result<Option<Vec<Contestant<'b>>>> {
    match task {
        Task::Semaphore { relaxed } => hop::semaphores(bench, peers, relaxed).map(Some),
        Task::Packets { format, threads } => hop::packets(bench, peers, format, threads).map(Some),
        Task::Put { by, bytes, both } => put::put(bench, peers, by, bytes, both),
        Task::AllReduce { bytes } => reduce::all_reduce(bench, peers, nccl, bytes).map(Some),
    }
}

/// One repetition, by the contender of that name.
fn measure(contestants: &mut [Contestant<'_>], who: Who) -> anyhow::Result<f64> {
    let contestant = contestants.iter_mut().find(|contestant| contestant.who == who);
    (contestant.with_context(|| format!("{who} takes no part"))?.measure)()
}
