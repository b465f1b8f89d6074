//! `cargo xtask test`: everything that has to pass, step by step. `.ci/run` is this with `--install`.

mod cargo;
mod count;
mod dynamic;
mod steps;

use anyhow::{Result, bail};
pub use count::{Counter, Counts};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Arguments of `test`.
#[derive(clap::Args)]
pub struct Args {
    /// Bring what is missing: a compiler for PTX, ptxas, a C compiler
    #[arg(long)]
    pub install: bool,
    /// Go on after a step that fails
    #[arg(long)]
    pub keep_going: bool,
    /// Only these steps, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "STEP")]
    pub only: Vec<String>,
    /// Name the steps and stop
    #[arg(long)]
    pub list: bool,
}

impl Args {
    /// What `ci` runs.
    pub fn ci() -> Args {
        Args { install: true, keep_going: false, only: vec![], list: false }
    }
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// It passed; what it ran, where that can be counted.
    Passed(Counts),
    /// It cannot run here, and why.
    Skipped(String),
    /// It failed, and how to look at it.
    Failed(String),
}

/// What the steps share.
struct Context {
    install: bool,
}

/// A step: a name to select it by, what it does, and the doing.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Context) -> Result<Outcome>,
}

/// A step that was run.
struct Done {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        for step in steps::ALL {
            println!("{:<16} {}", step.name, step.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = args.only.iter().find(|name| steps::ALL.iter().all(|step| step.name != **name)) {
        bail!("there is no step `{unknown}`; cargo xtask test --list names them");
    }
    let context = Context { install: args.install };
    let mut done: Vec<Done> = Vec::new();
    for step in steps::ALL {
        if !args.only.is_empty() && !args.only.iter().any(|name| name == step.name) {
            continue;
        }
        println!("==> {}: {}", step.name, step.about);
        let start = Instant::now();
        let outcome = (step.run)(&context).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let failed = matches!(outcome, Outcome::Failed(_));
        done.push(Done { name: step.name, outcome, took: start.elapsed() });
        if failed && !args.keep_going {
            break;
        }
    }
    summarise(&done);
    let failed = done.iter().any(|step| matches!(step.outcome, Outcome::Failed(_)));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn summarise(done: &[Done]) {
    println!("\n{:<16} {:<8} {:>7}  details", "step", "verdict", "time");
    let mut all = Counts::default();
    for step in done {
        let (verdict, details) = match &step.outcome {
            Outcome::Passed(counts) => {
                all.merge(counts);
                ("passed", counts.total().map(|total| format!("{total} tests")).unwrap_or_default())
            }
            Outcome::Skipped(reason) => ("skipped", reason.clone()),
            Outcome::Failed(detail) => ("FAILED", detail.lines().next().unwrap_or("").to_owned()),
        };
        println!("{:<16} {verdict:<8} {:>5.1} s  {details}", step.name, step.took.as_secs_f64());
    }
    if all.total().is_some() {
        println!("\ntests by kind: {all}");
    }
}
