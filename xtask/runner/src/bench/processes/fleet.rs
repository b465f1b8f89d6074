//! The ranks as the benchmark sees them.

use std::cell::RefCell;
use std::ffi::OsString;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::de::DeserializeOwned;

use super::order::{Order, Task};
use crate::bench::case::{Contestant, Who};
use crate::bench::setup::Bench;
use crate::launch::{Job, Launch, Mps, Placement};

/// How long the ranks may take for one order, the first one with their start, the compilation of their kernels and all that.
const STEP: Duration = Duration::from_secs(120);

/// A job on the bench's device: started for the first case that needs it, ended with the last one. After a failure the next
/// case gets a new one.
pub struct Fleet {
    ranks: usize,
    job: RefCell<Option<Job>>,
}

impl Fleet {
    /// `ranks` ranks, once they are needed.
    pub fn new(ranks: usize) -> Rc<Self> {
        Rc::new(Self { ranks, job: RefCell::new(None) })
    }

    /// Sets a task up on every rank: those who take part.
    pub fn prepare<'b>(self: Rc<Self>, bench: &Bench, task: Task) -> anyhow::Result<Vec<Contestant<'b>>> {
        let answers: Vec<Vec<Who>> = self.ask(bench, Order::Prepare(task))?;
        let who = answers.first().cloned().unwrap_or_default();
        ensure!(
            answers.iter().all(|answer| *answer == who),
            "the ranks have different contenders: {answers:?}"
        );
        let contestant = |who| {
            let fleet = Rc::clone(&self);
            Contestant::new(who, move || {
                let mut job = fleet.job.try_borrow_mut()?;
                let job = job.as_mut().context("the ranks have gone")?;
                let times: Vec<f64> = ask(job, Order::Measure(who))?;
                // The slowest.
                Ok(times.into_iter().fold(0.0, f64::max))
            })
        };
        Ok(who.into_iter().map(contestant).collect())
    }

    fn ask<T: DeserializeOwned>(&self, bench: &Bench, order: Order) -> anyhow::Result<Vec<T>> {
        let mut slot = self.job.try_borrow_mut()?;
        let mut job = match slot.take() {
            Some(job) => job,
            None => self.start(bench)?,
        };
        let answers = ask(&mut job, order)?;
        *slot = Some(job);
        Ok(answers)
    }

    fn start(&self, bench: &Bench) -> anyhow::Result<Job> {
        let selector = bench.selector();
        let placement = Placement::together(selector, self.ranks);
        let mut arguments: Vec<OsString> = vec!["bench-rank".into(), "--device".into()];
        arguments.push(selector.to_string().into());
        let files = [("--baseline", &bench.baseline_file), ("--peer", &bench.peer_file)];
        for (name, file) in files {
            arguments.extend(file.iter().flat_map(|file| [OsString::from(name), file.into()]));
        }
        let mps = if placement.shares { Mps::start()? } else { None };
        Ok(Launch::this_program(vec![arguments; self.ranks])?.mps(mps).start()?)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let Some(mut job) = self.job.take() else { return };
        job.extend(STEP);
        if let Err(error) = job.finish() {
            tracing::warn!("the ranks did not end well: {error}");
        }
    }
}

fn ask<T: DeserializeOwned>(job: &mut Job, order: Order) -> anyhow::Result<Vec<T>> {
    job.extend(STEP);
    job.tell(&order)?;
    Ok(job.hear()?)
}
