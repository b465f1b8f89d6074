//! The shell around the program that runs kernels (`warpwire-runner`): PTX and linking first, then the program itself.
//!
//! It is a program of its own because it links with CUDA where that is possible, and this one never does.

use crate::build_ptx;
use crate::cuda_link;
use crate::spinner::Spinner;
use crate::workspace;
use anyhow::{Context, Result};
use std::env;
use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::rc::Rc;

/// A command of the runner's, with its arguments as they were typed.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Passed on to the runner; --install is taken here and brings what is missing
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    forwarded: Vec<OsString>,
}

impl Args {
    /// The arguments of another command that runs the runner.
    pub fn new(forwarded: Vec<OsString>) -> Args {
        Args { forwarded }
    }
}

/// Prepares, and runs one of the runner's commands.
pub fn run(command: &str, args: &Args) -> Result<ExitCode> {
    let (install, forwarded) = split(&args.forwarded);
    make_ptx_current(install)?;
    let cuda = match cuda_link::provide(install) {
        Ok(how) => {
            eprintln!("  {how}");
            true
        }
        Err(error) => {
            eprintln!("  built without CUDA, for the CPU device only: {error:#}");
            false
        }
    };
    let mut runner = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    runner.args(["run", "--quiet", "--release", "--package", "warpwire-runner", "--manifest-path"]);
    runner.arg(workspace::root().join("Cargo.toml"));
    if cuda {
        runner.args(["--features", "cuda"]);
    }
    runner.arg("--").arg(command).args(forwarded);
    eprintln!("  building the runner ...");
    let status = runner.status().context("cannot run cargo")?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Takes `--install` out of the arguments, wherever it stands; behind `--` they are another program's.
fn split(args: &[OsString]) -> (bool, Vec<&OsString>) {
    let own = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let forwarded: Vec<_> = args
        .iter()
        .enumerate()
        .filter(|(i, arg)| *i >= own || *arg != "--install")
        .map(|(_, arg)| arg)
        .collect();
    (forwarded.len() < args.len(), forwarded)
}

/// The runner embeds the committed PTX, so that has to be what the kernels' sources give. Files that come from these
/// very sources will do, whichever compiler made them.
fn make_ptx_current(install: bool) -> Result<()> {
    let spinner = Rc::new(Spinner::new());
    let builder = build_ptx::Args::project(install).builder().progress(spinner.clone());
    let current = builder.is_current_by_sources()?;
    if current {
        spinner.clear();
        eprintln!("  {}: current", workspace::shown(&workspace::ptx()));
        return Ok(());
    }
    let built = builder.build();
    spinner.clear();
    built.context("the PTX in ptx/ is older than the kernels' sources, and cannot be built")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn install_is_taken_and_the_rest_forwarded() {
        let args: Vec<OsString> =
            ["allreduce", "--ranks", "3", "--install", "--json"].map(OsString::from).into();
        let (install, forwarded) = split(&args);
        assert!(install);
        assert_eq!(forwarded, ["allreduce", "--ranks", "3", "--json"]);
        assert!(!split(&args[..3]).0);
        let args: Vec<OsString> = ["--ranks", "2", "--", "app", "--install"].map(OsString::from).into();
        assert_eq!(split(&args), (false, args.iter().collect()));
    }
}
