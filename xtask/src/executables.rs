//! Programs that cargo builds, by their paths.

use crate::verbs_build::Environment;
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Builds as `arguments` say, and gives the programs that came of it.
pub fn of(arguments: &[&str], environment: &Environment) -> Result<Vec<PathBuf>> {
    let cargo: OsString = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).args(["--message-format=json-render-diagnostics", "--manifest-path"]);
    command.arg(workspace::root().join("Cargo.toml")).stderr(Stdio::inherit());
    environment.apply(&mut command);
    let output = command.output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    let text = String::from_utf8(output.stdout).context("cargo's messages are no UTF-8")?;
    let messages = text.lines().map(serde_json::from_str::<serde_json::Value>);
    // A package's programs are built with its tests: they are not asked for.
    let tests = arguments.contains(&"test");
    let executable = |message: serde_json::Value| {
        let wanted = !tests || message["profile"]["test"] == true;
        message["executable"].as_str().filter(|_| wanted).map(PathBuf::from)
    };
    messages
        .filter_map(|message| message.map(executable).transpose())
        .collect::<Result<_, _>>()
        .context("cargo's messages")
}
