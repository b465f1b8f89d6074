//! `cargo xtask doctor`: what this machine has and lacks, what that enables, and the command for each lack.

mod build;
mod driver;
mod hardware;
mod rdma;
mod table;

use crate::workspace;
use anyhow::Result;
use std::process::ExitCode;
use table::Row;

/// Runs the command. A lack is no failure: the answer is the table.
pub fn run() -> Result<ExitCode> {
    let root = workspace::root();
    let sections = [
        ("Building", build::rows(&root)),
        ("NVIDIA", driver::rows(&root)),
        ("AMD", hardware::amd()),
        ("InfiniBand", rdma::rows()),
        ("Virtual machines", hardware::virtualisation()),
    ];
    for (name, rows) in &sections {
        println!("{name}");
        table::print(rows);
    }
    let lacks = sections.iter().flat_map(|(_, rows)| rows).filter(|row| !row.is_there()).count();
    println!("{lacks} of these are not here; none of them is needed for the CPU device.");
    Ok(ExitCode::SUCCESS)
}

/// A row for a program in `PATH`.
fn program(name: &'static str, enables: &'static str, remedy: &str) -> Row {
    match crate::packages::in_path(name) {
        Some(path) => Row::there(name, path.display().to_string(), enables),
        None => Row::lacking(name, "not in PATH", enables, remedy),
    }
}
