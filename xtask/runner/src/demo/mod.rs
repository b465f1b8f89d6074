//! `demo`: a collective on real input, every element compared with a reference.

mod all_reduce;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use warpwire::device::DeviceSelector;

use crate::size::Size;

/// The sizes where none are given, the odd ones among them: one element, tails, a page and a bit.
const DEFAULT_SIZES: [usize; 11] =
    [4, 12, 1000, 1 << 10, 4 << 10, (4 << 10) + 4, 16 << 10, 64 << 10, 100_004, 256 << 10, 1 << 20];

/// What to run.
#[derive(Clone, Copy, ValueEnum)]
enum Collective {
    /// The sum over all ranks.
    Allreduce,
}

/// Runs a collective among ranks of one process.
#[derive(Args)]
pub struct Demo {
    /// The collective.
    #[arg(value_enum, default_value = "allreduce")]
    collective: Collective,
    /// How many ranks.
    #[arg(long, default_value_t = 4)]
    ranks: usize,
    /// Where: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:N`.
    #[arg(long, default_value = "auto")]
    device: DeviceSelector,
    /// Message sizes in bytes, comma-separated: `4,1K,1MiB`.
    #[arg(long, value_delimiter = ',')]
    size: Vec<Size>,
    /// How long a wait for a peer may last, in seconds.
    #[arg(long, default_value_t = 20.0)]
    timeout: f64,
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
        let timeout = Duration::try_from_secs_f64(self.timeout).context("--timeout")?;
        ensure!(!timeout.is_zero(), "--timeout: a wait of 0 seconds would always fail");
        let device = crate::open(self.device)?;
        let Collective::Allreduce = self.collective;
        let mut bench = all_reduce::Bench::new(&device, self.ranks, &sizes, timeout)?;

        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?;
        let bar = ProgressBar::new(sizes.len() as u64).with_style(style);
        let mut rows = Vec::new();
        for &size in &sizes {
            bar.set_message(size.to_string());
            rows.push(
                bench
                    .row(size)
                    .with_context(|| format!("all-reduce of {size} among {} ranks", self.ranks))?,
            );
            bar.inc(1);
        }
        bar.finish_and_clear();

        if self.json {
            for row in &rows {
                println!("{}", serde_json::to_string(row)?);
            }
        } else {
            table::print(&rows);
        }
        let wrong = rows.iter().filter(|row| !row.right).count();
        if wrong > 0 {
            eprintln!("{wrong} of {} rows are wrong", rows.len());
        }
        Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
