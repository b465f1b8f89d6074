//! `residency`: that ranks which share a device can fill it together, and that one block more is refused.
//!
//! Blocks that wait for each other, here at a grid barrier, have to be resident all at once. Several ranks' grids share a
//! device's room without knowing of each other: a grid whose last block waits for another rank's grid to end, which waits for
//! its own last block, would never end. So each rank counts the ranks on its device, and a launch that does not fit with all
//! of them is an error, with both numbers.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use warpwire::Error;
use warpwire::abi::{BarrierHandle, Rank};
use warpwire::bootstrap::from_env;
use warpwire::communicator::Communicator;
use warpwire::device::{
    Buffer, Device, DeviceKind, DeviceSelector, Function, LaunchConfig, Stream, builtin_module,
};
use warpwire::error::LaunchError;
use warpwire_kernels::barrier::{BarrierRounds, BarrierRoundsArgs};

use crate::launch::{Control, Devices, Launch, Placement};

/// How long a wait may last, and the whole of it.
const PATIENCE: Duration = Duration::from_secs(20);
const LIMIT: Duration = Duration::from_secs(120);

/// Fills a device with the grids of several processes, and tries one block more.
#[derive(Args)]
pub struct Residency {
    /// How many processes.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    ranks: u32,
    /// Where: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:N`.
    #[arg(long, default_value = "auto")]
    device: Devices,
}

/// What a rank found.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Found {
    /// Blocks that the device holds at once.
    limit: u32,
    /// Ranks on the device.
    sharing: u32,
    /// Blocks of each rank's grid that passed its barriers beside the others'.
    ran: u32,
    /// What one block more was answered.
    refusal: String,
}

impl Residency {
    /// Runs it; success where every rank ran what fits, and was refused one block more.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let placement = Placement::of(self.device, self.ranks as usize)?;
        let arguments = placement.selectors.iter().map(|selector| {
            ["residency-rank".to_owned(), "--device".to_owned(), selector.to_string()]
                .map(OsString::from)
                .into()
        });
        let launch = Launch::this_program(arguments.collect())?.limit(LIMIT);
        let mut job = launch.placed(&placement)?.start()?;
        let found: Vec<Found> = job.hear()?;
        job.finish()?;
        for (rank, Found { limit, sharing, ran, refusal }) in found.iter().enumerate() {
            println!(
                "rank {rank}: {ran} blocks ran, where {limit} fit and {sharing} ranks share them; refused: {refusal}"
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What [`Residency`] starts for each rank.
#[derive(Args)]
pub struct ResidencyRank {
    #[arg(long)]
    device: DeviceSelector,
}

impl ResidencyRank {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut control = Control::attach()?;
        let device = Device::open(self.device)?;
        let communicator = Communicator::new(Arc::new(from_env()?), &device)?;
        let stream = communicator.context().stream()?;
        let function: Function<BarrierRounds> = device.load(builtin_module())?.function()?;
        // The CPU device takes its time for a thousand threads.
        let (threads, rounds) = match device.properties().kind {
            DeviceKind::Cuda => (1024, 20_000),
            DeviceKind::Cpu => (512, 10),
        };
        let (limit, sharing) = (function.resident_blocks(threads, 0)?, communicator.ranks_on_device());
        let ran = limit / sharing;
        ensure!(ran > 0, "{sharing} ranks share a device that holds {limit} blocks at once");
        let grid = Grid::new(&device, ran + 1, rounds)?;
        let config = |blocks| communicator.concurrent(LaunchConfig::new(blocks, threads));

        communicator.barrier()?;
        grid.run(communicator.rank(), &stream, &function, config(ran))?;
        let refusal = match grid.run(communicator.rank(), &stream, &function, config(ran + 1)) {
            Err(error) => error,
            Ok(()) => bail!("{} blocks on each of {sharing} ranks were launched, where {limit} fit", ran + 1),
        };
        let refused = refusal.downcast_ref::<Error>();
        ensure!(
            matches!(refused, Some(Error::Launch(LaunchError::TooManyBlocks { asked, limit: of, .. }))
                if *asked == u64::from(ran + 1) * u64::from(sharing) && *of == limit),
            "one block more failed otherwise: {refusal:#}"
        );
        control.tell(&Found { limit, sharing, ran, refusal: refusal.to_string() })?;
        // Nobody leaves while another still waits for it.
        communicator.barrier()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What a grid of blocks that wait for each other works on.
struct Grid {
    word: Buffer<u32>,
    progress: Buffer<u32>,
    rounds: u32,
}

impl Grid {
    fn new(device: &Device, blocks: u32, rounds: u32) -> anyhow::Result<Self> {
        Ok(Self { word: device.allocate(1)?, progress: device.allocate(blocks as usize)?, rounds })
    }

    /// Runs the grid to its end, and sees that every block passed every barrier.
    fn run(
        &self,
        rank: Rank,
        stream: &Stream,
        function: &Function<BarrierRounds>,
        config: LaunchConfig,
    ) -> anyhow::Result<()> {
        self.progress.fill_bytes(0)?;
        let late: Buffer<u32> = function.device().allocate(self.progress.len())?;
        let args = BarrierRoundsArgs {
            barrier: BarrierHandle { word: self.word.address() },
            policy: stream.policy(rank, PATIENCE),
            progress: self.progress.address(),
            late: late.address(),
            rounds: self.rounds,
            reserved: 0,
        };
        // SAFETY: the words are live until the launch has ended, which is waited for, and this grid's alone.
        unsafe { stream.launch(function, config, args) }?;
        stream.synchronize().context("the grids do not run together")?;
        let (passed, late) = (self.progress.read()?, late.read()?);
        let blocks = config.blocks as usize;
        ensure!(
            passed[..blocks].iter().all(|&round| round == self.rounds),
            "not every block passed every barrier"
        );
        ensure!(late.iter().all(|&late| late == 0), "blocks passed a barrier before others had come");
        Ok(())
    }
}
