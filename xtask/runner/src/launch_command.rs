//! `launch`: any program as the ranks of a job on this machine.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use warpwire::device::DeviceSelector;

use crate::launch::{Devices, Launch, Placement};

/// Starts a program as the ranks of a job on this machine, which meet by `warpwire::bootstrap::from_env`, and ends all of them
/// when one fails.
#[derive(Args)]
pub struct LaunchCommand {
    /// How many ranks.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    ranks: u32,
    /// How long all of it may take, in seconds.
    #[arg(long, default_value_t = 86_400.0)]
    limit: f64,
    /// The program and its arguments. Which device a rank takes is the program's own to say.
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

impl LaunchCommand {
    /// Runs it; success where every rank ends well.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let limit = Duration::try_from_secs_f64(self.limit).context("--limit")?;
        ensure!(limit <= Duration::from_secs(366 * 86_400), "--limit: more than a year");
        let (program, arguments) = self.program.split_first().context("no program is named")?;
        let ranks = self.ranks as usize;
        // More ranks than GPUs: those that are on GPUs share them.
        let mut placement = Placement::of("auto".parse::<Devices>()?, ranks)?;
        // The program may take the same GPU in every rank.
        placement.shares = ranks > 1 && !placement.selectors.contains(&DeviceSelector::Cpu);
        let launch = Launch::new(program, vec![arguments.to_vec(); ranks]).limit(limit);
        launch.placed(&placement)?.forward_output().start()?.finish()?;
        Ok(ExitCode::SUCCESS)
    }
}
