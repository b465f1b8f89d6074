//! `cargo xtask test-rdma`: the InfiniBand tests on real verbs, without InfiniBand hardware.
//!
//! QEMU, without any help of the processor, boots Debian's kernel with soft-RoCE (`rdma_rxe`), which makes a verbs device of
//! a network card. The project's test programs are in the first root file system, with the libraries that they need; the
//! console brings their results out, and a port of QEMU's the verdict. With `--hosts 2` two machines share a network, and each
//! runs one rank of every test.

mod cpio;
mod image;
mod machine;
mod modules;
mod programs;
mod tools;

use crate::spinner::Spinner;
use crate::test::{Counter, Counts};
use crate::{verbs_build, workspace};
use anyhow::{Result, bail};
use machine::{Line, Machine, Verdict};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};
pub use tools::Tools;
use warpwire_build::toolchain;

/// Seconds: several times what they take on two slow cores.
const LIMIT: u64 = 300;

/// Arguments of `test-rdma`.
#[derive(clap::Args)]
pub struct Args {
    /// Bring what is missing: QEMU, a kernel, soft-RoCE, and what the feature `ib` is built with
    #[arg(long)]
    pub install: bool,
    /// Machines: 1 plays all ranks of a test, with 2 each plays one
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub hosts: u32,
    /// Seconds that the machines may run
    #[arg(long, default_value_t = LIMIT)]
    pub limit: u64,
    /// Arguments for the test programs: a part of a test's name
    #[arg(last = true)]
    pub filter: Vec<String>,
}

/// What the machines found.
struct Report {
    /// The tests that passed, of all machines.
    counts: Counts,
    /// What is wrong, if anything is.
    fault: Option<String>,
}

/// What building and booting need.
pub struct Prepared {
    build: verbs_build::Environment,
    tools: Tools,
}

/// Finds that, or brings it.
pub fn provide(install: bool) -> Result<Prepared> {
    let folder = toolchain::tools_folder(&workspace::root());
    let spinner = Spinner::new();
    let build = verbs_build::provide(&folder, install, &spinner);
    let tools = Tools::provide(&folder, install, &spinner);
    spinner.clear();
    Ok(Prepared { build: build?, tools: tools? })
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let report = test(&provide(args.install)?, args)?;
    Ok(match report.fault {
        None => {
            println!("test-rdma: {}", report.counts);
            ExitCode::SUCCESS
        }
        Some(fault) => {
            println!("test-rdma: {fault}");
            ExitCode::FAILURE
        }
    })
}

/// Builds, boots and follows.
fn test(prepared: &Prepared, args: &Args) -> Result<Report> {
    let folder = workspace::root().join("target/rdma").join(args.hosts.to_string());
    let programs = programs::build(&folder, &prepared.build, args.hosts)?;
    let image = image::write(&folder, &image::build(&prepared.tools, &programs, &args.filter)?)?;
    boot(args, &prepared.tools, &image)
}

fn boot(args: &Args, tools: &Tools, image: &Path) -> Result<Report> {
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(args.limit);
    let socket = Socket(machine::socket_path());
    let (sender, lines) = mpsc::channel();
    let mut machines = Vec::new();
    for host in 0..args.hosts {
        machines.push(Machine::start(tools, image, (host, args.hosts), &socket.0, sender.clone())?);
        if host + 1 < args.hosts {
            machine::wait_for_socket(&socket.0, deadline)?;
        }
    }
    drop(sender);
    let mut counters: Vec<Counter> = machines.iter().map(|_| Counter::default()).collect();
    let verdicts = machine::follow(machines, &lines, deadline, |line: &Line| {
        let host = if args.hosts > 1 { format!("host {}: ", line.host) } else { String::new() };
        println!("{host}{}", line.text);
        if let Some(counter) = counters.get_mut(line.host as usize) {
            counter.line(&line.text);
        }
    })?;
    println!("the machines ran for {:.1} s", begun.elapsed().as_secs_f64());
    let mut counts = Counts::default();
    for counter in counters {
        counts.merge(&counter.counts());
    }
    Ok(Report { fault: fault(&verdicts, &counts), counts })
}

/// A machine that has passed has run tests: one that ran none has proved nothing.
fn fault(verdicts: &[(u32, Verdict)], counts: &Counts) -> Option<String> {
    for (host, verdict) in verdicts {
        match verdict {
            Verdict::Passed => {}
            Verdict::Failed => return Some(format!("tests have failed on host {host}")),
            Verdict::Lost(status) => {
                let status =
                    status.map_or("no exit status".to_owned(), |status| format!("exit status {status}"));
                return Some(format!("host {host} ended without a verdict ({status} of QEMU)"));
            }
        }
    }
    counts.total().is_none().then(|| "no test was run".to_owned())
}

/// The step of `cargo xtask test`: one machine, then two. The tests that passed.
pub fn step(prepared: &Prepared) -> Result<Counts> {
    let mut all = Counts::default();
    for hosts in [1, 2] {
        let report = test(prepared, &Args { install: false, hosts, limit: LIMIT, filter: vec![] })?;
        if let Some(fault) = report.fault {
            bail!("{fault}; cargo xtask test-rdma --hosts {hosts}");
        }
        all.merge(&report.counts);
    }
    Ok(all)
}

/// Removes the file on drop.
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // With one machine there was none.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_machines_that_ran_tests_and_passed_them_pass() {
        let none = Counts::default();
        let mut counter = Counter::default();
        counter.line("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        let some = counter.counts();
        assert_eq!(fault(&[(0, Verdict::Passed), (1, Verdict::Passed)], &some), None);
        assert!(fault(&[(0, Verdict::Passed)], &none).is_some_and(|text| text.contains("no test")));
        let lost = fault(&[(0, Verdict::Passed), (1, Verdict::Lost(Some(0)))], &some);
        assert!(lost.is_some_and(|text| text.contains("host 1 ended without a verdict")));
        assert!(fault(&[(0, Verdict::Failed)], &some).is_some_and(|text| text.contains("host 0")));
    }
}
