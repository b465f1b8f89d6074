//! `cargo xtask bench`: the runner's benchmark, beside the C++ baseline, which is compiled here where there is an nvcc.

mod nvcc;

pub use nvcc::{Nvcc, baseline};

use crate::runner;
use crate::spinner::Spinner;
use crate::workspace;
use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The architecture that the baseline is compiled for: its bulk copies need it, and newer GPUs run it too.
const ARCH: &str = "sm_90";

/// The runner's `bench`, with its arguments as they were typed.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Passed on to the runner; --install brings what is missing, --peer-include DIR compiles MSCCL++'s device headers in
    /// DIR (its include folder) as a second comparison
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    forwarded: Vec<OsString>,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let (peer, mut forwarded) = take_value(args.forwarded, "--peer-include");
    let has = |flag: &str| forwarded.iter().any(|arg| is_flag(arg, flag));
    let needs_baseline = !has("--baseline") && !has("--help") && !has("-h") && !is_for_the_cpu(&forwarded);
    if needs_baseline || peer.is_some() {
        let spinner = Spinner::new();
        let nvcc = Nvcc::provide(has("--install"), &spinner);
        spinner.clear();
        let mut more = Vec::new();
        match nvcc? {
            Some(nvcc) => {
                if needs_baseline {
                    more.extend(compiled(&nvcc, "--baseline", &baseline("kernels.cu"), &[]));
                }
                if let Some(include) = peer {
                    let source = workspace::root().join("xtask/bench/peer/kernels.cu");
                    more.extend(compiled(&nvcc, "--peer", &source, &[include.into(), baseline("")]));
                }
            }
            None => eprintln!("  no C++ baseline: there is no nvcc; --install brings one from PyPI"),
        }
        forwarded.extend(more);
    }
    runner::run("bench", &runner::Args::new(forwarded))
}

/// Compiles a file of kernels and gives the runner's argument for it; without it, says why and goes on.
fn compiled(nvcc: &Nvcc, argument: &str, source: &Path, includes: &[PathBuf]) -> Vec<OsString> {
    let name = argument.trim_start_matches('-');
    let to = workspace::root().join("target/bench").join(name).with_extension("ptx");
    let tool = &nvcc.tool;
    match nvcc.compile(source, ARCH, includes, &to).with_context(|| format!("no {name}")) {
        Ok(()) => {
            eprintln!(
                "  {}: compiled by {} (from {})",
                workspace::shown(&to),
                tool.path.display(),
                tool.origin
            );
            vec![argument.into(), to.into()]
        }
        Err(error) => {
            eprintln!("  {error:#}");
            Vec::new()
        }
    }
}

/// Whether the arguments ask for the CPU device, which runs no C++.
fn is_for_the_cpu(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--device=cpu")
        || args.windows(2).any(|pair| pair[0] == "--device" && pair[1] == "cpu")
}

/// Whether `arg` is `flag` or `flag=VALUE`.
fn is_flag(arg: &OsStr, flag: &str) -> bool {
    let arg = arg.to_string_lossy();
    arg.split_once('=').map_or(&*arg, |(name, _)| name) == flag
}

/// Takes `flag VALUE` or `flag=VALUE` out of the arguments.
fn take_value(args: Vec<OsString>, flag: &str) -> (Option<OsString>, Vec<OsString>) {
    let (mut value, mut rest, mut args) = (None, Vec::new(), args.into_iter());
    while let Some(arg) = args.next() {
        if !is_flag(&arg, flag) {
            rest.push(arg);
        } else if arg == flag {
            value = args.next();
        } else {
            value = arg.to_string_lossy().split_once('=').map(|(_, value)| value.into());
        }
    }
    (value, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_peers_headers_are_taken_and_the_rest_forwarded() {
        for words in [&["put", "--peer-include", "/p", "--json"][..], &["put", "--peer-include=/p", "--json"]]
        {
            assert_eq!(
                take_value(args(words), "--peer-include"),
                (Some("/p".into()), args(&["put", "--json"]))
            );
        }
        assert_eq!(take_value(args(&["put"]), "--peer-include"), (None, args(&["put"])));
    }

    #[test]
    fn the_cpu_device_needs_no_baseline() {
        assert!(
            is_for_the_cpu(&args(&["put", "--device", "cpu"])) && is_for_the_cpu(&args(&["--device=cpu"]))
        );
        assert!(!is_for_the_cpu(&args(&["--device", "cuda:0", "cpu"])) && !is_for_the_cpu(&args(&[])));
        assert!(
            is_flag(OsStr::new("--baseline=x"), "--baseline")
                && !is_flag(OsStr::new("--baselines"), "--baseline")
        );
    }
}
