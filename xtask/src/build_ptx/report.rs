//! One line for each architecture, file and kernel.

use crate::workspace;
use std::fs;
use std::path::Path;
use warpwire_build::Output;
use warpwire_build::manifest::{Built, Kernel, PtxFile};

/// Prints what was built, or that it was there already.
pub fn print(output: &Output) {
    let Some(manifest) = &output.manifest else { return };
    let kernels = manifest.files().flat_map(|listed| &listed.entries);
    let width = kernels.map(|kernel| kernel.name.len()).max().unwrap_or(0);
    for built in &manifest.architectures {
        println!("{}", architecture(built));
        for listed in &built.files {
            println!("  {}", file(&output.folder, listed));
            for kernel in &listed.entries {
                println!("    {:<width$}  {}", kernel.name, details(kernel));
            }
        }
    }
    let folder = workspace::shown(&output.folder);
    if output.was_up_to_date {
        println!("{folder}: up to date");
    } else {
        println!("{folder}: built by {}", manifest.compiler);
    }
}

fn architecture(built: &Built) -> String {
    let assembled = match &built.ptxas {
        Some(version) => format!("assembled by ptxas {version}"),
        None => "not assembled: no ptxas".into(),
    };
    let kernels: usize = built.files.iter().map(|listed| listed.entries.len()).sum();
    format!("{} (PTX {}), {kernels} kernels, {assembled}", built.target, built.ptx)
}

fn file(folder: &Path, listed: &PtxFile) -> String {
    match fs::metadata(folder.join(&listed.file)) {
        Ok(data) => format!("{}, {:.1} KB", listed.file, data.len() as f64 / 1e3),
        Err(error) => format!("{}: {error}", listed.file),
    }
}

fn details(kernel: &Kernel) -> String {
    let bounds = match (kernel.max_threads, kernel.min_blocks) {
        (Some(threads), Some(blocks)) => format!("{threads} threads x {blocks}"),
        (Some(threads), None) => format!("{threads} threads"),
        _ => "no bounds".into(),
    };
    let used = match kernel.resources {
        Some(used) => {
            let spills = match (used.spill_stores, used.spill_loads) {
                (0, 0) => "no spills".into(),
                (stores, loads) => format!("spills {stores} B stored, {loads} B loaded"),
            };
            let stack = if used.stack > 0 { format!(", {} B stack", used.stack) } else { String::new() };
            format!("{:>3} registers, {:>5} B shared, {spills}{stack}", used.registers, used.shared)
        }
        None => "registers unknown".into(),
    };
    format!("{bounds:>16}  {used}")
}
