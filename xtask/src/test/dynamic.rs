//! Steps that run tests under a tool which watches them: the sanitizers, valgrind, Miri.

use super::cargo::{cargo, counted};
use super::{Context, Outcome};
use crate::{packages, workspace};
use anyhow::{Context as _, Result};
use std::process::Command;

/// The tests that these tools watch: small enough for their slowness.
const SUITE: [&str; 4] = ["--package", "warpwire-tests", "--test", "sanitize"];

const HOST: &str = "x86_64-unknown-linux-gnu";

/// Data races between the CPU device's threads.
pub fn thread(_: &Context) -> Result<Outcome> {
    if let Some(reason) = no_suite().or_else(no_nightly) {
        return Ok(Outcome::Skipped(reason));
    }
    counted(&mut sanitized("thread"))
}

/// Accesses outside of what was allocated.
pub fn memory(_: &Context) -> Result<Outcome> {
    if let Some(reason) = no_suite() {
        return Ok(Outcome::Skipped(reason));
    }
    let Some(reason) = no_nightly() else {
        let mut command = sanitized("address");
        // Coroutines' stacks end with their owners, which the leak check cannot follow.
        return counted(command.env("ASAN_OPTIONS", "detect_leaks=0"));
    };
    if packages::in_path("valgrind").is_none() {
        return Ok(Outcome::Skipped(format!("{reason}, and no valgrind")));
    }
    println!("{reason}: using valgrind");
    let mut command = cargo(&["test"]);
    command.args(SUITE);
    // Cargo's own way to run a test binary through another program.
    command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "valgrind --quiet --error-exitcode=1");
    counted(&mut command)
}

/// Undefined behaviour, in the device crate's own tests.
pub fn miri(_: &Context) -> Result<Outcome> {
    let there = Command::new("rustup").args(["run", "nightly", "cargo", "miri", "--version"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        return Ok(Outcome::Skipped("no Miri here; rustup component add miri --toolchain nightly".into()));
    }
    let mut command = nightly(&["miri", "test", "--package", "warpwire-device"]);
    counted(command.env("MIRIFLAGS", "-Zmiri-disable-isolation"))
}

fn sanitized(sanitizer: &str) -> Command {
    let mut command = nightly(&["test", "--target", HOST]);
    command.args(SUITE);
    // The standard library is not built with the sanitizer; without this flag rustc refuses the mixture.
    let flags = format!("-Zsanitizer={sanitizer} -Cunsafe-allow-abi-mismatch=sanitizer");
    command.env("RUSTFLAGS", flags);
    // A folder of its own, so that the flags do not throw away the ordinary build.
    command.env("CARGO_TARGET_DIR", workspace::root().join("target/sanitize").join(sanitizer));
    command
}

/// The nightly toolchain's cargo, without what this process got from its own.
fn nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments).current_dir(workspace::root());
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC"] {
        command.env_remove(name);
    }
    command
}

fn no_nightly() -> Option<String> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Some("the sanitizers are set up for x86_64 Linux only".into());
    }
    let output = Command::new("rustup").args(["run", "nightly", "rustc", "--version"]).output();
    let there = output.context("rustup").is_ok_and(|output| output.status.success());
    (!there).then(|| "no nightly toolchain here; rustup toolchain install nightly".into())
}

fn no_suite() -> Option<String> {
    let suite = workspace::root().join("tests/tests/sanitize.rs");
    (!suite.is_file()).then(|| "there is no tests/tests/sanitize.rs".into())
}
