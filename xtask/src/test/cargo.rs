//! Runs cargo for a step, showing and following its output.

use super::Outcome;
use super::count::Counter;
use crate::workspace;
use anyhow::{Context, Result};
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// This very cargo, in the project's folder.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(workspace::root());
    command
}

/// Runs to the end: passed or failed by the exit status.
pub fn verdict(command: &mut Command) -> Result<Outcome> {
    let status = command.status().with_context(|| format!("cannot run {}", spelled(command)))?;
    Ok(if status.success() { Outcome::Passed(Default::default()) } else { Outcome::Failed(spelled(command)) })
}

/// Like [`verdict`], for a command that runs tests: they are counted.
pub fn counted(command: &mut Command) -> Result<Outcome> {
    // Cargo says on standard error whose results the tests then print on standard output: one pipe keeps the order.
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    command.stdout(writer.try_clone()?).stderr(writer).stdin(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot run {}", spelled(command)))?;
    let shown = spelled(command);
    // The command still holds the writing end; without it the reader sees the end when the child is done.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut counter = Counter::default();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("cannot read the output")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        counter.line(&line);
    }
    let status = child.wait().context("cannot wait for the command")?;
    Ok(if status.success() { Outcome::Passed(counter.counts()) } else { Outcome::Failed(shown) })
}

/// The first that did not pass, or the last.
pub fn all(outcomes: impl IntoIterator<Item = Result<Outcome>>) -> Result<Outcome> {
    let mut last = Outcome::Passed(Default::default());
    for outcome in outcomes {
        last = outcome?;
        if matches!(last, Outcome::Failed(_)) {
            break;
        }
    }
    Ok(last)
}

fn spelled(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once("cargo".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}
