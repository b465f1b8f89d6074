//! The first root file system of a virtual machine, which is its only one.

use super::cpio::Archive;
use super::modules::Modules;
use super::programs::Program;
use super::tools::Tools;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const INIT: &str = include_str!("init.sh");

/// What the kernel has to be able to do. `crc32_generic` is what rdma_rxe asks the kernel for by name, so that no module
/// names it.
const MODULES: [&str; 5] = ["crc32_generic", "virtio_pci", "virtio_net", "ib_uverbs", "rdma_rxe"];

/// Where libibverbs looks for its providers.
const PROVIDERS: &str = "usr/lib/x86_64-linux-gnu/libibverbs";

/// Packs it. `filter` are arguments for every test program.
pub fn build(tools: &Tools, programs: &[Program], filter: &[String]) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "sys", "tmp"] {
        archive.folder(folder);
    }
    archive.file("init", INIT.as_bytes());
    archive.file("bin/busybox", &read(&tools.busybox)?);
    archive.link("bin/sh", "busybox");
    archive.file("bin/rdma", &read(&tools.rdma)?);
    archive.file("etc/libibverbs.d/rxe.driver", &read(&tools.driver)?);
    archive.file(&format!("{PROVIDERS}/{}", name(&tools.provider)?), &read(&tools.provider)?);
    archive.file("usr/lib/x86_64-linux-gnu/libibverbs.so.1", &read(&tools.libibverbs)?);
    let mut loaded = vec![tools.busybox.as_path(), &tools.rdma, &tools.provider, &tools.libibverbs];
    loaded.extend(programs.iter().map(|program| program.file.as_path()));
    for program in loaded {
        for library in tools.libraries(program)? {
            archive.file(&inside(&library), &read(&library)?);
        }
    }
    let mut order = String::new();
    for module in Modules::of(&tools.modules)?.in_order(&MODULES)? {
        let name = name(&module)?;
        archive.file(&format!("modules/{name}"), &read(&module)?);
        order.push_str(&name);
        order.push('\n');
    }
    archive.file("modules/order", order.as_bytes());
    let mut list = String::new();
    for program in programs {
        let name = name(&program.file)?;
        archive.file(&format!("tests/{name}"), &read(&program.file)?);
        let arguments = program.arguments.iter().map(|word| (*word).to_owned()).chain(filter.iter().cloned());
        list.push_str(&format!("{name} {} {}\n", program.source, arguments.collect::<Vec<_>>().join(" ")));
    }
    archive.file("tests/list", list.as_bytes());
    Ok(archive.finish())
}

/// Where a library has to lie inside: the loader's and libibverbs's own folders, whatever root it was unpacked below.
fn inside(library: &Path) -> String {
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("ld-linux") {
        format!("lib64/{name}")
    } else {
        format!("usr/lib/x86_64-linux-gnu/{name}")
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn name(path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    Ok(name.with_context(|| format!("{} has no name", path.display()))?.to_owned())
}

/// Writes it into the build folder.
pub fn write(folder: &Path, image: &[u8]) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join("initramfs.cpio");
    fs::write(&path, image).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
