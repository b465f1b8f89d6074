//! `demo`: a collective on real input, every element compared with a reference.

mod all_reduce;
mod processes;
mod rank;
mod table;
mod timing;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use warpwire::abi::MAX_RANKS;

use crate::launch::Devices;
use crate::size::Size;
use all_reduce::Threads;
use processes::Processes;
use table::Row;

pub use rank::DemoRank;

/// The sizes where none are given, the odd ones among them: one element, tails, a page and a bit.
const DEFAULT_SIZES: [usize; 11] =
    [4, 12, 1000, 1 << 10, 4 << 10, (4 << 10) + 4, 16 << 10, 64 << 10, 100_004, 256 << 10, 1 << 20];

/// What to run.
#[derive(Clone, Copy, ValueEnum)]
enum Collective {
    /// The sum over all ranks.
    Allreduce,
}

/// Runs a collective among ranks of one process, or of as many processes.
#[derive(Args)]
pub struct Demo {
    /// The collective.
    #[arg(value_enum, default_value = "allreduce")]
    collective: Collective,
    /// How many ranks.
    #[arg(long, default_value_t = 4)]
    ranks: usize,
    /// Each rank in a process of its own; they share memory.
    #[arg(long)]
    processes: bool,
    /// Where: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:N`. Processes take the GPUs by turns, unless one is
    /// named.
    #[arg(long, default_value = "auto")]
    device: Devices,
    /// Message sizes in bytes, comma-separated: `4,1K,1MiB`.
    #[arg(long, value_delimiter = ',')]
    size: Vec<Size>,
    /// How long a wait for a peer may last, in seconds.
    #[arg(long, default_value_t = 20.0)]
    timeout: f64,
    /// How long processes may take for all of it, in seconds.
    #[arg(long, default_value_t = 300.0)]
    limit: f64,
    /// Prints one JSON object a row instead of the table.
    #[arg(long)]
    json: bool,
}

impl Demo {
    /// Runs it; success where every row is right.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let sizes = if self.size.is_empty() { DEFAULT_SIZES.map(Size).to_vec() } else { self.size };
        for size in &sizes {
            if size.0 == 0 || !size.0.is_multiple_of(size_of::<f32>()) {
                bail!(
                    "a message of {size} is not a whole number of f32 elements: give a multiple of 4 bytes above 0"
                );
            }
        }
        let timeout = duration("--timeout", self.timeout)?;
        let limit = duration("--limit", self.limit)?;
        let Collective::Allreduce = self.collective;
        let mut ranks = if self.processes {
            ensure!((2..=MAX_RANKS).contains(&self.ranks), "--ranks: an all-reduce has 2 to {MAX_RANKS}");
            Ranks::Processes(Processes::start(self.device, self.ranks, &sizes, timeout, limit)?)
        } else {
            let device = crate::open(self.device.selector)?;
            Ranks::Threads(Threads::new(&device, self.ranks, &sizes, timeout)?)
        };

        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?;
        let bar = ProgressBar::new(sizes.len() as u64).with_style(style);
        let mut rows = Vec::new();
        for &size in &sizes {
            bar.set_message(size.to_string());
            let row = ranks.row(size);
            let row = row.with_context(|| format!("all-reduce of {size} among {} ranks", self.ranks))?;
            if self.json {
                println!("{}", serde_json::to_string(&row)?);
            }
            rows.push(row);
            bar.inc(1);
        }
        bar.finish_and_clear();
        ranks.finish()?;
        if !self.json {
            table::print(&rows);
        }
        let wrong = rows.iter().filter(|row| !row.right).count();
        if wrong > 0 {
            eprintln!("{wrong} of {} rows are wrong", rows.len());
        }
        Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The ranks of a demo.
enum Ranks {
    Threads(Threads),
    Processes(Processes),
}

impl Ranks {
    fn row(&mut self, size: Size) -> anyhow::Result<Row> {
        match self {
            Self::Threads(threads) => threads.row(size),
            Self::Processes(processes) => processes.row(size),
        }
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Threads(_) => Ok(()),
            Self::Processes(processes) => processes.finish(),
        }
    }
}

/// A time that an argument gives in seconds.
fn duration(argument: &'static str, seconds: f64) -> anyhow::Result<Duration> {
    let time = Duration::try_from_secs_f64(seconds).context(argument)?;
    ensure!(!time.is_zero(), "{argument}: 0 seconds would always be too few");
    Ok(time)
}
