//! Programs of the system that a command needs, and how they are installed.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// Where a program is, looking through `PATH`.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Installs a Debian package as root, unless its program is there.
pub fn require(program: &str, package: &str) -> Result<()> {
    if in_path(program).is_some() {
        return Ok(());
    }
    let remedy = format!("as root: apt-get install {package}");
    if in_path("apt-get").is_none() {
        bail!(
            "there is no `{program}`, and no apt-get to install it with; install {package} by your system's means"
        );
    }
    let install = || -> Result<bool> {
        let mut command = Command::new("apt-get");
        command.args(["install", "--yes", "--no-install-recommends", package]);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        Ok(command.status().context("cannot run apt-get")?.success())
    };
    let done = install()? || (Command::new("apt-get").arg("update").status()?.success() && install()?);
    if !done || in_path(program).is_none() {
        bail!("`{program}` is missing and could not be installed; {remedy}");
    }
    Ok(())
}
