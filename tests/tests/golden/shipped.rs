//! C14, and what the host relies on: the PTX that the project ships, and the sources it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use warpwire::device::builtin_module;
use warpwire_build::ptx::Module;
use warpwire_kernels::MODULE;
use warpwire_tests::ptx::{Flow, Instruction};

use super::probes::each;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file of PTX.
struct Shipped {
    /// Its name below `ptx/`, `sm_90/warpwire_kernels.barrier.ptx`.
    name: String,
    text: String,
}

impl Shipped {
    fn module(&self) -> Module<'_> {
        Module::parse(&self.text).expect("shipped PTX is PTX")
    }
}

/// Every file of PTX in `ptx/`, by the architecture's folder.
fn shipped() -> BTreeMap<String, Vec<Shipped>> {
    let mut architectures: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let ptx = root().join("ptx");
    visit(&ptx, "ptx", &mut |path, text| {
        let below = path.strip_prefix(&ptx).expect("it was found there");
        let folder = below.parent().expect("it lies in a folder").display().to_string();
        let shipped = Shipped { name: below.display().to_string(), text: text.to_owned() };
        architectures.entry(folder).or_default().push(shipped);
    });
    assert!(architectures.len() >= 3, "PTX for {:?} only", architectures.keys());
    architectures
}

/// Kernels that older GPUs lack the instructions for, and the first architecture that has them.
const NEWER: [(&str, u32); 1] = [("warpwire_put_bulk", 90)];

/// The host copies an argument block of the size that it knows; the kernel reads the size that it was compiled with.
#[test]
fn shipped_entries_are_the_tables_kernels_with_their_arguments() {
    for (arch, files) in shipped() {
        let modules: Vec<_> = files.iter().map(Shipped::module).collect();
        let oldest = modules.iter().map(|module| module.header.target.number).min().expect("a file");
        let is_there = |name: &str| !NEWER.iter().any(|&(newer, from)| newer == name && oldest < from);
        let entries = || modules.iter().flat_map(|module| &module.entries);
        let mut names: Vec<_> = entries().map(|entry| entry.name).collect();
        let mut kernels: Vec<_> =
            MODULE.iter().map(|kernel| kernel.name).filter(|name| is_there(name)).collect();
        names.sort_unstable();
        kernels.sort_unstable();
        assert_eq!(names, kernels, "the entries for {arch} and the table's kernels, each once");
        for entry in entries() {
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

/// A file that the host does not embed is compiled by nobody, and its kernels are missing on a GPU.
#[test]
fn the_host_embeds_every_shipped_file() {
    let mut files: Vec<_> = shipped().into_values().flatten().map(|file| (file.text, file.name)).collect();
    for (architecture, text) in builtin_module().ptx {
        let at = files.iter().position(|(shipped, _)| shipped == text);
        let (_, name) = files.remove(at.expect("an embedded text that is not shipped"));
        assert!(name.starts_with(&format!("sm_{architecture}/")), "{name} is embedded for sm_{architecture}");
    }
    assert!(files.is_empty(), "not embedded: {:?}", files.iter().map(|(_, name)| name).collect::<Vec<_>>());
}

/// The driver compiles a part by itself, and a first launch waits for all of it.
#[test]
fn each_shipped_file_holds_what_its_kernels_call_and_no_more() {
    for file in shipped().values().flatten() {
        let module = file.module();
        let words = |span| module.statements(span).flat_map(|statement| statement.tokens);
        let bodies = module.entries.iter().map(|entry| &entry.body);
        let bodies = bodies.chain(module.functions.iter().map(|function| &function.body));
        let named: BTreeSet<_> = bodies.flat_map(words).collect();
        let defined: BTreeSet<_> = module.items.iter().filter_map(|item| item.name).collect();
        let entries: BTreeSet<_> = module.entries.iter().map(|entry| entry.name).collect();
        let idle: Vec<_> = defined.difference(&entries).filter(|name| !named.contains(*name)).collect();
        assert!(idle.is_empty(), "{}: nothing names {idle:?}", file.name);
        // What the compiler names of its own is mangled; what this project does has its prefix.
        let symbols = named.iter().filter(|word| word.starts_with("_R") || word.starts_with("__warpwire"));
        let own = symbols.filter(|symbol| !symbol.contains("_param_"));
        let missing: Vec<_> = own.filter(|symbol| !defined.contains(*symbol)).collect();
        assert!(missing.is_empty(), "{}: {missing:?} are defined nowhere", file.name);
        let shared = module.functions.iter().filter(|function| !function.body.is_empty());
        assert!(shared.count() <= 1, "{}: only the report of a failed wait is called", file.name);
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
    for file in shipped().values().flatten() {
        check_module(&file.module(), &format!("as shipped in {}", file.name));
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
        visit(&folder, "rs", &mut |path, text| {
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

/// Every file with this extension below a folder, with its text.
fn visit(folder: &Path, extension: &str, look: &mut dyn FnMut(&Path, &str)) {
    for entry in
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten()
    {
        let path = entry.path();
        if path.is_dir() {
            visit(&path, extension, look);
        } else if path.extension().is_some_and(|it| it == extension) {
            look(&path, &fs::read_to_string(&path).expect("a source file is text"));
        }
    }
}
