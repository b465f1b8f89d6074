//! C14, and what the host relies on: the PTX that the project ships, and the sources it comes from.

use std::fs;
use std::path::{Path, PathBuf};

use warpwire_build::ptx::Module;
use warpwire_kernels::MODULE;
use warpwire_tests::ptx::{Flow, Instruction};

use super::probes::each;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every `ptx/<arch>/warpwire_kernels.ptx`, with the architecture's name.
fn shipped() -> Vec<(String, String)> {
    let folders = fs::read_dir(root().join("ptx")).expect("the project ships PTX").flatten();
    let files = folders.filter_map(|folder| {
        let text = fs::read_to_string(folder.path().join("warpwire_kernels.ptx")).ok()?;
        Some((folder.file_name().to_string_lossy().into_owned(), text))
    });
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert!(files.len() >= 3, "PTX for {} architectures only", files.len());
    files
}

/// Kernels that older GPUs lack the instructions for, and the first architecture that has them.
const NEWER: [(&str, u32); 1] = [("warpwire_put_bulk", 90)];

/// The host copies an argument block of the size that it knows; the kernel reads the size that it was compiled with.
#[test]
fn shipped_entries_are_the_tables_kernels_with_their_arguments() {
    for (arch, text) in shipped() {
        let module = Module::parse(&text).expect("shipped PTX is PTX");
        let is_there = |name: &str| {
            !NEWER.iter().any(|&(newer, from)| newer == name && module.header.target.number < from)
        };
        let mut entries: Vec<_> = module.entries.iter().map(|entry| entry.name).collect();
        let mut kernels: Vec<_> =
            MODULE.iter().map(|kernel| kernel.name).filter(|name| is_there(name)).collect();
        entries.sort_unstable();
        kernels.sort_unstable();
        assert_eq!(entries, kernels, "the entries for {arch} and the table's kernels");
        for entry in &module.entries {
            let kernel =
                MODULE.iter().find(|kernel| kernel.name == entry.name).expect("the lists are the same");
            let (size, align) = (entry.param_size() as usize, entry.param_align() as usize);
            assert_eq!(entry.params.len(), 1, "{} for {arch} takes one block", kernel.name);
            assert_eq!((size, align), (kernel.args_size, kernel.args_align), "{} for {arch}", kernel.name);
            let limits = (entry.max_threads(), entry.min_blocks);
            assert_eq!(
                limits,
                (Some(kernel.limits.max_threads), Some(kernel.limits.min_blocks)),
                "{}",
                kernel.name
            );
        }
    }
}

/// What names an order, and what a scope, in a mnemonic.
const ORDERS: [&str; 6] = ["relaxed", "acquire", "release", "acq_rel", "sc", "volatile"];
const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

/// Whether it is a read-modify-write or a fence that leaves its order or its scope to a default.
fn is_vague(instruction: &Instruction) -> bool {
    let parts: Vec<_> = instruction.opcode.split('.').collect();
    let names = |list: &[&str]| parts.iter().any(|part| list.contains(part));
    match parts[0] {
        "atom" | "red" => !(names(&ORDERS) && names(&SCOPES)),
        "fence" => {
            !(parts.get(1).is_some_and(|part| part.starts_with("proxy")) || names(&ORDERS) && names(&SCOPES))
        }
        "membar" => true,
        // Nothing is addressed generically: a flag that a compiler spelled itself would be.
        "ld" | "st" => !["global", "param", "shared"].iter().any(|space| parts.contains(space)),
        _ => false,
    }
}

fn check_module(module: &Module<'_>, what: &str) {
    let bodies = module.entries.iter().map(|entry| (entry.name, &entry.body));
    for (name, body) in bodies.chain(module.functions.iter().map(|function| (function.name, &function.body)))
    {
        for instruction in Flow::parse(&module.text[body.clone()]).instructions {
            assert!(
                !is_vague(&instruction),
                "{name} {what}: {instruction} names not both an order and a scope"
            );
        }
    }
}

#[test]
fn no_atomic_leaves_its_order_or_scope_open() {
    for (arch, text) in shipped() {
        check_module(&Module::parse(&text).expect("shipped PTX is PTX"), &format!("as shipped for {arch}"));
    }
    each("no_atomic_leaves_its_order_or_scope_open", |probes| {
        check_module(&probes.module(), &format!("for {}", probes.arch));
    });
}

#[test]
fn vague_atomics_are_recognised() {
    let vague = [
        "atom.global.add.u64",
        "atom.relaxed.global.add.u64",
        "red.gpu.global.add.u32",
        "fence.acq_rel",
        "membar.gl",
    ];
    let exact =
        ["atom.acq_rel.gpu.global.cas.b32", "red.release.sys.global.add.u64", "fence.sc.cta", "ld.param.b64"];
    let parse = |opcode: &str| Flow::parse(&format!("{opcode} x;")).instructions.remove(0);
    assert!(vague.iter().all(|opcode| is_vague(&parse(opcode))));
    assert!(!exact.iter().any(|opcode| is_vague(&parse(opcode))));
}

/// Only the CPU's side of the instructions may name the language's atomics: on a GPU they lose order and scope.
#[test]
fn no_device_source_names_the_languages_atomics() {
    let device = root().join("device");
    let mut named = Vec::new();
    for folder in [device.join("src"), device.join("kernels/src")] {
        visit(&folder, &mut |path, text| {
            let is_cpu =
                path.ends_with("arch/cpu.rs") || path.components().any(|part| part.as_os_str() == "cpu");
            // The documentation of `arch` names them, to say why not.
            let code = |line: &&str| !line.trim_start().starts_with("//");
            for line in text
                .lines()
                .filter(code)
                .filter(|line| line.contains("sync::atomic") || line.contains("Atomic"))
            {
                if !is_cpu {
                    named.push(format!("{}: {}", path.display(), line.trim()));
                }
            }
        });
    }
    assert!(named.is_empty(), "{named:#?}");
}

fn visit(folder: &Path, look: &mut dyn FnMut(&Path, &str)) {
    for entry in
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten()
    {
        let path = entry.path();
        if path.is_dir() {
            visit(&path, look);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            look(&path, &fs::read_to_string(&path).expect("a source file is text"));
        }
    }
}
