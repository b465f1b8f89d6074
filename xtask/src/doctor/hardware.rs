//! Other makers' GPUs, and what virtual machines need.

use super::program;
use super::table::Row;
use crate::rdma::Tools;
use crate::workspace;
use std::process::{Command, Stdio};
use warpwire_build::toolchain;

/// hipcc, and a clang that knows the MI300's architecture.
pub fn amd() -> Vec<Row> {
    const ENABLES: &str = "building the AMD sibling of the fp8 code for gfx942";
    let versions = (17..=23).rev().map(|major| format!("clang-{major}"));
    let mut clangs = versions.chain(["clang".to_owned(), "amdclang".to_owned()]);
    let clang = match clangs.find(|clang| knows_gfx942(clang)) {
        Some(name) => Row::there("clang for gfx942", name, ENABLES),
        None => Row::lacking(
            "clang for gfx942",
            "no clang here knows gfx942",
            ENABLES,
            "apt-get install clang-19 lld-19",
        ),
    };
    vec![program("hipcc", ENABLES, "apt-get install hipcc"), clang]
}

fn knows_gfx942(clang: &str) -> bool {
    let mut command = Command::new(clang);
    command.args([
        "--target=amdgcn-amd-amdhsa",
        "-mcpu=gfx942",
        "-nogpulib",
        "-x",
        "c",
        "-S",
        "-o",
        "/dev/null",
        "/dev/null",
    ]);
    command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

/// QEMU, which runs the InfiniBand tests on a software adapter. It emulates the processor: KVM makes no difference.
pub fn virtualisation() -> Vec<Row> {
    let enables = "verbs tests on a software adapter";
    let tools = toolchain::tools_folder(&workspace::root());
    vec![match Tools::find(&tools) {
        Ok(tools) => Row::there("virtual machines", tools.qemu.display().to_string(), enables),
        Err(missing) => Row::lacking(
            "virtual machines",
            format!("{missing:#}"),
            enables,
            "cargo xtask test-rdma --install",
        ),
    }]
}
