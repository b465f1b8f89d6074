//! The project's commands. `cargo xtask help` lists them; each is one module here.

mod bench;
mod build_hip;
mod build_ptx;
mod cuda_link;
mod doctor;
mod executables;
mod gpu_bundle;
mod layers;
mod packages;
mod rdma;
mod runner;
mod sass;
mod spinner;
mod test;
mod verbs_build;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "warpwire's commands")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the kernels to PTX, with a line for each architecture and kernel
    BuildPtx(build_ptx::Args),
    /// Compile the gfx942 sibling of the fp8 conversions with hipcc
    BuildHip(build_hip::Args),
    /// Run the collectives on the CPU device or on GPUs, and check every element
    Demo(runner::Args),
    /// Start a program as the ranks of a job on this machine: launch --ranks 4 -- PROGRAM
    Launch(runner::Args),
    /// Measure the primitives, beside a C++ baseline
    Bench(bench::Args),
    /// Count the kernels' machine code, beside the C++ baseline, and compare with what is recorded
    Sass(sass::Args),
    /// Gather what a machine with a GPU, and no compiler, needs to run every check on it
    GpuBundle(gpu_bundle::Args),
    /// Say what this machine has and lacks, and how to get it
    Doctor,
    /// Run everything that has to pass
    Test(test::Args),
    /// Run the InfiniBand tests in virtual machines with a software adapter
    TestRdma(rdma::Args),
    /// What continuous integration runs: test --install
    Ci,
    /// Check that imports go one way
    Layers,
    /// Make the feature `cuda` link without CUDA's toolkit and driver
    CudaLink(cuda_link::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::BuildPtx(args) => build_ptx::run(&args),
        Command::BuildHip(args) => build_hip::run(&args),
        Command::Demo(args) => runner::run("demo", &args),
        Command::Launch(args) => runner::run("launch", &args),
        Command::Bench(args) => bench::run(args),
        Command::Sass(args) => sass::run(&args),
        Command::GpuBundle(args) => gpu_bundle::run(&args),
        Command::Doctor => doctor::run(),
        Command::Test(args) => test::run(&args),
        Command::TestRdma(args) => rdma::run(&args),
        Command::Ci => test::run(&test::Args::ci()),
        Command::Layers => layers::run(),
        Command::CudaLink(args) => cuda_link::run(&args),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
