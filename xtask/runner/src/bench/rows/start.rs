//! `start`: from the start of a process to the end of its first launch, and how much PTX it carries.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use warpwire::abi::{ChannelId, Global, Rank};
use warpwire::channel::{ChannelBuffers, MemoryChannel};
use warpwire::device::{Device, DeviceSelector, Function, LaunchConfig, builtin_module};
use warpwire::kernel::Kernel;
use warpwire_build::ptx::Module;
use warpwire_kernels::transfer::{Put, TransferArgs};

use crate::bench::case::{Case, Contestant, Row, Unit, Who};
use crate::bench::kernels::{self, Baseline};
use crate::bench::setup::Bench;

/// The row.
pub const ROW: Row = Row {
    name: "start",
    about: "from the start of a process to the end of its first launch, the driver's compilation of the PTX included",
    cases,
};

/// What the child says when its launch has ended.
const LAUNCHED: &str = "launched";
/// Makes the driver compile the PTX each time.
const NO_CACHE: &str = "CUDA_CACHE_DISABLE";

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let case = |configuration, cached| {
        Case::new("first launch", configuration, Unit::Milliseconds, move |bench| Ok(launches(bench, cached)))
    };
    if !bench.is_gpu() {
        return Ok(vec![case("CPU device", true)]);
    }
    let size = |configuration, of: fn(&str) -> bool| {
        Case::new("PTX", configuration, Unit::Kilobytes, move |bench| Ok(sizes(bench, of)))
    };
    Ok(vec![
        case("PTX compiled", false),
        case("PTX in the driver's cache", true),
        size("of that launch: ours a put's part, C++ all", has_put),
        size("of all kernels", |_| true),
    ])
}

fn launches(bench: &Bench, cached: bool) -> Vec<Contestant<'_>> {
    let mut contestants = vec![Contestant::new(Who::Ours, move || milliseconds(bench, None, cached))];
    if let Some(path) = &bench.baseline_file {
        contestants.push(Contestant::new(Who::Baseline, move || milliseconds(bench, Some(path), cached)));
    }
    contestants
}

/// Runs [`FirstLaunch`] in a process of its own, until it says that its launch has ended.
fn milliseconds(bench: &Bench, baseline: Option<&PathBuf>, cached: bool) -> anyhow::Result<f64> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let mut command = Command::new(program);
    command.args(["first-launch", "--device", &bench.selector().to_string()]);
    command.args(baseline.iter().flat_map(|path| [OsString::from("--baseline"), path.into()]));
    if cached {
        command.env_remove(NO_CACHE);
    } else {
        command.env(NO_CACHE, "1");
    }
    let begin = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut said)?;
    }
    let time = begin.elapsed();
    let status = child.wait()?;
    ensure!(
        said.trim() == LAUNCHED && status.success(),
        "the process that was to launch a kernel ended with {status}"
    );
    Ok(time.as_secs_f64() * 1e3)
}

/// Whether the kernel that [`FirstLaunch`] launches is in this part of our module.
fn has_put(text: &str) -> bool {
    Module::parse(text).is_ok_and(|module| module.entry(Put::NAME).is_some())
}

/// How much PTX there is for this GPU: of ours the parts that `of` names, of the baseline its one file.
fn sizes(bench: &Bench, of: fn(&str) -> bool) -> Vec<Contestant<'_>> {
    let (major, minor) = bench.device.properties().compute_capability.unwrap_or_default();
    let texts = builtin_module().ptx;
    let fitting = texts.iter().map(|(architecture, _)| *architecture).filter(|it| *it <= 10 * major + minor);
    let ours = fitting.max().map(|newest| {
        let parts = texts.iter().filter(|(architecture, text)| *architecture == newest && of(text));
        parts.map(|(_, text)| text.len() as u64).sum()
    });
    let baseline = bench.baseline_file.as_ref().and_then(|path| Some(path.metadata().ok()?.len()));
    let sizes = [(Who::Ours, ours), (Who::Baseline, baseline)];
    let known = sizes.into_iter().filter_map(|(who, bytes)| Some((who, bytes? as f64 / 1e3)));
    known.map(|(who, kilobytes)| Contestant::new(who, move || Ok(kilobytes))).collect()
}

/// The child of the row `start`: opens the device, loads the kernels, launches one, and says so.
#[derive(Args)]
pub struct FirstLaunch {
    #[arg(long)]
    device: DeviceSelector,
    /// The baseline's kernel instead.
    #[arg(long)]
    baseline: Option<PathBuf>,
}

impl FirstLaunch {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let device = Device::open(self.device)?;
        match &self.baseline {
            None => launch(&device, &device.load(builtin_module())?.function::<Put>()?)?,
            Some(path) => {
                let module = kernels::load(&device, "baseline", path)?
                    .context("the device cannot run the baseline")?;
                launch(&device, &module.function::<Baseline<Put>>()?)?;
            }
        }
        println!("{LAUNCHED}");
        Ok(ExitCode::SUCCESS)
    }
}

/// One put of a few bytes.
fn launch<K: Kernel<Args = TransferArgs>>(device: &Device, function: &Function<K>) -> anyhow::Result<()> {
    let sent = *b"the first launch";
    let stream = device.stream()?;
    let (local, remote) = (device.allocate(sent.len())?, device.allocate(sent.len())?);
    let [channel, _] = MemoryChannel::between((device, Rank(0)), (device, Rank(1)), ChannelId(0))?;
    let buffers = ChannelBuffers { local: local.address(), remote: remote.address(), packets: Global::NULL };
    let args = TransferArgs {
        channel: channel.handle(buffers),
        policy: stream.policy(Rank(0), Duration::from_secs(10)),
        remote_offset: 0,
        local_offset: 0,
        bytes: sent.len() as u64,
        signal_or_flag: 0,
        reserved: 0,
    };
    local.write(&sent)?;
    // SAFETY: both buffers and the channel outlive the launch, which is waited for.
    unsafe { stream.launch(function, LaunchConfig::new(1, 32), args) }?;
    stream.synchronize()?;
    ensure!(remote.read()? == sent, "the first launch did not copy what it should");
    Ok(())
}
