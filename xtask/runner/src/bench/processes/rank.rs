//! A rank of a job that the benchmark measures.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use warpwire::device::{Device, DeviceSelector};

use super::order::{Order, Task};
use super::peers::Peers;
use super::{hop, reduce};
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
}

impl BenchRank {
    /// Does what it is told until there is no more.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut control = Control::attach()?;
        let device = Device::open(self.device)?;
        let bench = Bench::new(device, self.device, Files { baseline: self.baseline, peer: self.peer })?;
        let peers = Peers::meet(&bench.device)?;
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        while let Some(order) = control.hear()? {
            match order {
                Order::Prepare(task) => {
                    contestants.clear();
                    contestants = prepare(&bench, &peers, task)?;
                    let who: Vec<Who> = contestants.iter().map(|contestant| contestant.who).collect();
                    control.tell(&who)?;
                }
                Order::Measure(who) => {
                    let contestant = contestants.iter_mut().find(|contestant| contestant.who == who);
                    let contestant = contestant.with_context(|| format!("{who} takes no part"))?;
                    peers.barrier()?;
                    control.tell(&(contestant.measure)()?)?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn prepare<'b>(bench: &'b Bench, peers: &'b Peers, task: Task) -> anyhow::Result<Vec<Contestant<'b>>> {
    match task {
        Task::Semaphore { relaxed } => hop::semaphores(bench, peers, relaxed),
        Task::Packets { format, threads } => hop::packets(bench, peers, format, threads),
        Task::AllReduce { bytes } => reduce::all_reduce(bench, peers, bytes),
    }
}
