//! The test programs that run inside.

use crate::{executables, verbs_build};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One of them.
#[derive(Debug)]
pub struct Program {
    /// Its source, as cargo names it.
    pub source: &'static str,
    /// The program.
    pub file: PathBuf,
    /// What it is given, besides the user's filter.
    pub arguments: &'static [&'static str],
}

/// Tests of one after another: they share an adapter, and with two hosts both have to be in the same test.
const IN_TURN: &[&str] = &["--test-threads=1"];
/// The crate's own tests that make use of an adapter where there is one.
const OWN: &[&str] = &["--test-threads=1", "verbs::", "infiniband::"];

/// Builds them, without their symbols, into `folder`.
pub fn build(folder: &Path, build: &verbs_build::Environment, hosts: u32) -> Result<Vec<Program>> {
    let base = ["test", "--no-run", "--package", "warpwire", "--features", "warpwire/ib"];
    let mut programs = vec![Program {
        source: "tests/rdma/main.rs",
        file: one(executables::of(&[&base[..], &["--test", "rdma"]].concat(), build)?, folder)?,
        arguments: IN_TURN,
    }];
    if hosts == 1 {
        programs.push(Program {
            source: "unittests",
            file: one(executables::of(&[&base[..], &["--lib"]].concat(), build)?, folder)?,
            arguments: OWN,
        });
    }
    Ok(programs)
}

fn one(built: Vec<PathBuf>, folder: &Path) -> Result<PathBuf> {
    let [program] = &built[..] else { bail!("cargo built {} programs where one was asked for", built.len()) };
    let name = program.file_name().context("a program without a name")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let copy = folder.join(name);
    std::fs::copy(program, &copy).with_context(|| format!("cannot copy {}", program.display()))?;
    // Without `strip` the image is only larger; function names stay, for backtraces.
    let _ = Command::new("strip").arg("--strip-debug").arg(&copy).status();
    Ok(copy)
}
