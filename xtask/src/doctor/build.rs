//! Compilers and tools: what is built and checked here.

use super::program;
use super::table::Row;
use std::path::Path;
use std::process::Command;
use warpwire_build::cuda;
use warpwire_build::toolchain::{Search, tools_folder};

const PTX: &str = "building PTX from the kernels' sources";

/// Every row of this section.
pub fn rows(root: &Path) -> Vec<Row> {
    let tools = tools_folder(root);
    let mut rows = compilers(root);
    rows.push(match cuda::Ptxas::find(None, &tools) {
        Some(ptxas) => {
            let found = format!("{} ({}, {})", ptxas.version, ptxas.tool.path.display(), ptxas.tool.origin);
            Row::there("ptxas", found, "checking PTX, and its registers and spills, without a GPU")
        }
        None => Row::lacking(
            "ptxas",
            "none",
            "checking PTX, and its registers and spills, without a GPU",
            "cargo xtask build-ptx --install, or a CUDA toolkit in CUDA_HOME",
        ),
    });
    for (name, enables) in
        [("nvcc", "comparing with CUDA C++"), ("cuobjdump", "reading the machine code of kernels")]
    {
        rows.push(match cuda::find(name, &tools) {
            Some(tool) => Row::there(name, format!("{} ({})", tool.path.display(), tool.origin), enables),
            None => Row::lacking(
                name,
                "none",
                enables,
                "a CUDA toolkit in CUDA_HOME, or PyPI's nvidia-cuda-nvcc and nvidia-cuda-cuobjdump",
            ),
        });
    }
    rows.push(program("cc", "linking with CUDA on a machine without it", "apt-get install gcc"));
    rows.push(nightly());
    rows.push(program("valgrind", "memory checks where there is no nightly", "apt-get install valgrind"));
    rows
}

fn compilers(root: &Path) -> Vec<Row> {
    let candidates = Search::from_environment(root).candidates();
    let any = candidates.iter().any(|candidate| candidate.verdict.is_ok());
    let row = |candidate: &warpwire_build::toolchain::Candidate| {
        let name = format!("compiler: {}", candidate.place());
        match &candidate.verdict {
            Ok(toolchain) => Row::there(name, toolchain.version.clone(), PTX),
            Err(reason) if any => {
                Row::lacking(name, reason.to_string(), PTX, "not needed: another compiler here will do")
            }
            Err(reason) => Row::lacking(
                name,
                reason.to_string(),
                PTX,
                "rustup component add rust-src, or cargo xtask build-ptx --install",
            ),
        }
    };
    candidates.iter().map(row).collect()
}

fn nightly() -> Row {
    const ENABLES: &str = "ThreadSanitizer and AddressSanitizer";
    let output = Command::new("rustup").args(["run", "nightly", "rustc", "--version"]).output();
    match output {
        Ok(output) if output.status.success() => {
            Row::there("nightly", String::from_utf8_lossy(&output.stdout).trim(), ENABLES)
        }
        _ => Row::lacking("nightly", "none", ENABLES, "rustup toolchain install nightly"),
    }
}
