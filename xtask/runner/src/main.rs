//! The program that runs on the device: the demo and the benchmark. It needs no compiler, so it can be carried to a machine
//! with a GPU and run there by itself.

mod bench;
mod demo;
mod group;
mod launch;
mod launch_command;
mod queues;
mod residency;
mod size;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use warpwire::device::{Device, DeviceKind, DeviceSelector};

/// Runs warpwire's kernels on a GPU or on the CPU device.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a collective and compares every element with a reference.
    Demo(demo::Demo),
    /// Measures the primitives.
    Bench(bench::Options),
    /// Starts a program as the ranks of a job on this machine.
    Launch(launch_command::LaunchCommand),
    /// Fills a device with the grids of several processes, and sees that one block more is refused.
    Residency(residency::Residency),
    /// What the benchmark runs to time a process' first launch.
    #[command(hide = true)]
    FirstLaunch(bench::FirstLaunch),
    /// What `residency` starts for each rank.
    #[command(hide = true)]
    ResidencyRank(residency::ResidencyRank),
    /// What the demo starts for each rank, where ranks are processes.
    #[command(hide = true)]
    DemoRank(demo::DemoRank),
    /// What the benchmark starts for each rank of its measurements between processes.
    #[command(hide = true)]
    BenchRank(bench::BenchRank),
}

fn main() -> ExitCode {
    // SAFETY: the first thing that the program does: there is no other thread.
    unsafe { queues::allow_many() };
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let outcome = match Cli::parse().command {
        Command::Demo(demo) => demo.run(),
        Command::Bench(bench) => bench.run(),
        Command::FirstLaunch(child) => child.run(),
        Command::Launch(launch) => launch.run(),
        Command::Residency(residency) => residency.run(),
        Command::ResidencyRank(rank) => rank.run(),
        Command::DemoRank(rank) => rank.run(),
        Command::BenchRank(rank) => rank.run(),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Opens the device and says on the error stream which it is.
fn open(selector: DeviceSelector) -> anyhow::Result<Device> {
    let device = Device::open(selector)?;
    let properties = device.properties();
    let capability = match (properties.kind, properties.compute_capability) {
        (DeviceKind::Cuda, Some((major, minor))) => format!(", sm_{major}{minor}"),
        _ => String::new(),
    };
    eprintln!("device: {}{capability}, {} multiprocessors", properties.name, properties.multiprocessors);
    Ok(device)
}
