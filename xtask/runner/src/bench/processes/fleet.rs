//! The ranks as the benchmark sees them.

use std::cell::RefCell;
use std::ffi::OsString;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::de::DeserializeOwned;
use warpwire::device::DeviceSelector;

use super::order::{Order, Task};
use crate::bench::case::{Better, Case, Contestant, Unit, Who};
use crate::bench::setup::Bench;
use crate::launch::{Job, Launch, Placement};

/// How long the ranks may take for one order, the first one with their start, the compilation of their kernels and all that.
const STEP: Duration = Duration::from_secs(120);

/// NCCL's own switch: it does not use the switch's multicast, as ours does not.
const NO_MULTICAST: (&str, &str) = ("NCCL_NVLS_ENABLE", "0");

/// A job: started for the first case that needs it, ended with the last one. After a failure the next case gets a new one.
pub struct Fleet {
    ranks: usize,
    apart: bool,
    job: RefCell<Option<Job>>,
}

impl Fleet {
    /// `ranks` ranks on the bench's device, once they are needed.
    pub fn together(ranks: usize) -> Rc<Self> {
        Rc::new(Self { ranks, apart: false, job: RefCell::new(None) })
    }

    /// `ranks` ranks on as many devices of the bench's kind, once they are needed.
    pub fn apart(ranks: usize) -> Rc<Self> {
        Rc::new(Self { ranks, apart: true, job: RefCell::new(None) })
    }

    /// A case of the benchmark that these ranks measure.
    pub fn case<'b>(
        self: &Rc<Self>,
        name: impl Into<String>,
        configuration: impl Into<String>,
        unit: Unit,
        task: Task,
    ) -> Case<'b> {
        let fleet = Rc::clone(self);
        Case::new(name, configuration, unit, move |bench| fleet.prepare(bench, task, unit))
    }

    /// Sets a task up on every rank: those who take part. Of the ranks' numbers the one that is worst counts.
    fn prepare<'b>(
        self: Rc<Self>,
        bench: &Bench,
        task: Task,
        unit: Unit,
    ) -> anyhow::Result<Vec<Contestant<'b>>> {
        let answers: Vec<Option<Vec<Who>>> = self.ask(bench, Order::Prepare(task))?;
        let mut active = answers.iter().flatten();
        let who = active.next().cloned().unwrap_or_default();
        ensure!(active.all(|answer| *answer == who), "the ranks have different contenders: {answers:?}");
        let contestant = |who| {
            let fleet = Rc::clone(&self);
            Contestant::new(who, move || {
                let mut job = fleet.job.try_borrow_mut()?;
                let job = job.as_mut().context("the ranks have gone")?;
                let numbers: Vec<Option<f64>> = ask(job, Order::Measure(who))?;
                worst(unit, numbers.into_iter().flatten()).context("no rank measured anything")
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
        let placement = match (self.apart, selector) {
            (true, DeviceSelector::Cuda(_)) => Placement::apart(self.ranks),
            _ => Placement::together(selector, self.ranks),
        };
        // NCCL takes one rank a GPU.
        let nccl = Some(bench.nccl.clone()).filter(|_| self.apart && bench.is_gpu());
        let files = [("--baseline", &bench.baseline_file), ("--peer", &bench.peer_file), ("--nccl", &nccl)];
        let arguments = placement.selectors.iter().map(|selector| {
            let mut words: Vec<OsString> = vec!["bench-rank".into(), "--device".into()];
            words.push(selector.to_string().into());
            for (name, file) in files {
                words.extend(file.iter().flat_map(|file| [OsString::from(name), file.into()]));
            }
            words
        });
        let launch = Launch::this_program(arguments.collect())?;
        Ok(launch.variable(NO_MULTICAST.0, NO_MULTICAST.1).placed(&placement)?.start()?)
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

/// The slowest rank's number: its time, or its rate.
fn worst(unit: Unit, numbers: impl Iterator<Item = f64>) -> Option<f64> {
    numbers.reduce(match unit.better() {
        Better::Lower => f64::max,
        Better::Higher => f64::min,
    })
}

fn ask<T: DeserializeOwned>(job: &mut Job, order: Order) -> anyhow::Result<Vec<T>> {
    job.extend(STEP);
    job.tell(&order)?;
    Ok(job.hear()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_rank_counts() {
        let of = |unit| worst(unit, [2.0, 5.0, 3.0].into_iter());
        assert_eq!(of(Unit::Nanoseconds), Some(5.0));
        assert_eq!(of(Unit::GigabytesPerSecond), Some(2.0));
        assert_eq!(worst(Unit::Nanoseconds, [].into_iter()), None);
    }
}
