//! `cargo xtask gpu-bundle`: what a machine with a GPU and no compiler needs to run every check on it, in one folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::bench::{Nvcc, baseline};
use crate::spinner::Spinner;
use crate::verbs_build::Environment;
use crate::{cuda_link, executables, workspace};
use warpwire_build::{Arch, Builder};

/// Where the bundle goes, and what may be installed for it.
#[derive(clap::Args)]
pub struct Args {
    /// The folder to write
    #[arg(long, default_value = "target/gpu-bundle")]
    out: PathBuf,
    /// Bring what is missing
    #[arg(long)]
    install: bool,
}

/// The tests that run on a GPU: packages and their test targets.
const TESTS: [(&str, &str); 3] =
    [("warpwire-tests", "gpu"), ("warpwire", "gpu_memory"), ("warpwire", "gpu_communicator")];

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    println!("{}", cuda_link::provide(args.install)?);
    fs::create_dir_all(&args.out).with_context(|| format!("cannot make {}", args.out.display()))?;
    let programs = ["warpwire-runner", "halo", "ping", "peer_access_check"].map(|name| ["--bin", name]);
    let packages = ["warpwire-runner", "halo", "ping", "warpwire"].map(|name| ["--package", name]);
    let (programs, packages) = (programs.as_flattened(), packages.as_flattened());
    let features = ["--features", "warpwire-runner/cuda,halo/cuda,ping/cuda,warpwire/cuda"];
    for program in executables(&[&["build"], packages, programs, &features].concat())? {
        let name = program.file_name().context("a program without a name")?.to_owned();
        add(&program, &args.out.join(name))?;
    }
    for (package, test) in TESTS {
        let feature = format!("{package}/cuda");
        let built =
            executables(&["test", "--no-run", "--package", package, "--test", test, "--features", &feature])?;
        let [program] = &built[..] else { bail!("cargo built {} programs of the test {test}", built.len()) };
        add(program, &args.out.join(format!("test-{test}")))?;
    }
    let checks = Builder::new(workspace::root().join("tests/kernels"))
        .architectures([Arch::SM_90])
        .out_dir(workspace::root().join("target/check-ptx"))
        .install(args.install)
        .build()?;
    for (_, ptx) in checks.files() {
        fs::copy(&ptx, args.out.join("check.ptx"))
            .with_context(|| format!("cannot copy {}", ptx.display()))?;
    }
    let spinner = Spinner::new();
    let nvcc = Nvcc::provide(args.install, &spinner);
    spinner.clear();
    match nvcc? {
        Some(nvcc) => nvcc.compile(&baseline("kernels.cu"), "sm_90", &[], &args.out.join("baseline.ptx"))?,
        None => println!("no C++ baseline: there is no nvcc; --install brings one from PyPI"),
    }
    let script = args.out.join("gpu");
    fs::copy(workspace::root().join(".ci/gpu"), &script).context("cannot copy .ci/gpu")?;
    println!("{}: copy the folder to a machine with a GPU, and run it there", workspace::shown(&script));
    Ok(ExitCode::SUCCESS)
}

/// Builds with cargo in release, and gives the programs that came of it.
fn executables(arguments: &[&str]) -> Result<Vec<PathBuf>> {
    executables::of(&[arguments, &["--release"]].concat(), &Environment::default())
}

/// Copies a program without its symbols, which would be most of it.
fn add(program: &Path, to: &Path) -> Result<()> {
    fs::copy(program, to)
        .with_context(|| format!("cannot copy {} to {}", program.display(), to.display()))?;
    // Without `strip` the bundle is only larger.
    let _ = Command::new("strip").arg(to).status();
    println!("{}", workspace::shown(to));
    Ok(())
}
