//! `bench`: how fast the primitives are, beside a hand-written C++ baseline in the same process.
//!
//! `case` is what a row consists of and `rows` are the rows; `setup`, `kernels`, `memory`, `timing`, `rounds` and `transfer`
//! are what they are made with; `processes` has the measurements between processes. `harness` runs a case, `record` keeps what came of it, `table`, `compare` and `plot` show it.

mod case;
mod compare;
mod harness;
mod kernels;
mod memory;
mod plot;
mod processes;
mod record;
mod rounds;
mod rows;
mod setup;
mod statistics;
mod table;
mod timing;
mod transfer;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use warpwire::device::{Device, DeviceKind, DeviceSelector};
use warpwire::memory::PeerAccess;

use case::Row;
use record::Record;
use setup::{Bench, Files};

pub use processes::BenchRank;
pub use rows::FirstLaunch;

/// The name of all rows between devices.
const MULTI: &str = "multi";

/// Measures the primitives, beside a baseline where one is given.
#[derive(Args)]
pub struct Options {
    /// The rows to run; all rows on one device where none is named. `multi` is all rows between devices.
    rows: Vec<String>,
    /// Where: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:N`.
    #[arg(long, default_value = "auto")]
    device: DeviceSelector,
    /// The baseline's kernels: the PTX that nvcc made of xtask/bench/baseline.
    #[arg(long, value_name = "PTX")]
    baseline: Option<PathBuf>,
    /// Another library's kernels, as a second comparison.
    #[arg(long, value_name = "PTX")]
    peer: Option<PathBuf>,
    /// Stores the run, every repetition of it.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draws latency and bandwidth against size, as SVG and as PNG.
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// A stored run to compare with.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// How many devices the rows between devices take; every GPU where nothing is said.
    #[arg(long, value_name = "N")]
    gpus: Option<usize>,
    /// NCCL's library, to be measured beside ours between GPUs.
    #[arg(long, value_name = "LIBRARY", default_value = "libnccl.so.2")]
    nccl: PathBuf,
    /// How often each case is measured.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(9..=1000))]
    repetitions: u32,
}

impl Options {
    /// Runs it; success where every case could be measured and computed the right values.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let rows = chosen(&self.rows)?;
        let old = self.compare.as_deref().map(Record::read).transpose()?;
        let device = crate::open(self.device)?;
        let mut record = Record::new(&device, self.repetitions);
        let mut bench = self.bench(device)?;
        bench.asked_devices = self.gpus;
        bench.nccl.clone_from(&self.nccl);
        let machine = &record.machine;
        let driver = machine.driver.as_ref().map(|version| format!(", driver {version}")).unwrap_or_default();
        println!("warpwire {} on {}{driver}, {}", machine.version, machine.device, machine.date);
        println!(
            "medians of {} repetitions; time / X is ours over theirs: below 1 is ahead",
            self.repetitions
        );

        if bench.is_gpu() && rows.iter().any(|row| is_multi(row)) {
            println!("which GPUs reach each other's memory:\n{}", PeerAccess::check()?);
        }
        let mut plan = Vec::new();
        for row in rows {
            let cases = (row.cases)(&bench).with_context(|| format!("preparing the row {}", row.name))?;
            plan.push((row, cases));
        }
        let all = plan.iter().map(|(_, cases)| cases.len() as u64).sum();
        let bar = ProgressBar::new(all)
            .with_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} [{elapsed}]")?);
        for (row, cases) in plan {
            let first = record.cases.len();
            for case in cases {
                bar.set_message(format!("{}: {}, {}", row.name, case.name, case.configuration));
                record.cases.push(harness::run(&bench, row.name, case, self.repetitions));
                bar.inc(1);
            }
            bar.suspend(|| print!("\n{}", table::of(row, &record.cases[first..])));
        }
        bar.finish_and_clear();

        if let Some(old) = &old {
            print!("\n{}", compare::of(old, &record));
        }
        if let Some(path) = &self.json {
            record.write(path)?;
        }
        if let Some(folder) = &self.plot {
            for path in plot::write(&record, folder)? {
                println!("{}", path.display());
            }
        }
        let failed = record.cases.iter().filter(|case| case.failure.is_some()).count();
        if failed > 0 {
            eprintln!("{failed} of {} cases failed", record.cases.len());
        }
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Loads what is measured; without the others' kernels, says why their columns are missing.
    fn bench(&self, device: Device) -> anyhow::Result<Bench> {
        let given = Files { baseline: self.baseline.clone(), peer: self.peer.clone() };
        let files = match device.properties().kind {
            DeviceKind::Cuda => given,
            DeviceKind::Cpu => Files::default(),
        };
        if device.properties().kind == DeviceKind::Cpu {
            println!("no C++ columns: C++ kernels run on a GPU only");
        } else if files.baseline.is_none() {
            println!("no C++ columns: --baseline names no file");
        }
        Bench::new(device, self.device, files)
    }
}

/// The rows of these names, in the order in which they are listed: those on one device where none is named.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Row>> {
    let all = || rows::ALL.iter().chain(rows::MULTI);
    let names_it = |name: &String, row: &Row| name == row.name || (name == MULTI && is_multi(row));
    if let Some(unknown) = names.iter().find(|name| !all().any(|row| names_it(name, row))) {
        let known: Vec<&str> = all().map(|row| row.name).chain([MULTI]).collect();
        bail!("there is no row `{unknown}`; there are {}", known.join(", "));
    }
    let wanted = |row: &&Row| {
        if names.is_empty() { !is_multi(row) } else { names.iter().any(|name| names_it(name, row)) }
    };
    Ok(all().filter(wanted).collect())
}

/// Whether it is a row between devices.
fn is_multi(row: &Row) -> bool {
    rows::MULTI.iter().any(|multi| multi.name == row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_name() {
        assert_eq!(chosen(&[]).unwrap().len(), rows::ALL.len());
        let names: Vec<&str> =
            chosen(&["put".into(), "hop".into()]).unwrap().iter().map(|row| row.name).collect();
        assert_eq!(names, ["hop", "put"]);
        assert_eq!(chosen(&["multi".into()]).unwrap().len(), rows::MULTI.len());
        assert_eq!(chosen(&["multi-put".into(), "put".into()]).unwrap().len(), 2);
        assert!(chosen(&["pot".into()]).unwrap_err().to_string().contains("barrier"));
    }
}
