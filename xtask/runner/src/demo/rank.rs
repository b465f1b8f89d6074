//! A rank of the demo, in a process of its own.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use warpwire::device::{Device, DeviceSelector};

use super::processes::RankRow;
use super::timing;
use crate::group::{Contribute, Participant};
use crate::launch::Control;
use crate::size::Size;

/// What the demo starts for each rank.
#[derive(Args)]
pub struct DemoRank {
    #[arg(long)]
    device: DeviceSelector,
    #[arg(long, value_delimiter = ',')]
    size: Vec<Size>,
    #[arg(long)]
    timeout: f64,
}

/// Rounds by warpwire's kernel.
const CONTRIBUTE: &Contribute<'static> = &|participant, operands| {
    // SAFETY: the operands are the participant's own buffers, which live as long as it does, and it synchronizes before it
    // looks at them.
    unsafe { participant.contribute(operands) }.map_err(Into::into)
};

impl DemoRank {
    /// Reduces every size, and tells the launcher of each.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut control = Control::attach()?;
        let timeout = Duration::try_from_secs_f64(self.timeout).context("--timeout")?;
        let device = Device::open(self.device)?;
        let elements = |size: &Size| size.0 / size_of::<f32>();
        let largest = self.size.iter().map(elements).max().unwrap_or(1);
        let participant = Participant::join(&device, largest, timeout)?;
        for size in &self.size {
            let count = elements(size);
            let row = || -> anyhow::Result<RankRow> {
                let (checked, digest) = participant.check(count, CONTRIBUTE)?;
                let graph = participant.record(count, timing::rounds(&device), CONTRIBUTE)?;
                let time = timing::median(&device, || participant.play(&graph))?;
                Ok(RankRow {
                    bytes: size.0,
                    device: device.properties().name.clone(),
                    microseconds: time.as_secs_f64() * 1e6,
                    largest_error: checked.largest_error,
                    right: checked.right,
                    digest,
                })
            };
            control.tell(&row().with_context(|| format!("all-reduce of {size}"))?)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
