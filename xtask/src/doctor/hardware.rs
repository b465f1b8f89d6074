//! Other makers' GPUs, InfiniBand, and what virtual machines need.

use super::program;
use super::table::Row;
use libloading::Library;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

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

/// The verbs library, and adapters.
pub fn infiniband() -> Vec<Row> {
    const ENABLES: &str = "channels between machines, through verbs";
    // SAFETY: loading libibverbs runs its initialisers, which expect nothing of the program that loads it.
    let library = match unsafe { Library::new("libibverbs.so.1") } {
        Ok(_) => Row::there("libibverbs", "libibverbs.so.1", ENABLES),
        Err(_) => Row::lacking(
            "libibverbs",
            "no libibverbs.so.1",
            ENABLES,
            "apt-get install libibverbs1 ibverbs-providers",
        ),
    };
    let devices: Vec<String> = fs::read_dir("/sys/class/infiniband")
        .map(|items| items.flatten().map(|item| item.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    let adapter = if devices.is_empty() {
        Row::lacking(
            "adapter",
            "none in /sys/class/infiniband",
            ENABLES,
            "an adapter; or rdma link add rxe0 type rxe netdev eth0 (as root, a kernel with rdma_rxe)",
        )
    } else {
        Row::there("adapter", devices.join(", "), ENABLES)
    };
    vec![library, adapter]
}

/// KVM and QEMU, which run the InfiniBand tests on a software adapter.
pub fn virtualisation() -> Vec<Row> {
    const ENABLES: &str = "verbs tests on a software adapter, at full speed";
    let kvm = if Path::new("/dev/kvm").exists() {
        Row::there("KVM", "/dev/kvm", ENABLES)
    } else {
        Row::lacking(
            "KVM",
            "no /dev/kvm",
            ENABLES,
            "not needed: QEMU emulates, more slowly; else enable it in the firmware",
        )
    };
    let qemu =
        program("qemu-system-x86_64", "verbs tests on a software adapter", "apt-get install qemu-system-x86");
    vec![kvm, qemu]
}
