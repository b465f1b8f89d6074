//! `cargo xtask layers`: imports go one way, in the device crate and in the host crate.
//!
//! Each crate's modules stand in layers; a module may name those of lower layers and itself, not its neighbours and none
//! above. Tests may name everything. Inline assembly stands in the device crate's `arch` alone. The tables are here, and
//! a module that is in none of them is a violation too, so that they stay complete.

mod scan;

use crate::workspace;
use anyhow::{Context, Result};
use scan::Reference;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// One crate's layers, lowest first.
struct Table {
    /// The crate's folder.
    folder: &'static str,
    layers: &'static [&'static [&'static str]],
    /// Modules that may contain inline assembly.
    assembly_in: &'static [&'static str],
    /// Of the project's other crates, what may be named.
    foreign: &'static [Foreign],
}

/// What may be named of another crate.
struct Foreign {
    krate: &'static str,
    /// By every module.
    modules: &'static [&'static str],
    /// By one module alone: its name, and what it may name besides.
    exception: Option<(&'static str, &'static [&'static str])>,
}

impl Foreign {
    /// Nothing of that crate.
    const fn none(krate: &'static str) -> Foreign {
        Foreign { krate, modules: &[], exception: None }
    }

    fn allows(&self, module: &str, name: &str) -> bool {
        let besides = self.exception.filter(|(only, _)| *only == module).map_or(&[][..], |(_, names)| names);
        self.modules.contains(&name) || besides.contains(&name)
    }
}

const TABLES: [Table; 3] = [
    Table {
        folder: "device",
        layers: &[
            &["abi"],
            &["half"],
            &["fp8"],
            &["arch"],
            &["mem", "coop", "types", "kernel"],
            &["spin"],
            &["semaphore", "fifo", "packet", "copy", "barrier", "reduce"],
            &["bulk"],
            &["memory_channel", "port_channel", "switch_channel"],
        ],
        assembly_in: &["arch"],
        foreign: &[Foreign::none("warpwire"), Foreign::none("warpwire_kernels")],
    },
    Table {
        // Kernels are thin: they name the device crate and what their own crate's modules share.
        folder: "device/kernels",
        layers: &[
            &["message", "transfer"],
            &["all_pair", "barrier", "bulk", "convert", "deliver", "fifo", "packets", "ping_pong", "port"],
        ],
        assembly_in: &[],
        foreign: &[Foreign::none("warpwire")],
    },
    Table {
        folder: "host",
        layers: &[
            &["error", "monitor"],
            &["env"],
            &["data_type", "device", "hip", "net", "verbs"],
            &["memory", "bootstrap", "convert"],
            &["connection"],
            &["semaphore", "fifo"],
            &["proxy"],
            &["channel"],
            &["communicator"],
            &["collective"],
        ],
        assembly_in: &[],
        foreign: &[Foreign {
            krate: "warpwire_device",
            modules: &["abi", "kernel", "fifo", "semaphore", "types"],
            // The CPU device stands for the hardware that `arch` speaks to.
            exception: Some(("device", &["arch"])),
        }],
    },
];

/// Runs the command.
pub fn run() -> Result<ExitCode> {
    let violations = violations(&workspace::root())?;
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        println!("layers: every import goes down");
        return Ok(ExitCode::SUCCESS);
    }
    println!("the layers are violated; the tables are in xtask/src/layers.rs");
    Ok(ExitCode::FAILURE)
}

/// Every violation, as `file:line: what`.
pub fn violations(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for table in &TABLES {
        let source = root.join(table.folder).join("src");
        for file in files(&source)? {
            let Some(module) = module_of(&source, &file) else { continue };
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            let faults = check(table, &module, &text);
            found.extend(faults.into_iter().map(|(line, what)| format!("{shown}:{line}: {what}")));
        }
    }
    Ok(found)
}

/// The faults of one file, each with its line.
fn check(table: &Table, module: &Module, text: &str) -> Vec<(usize, String)> {
    let ranks = table.ranks();
    let mut faults = Vec::new();
    let own = ranks.get(module.name.as_str()).copied();
    if own.is_none() && !module.is_root() {
        faults.push((1, format!("module `{}` is in no layer of the table", module.name)));
    }
    for reference in scan::references(text, module.depth) {
        match reference {
            Reference::Module { name, line, macro_call } => {
                let (Some(own), Some(rank)) = (own, ranks.get(name.as_str()).copied()) else { continue };
                if name != module.name && rank >= own && !macro_call {
                    let place = if rank == own { "beside" } else { "above" };
                    faults.push((line, format!("`{}` names `{name}`, which stands {place} it", module.name)));
                }
            }
            Reference::Foreign { krate, name, line } => {
                // An item of the crate's root, a macro say, is no module.
                let rule = table.foreign.iter().find(|rule| rule.krate == krate);
                if let Some(rule) = rule
                    && !rule.allows(&module.name, &name)
                    && (rule.modules.is_empty() || is_module_of(&krate, &name))
                {
                    faults.push((
                        line,
                        format!("`{}` names `{krate}::{name}`, which is not for it", module.name),
                    ));
                }
            }
            Reference::Assembly { line } => {
                if !table.assembly_in.contains(&module.name.as_str()) {
                    faults.push((line, format!("inline assembly in `{}`", module.name)));
                }
            }
        }
    }
    faults
}

/// Whether a crate that a table describes has a module of that name.
fn is_module_of(krate: &str, name: &str) -> bool {
    let folder = match krate {
        "warpwire_device" => "device",
        "warpwire" => "host",
        _ => return false,
    };
    TABLES.iter().any(|table| table.folder == folder && table.ranks().contains_key(name))
}

impl Table {
    fn ranks(&self) -> BTreeMap<&'static str, usize> {
        let layers = self.layers.iter().enumerate();
        layers.flat_map(|(rank, names)| names.iter().map(move |name| (*name, rank))).collect()
    }
}

/// Which top-level module a file belongs to, and how many `super` lead from it to the crate's root.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Module {
    name: String,
    depth: usize,
}

impl Module {
    fn is_root(&self) -> bool {
        self.depth == 0
    }
}

fn module_of(source: &Path, file: &Path) -> Option<Module> {
    let relative = file.strip_prefix(source).ok()?.with_extension("");
    let mut parts: Vec<String> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts
        .last()
        .is_some_and(|last| last == "mod" || (parts.len() == 1 && (last == "lib" || last == "main")))
    {
        parts.pop();
    }
    Some(Module { name: parts.first().cloned().unwrap_or_default(), depth: parts.len() })
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for item in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = item?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(module: &str, text: &str) -> Vec<(usize, String)> {
        check(&TABLES[0], &Module { name: module.into(), depth: 1 }, text)
    }

    #[test]
    fn downward_imports_pass() {
        let text = "use crate::{abi::Status, arch};\nuse crate::spin::Policy;\nuse super::mem::Words;\n";
        assert_eq!(device("semaphore", text), []);
    }

    #[test]
    fn upward_and_sideways_imports_are_named_with_their_line() {
        let up = device("spin", "//! doc\nuse crate::{abi, memory_channel::Channel};");
        assert_eq!(up, [(2, "`spin` names `memory_channel`, which stands above it".to_owned())]);
        let beside = device("packet", "fn f() {\n    crate::copy::group();\n}");
        assert_eq!(beside, [(2, "`packet` names `copy`, which stands beside it".to_owned())]);
        assert_eq!(device("arch", "use super::mem;").len(), 1);
    }

    #[test]
    fn comments_strings_and_tests_may_name_everything() {
        let text = "/// See [`crate::memory_channel`].\nconst A: &str = \"crate::spin\";\n#[cfg(test)]\nmod tests { use crate::memory_channel; }\n/* crate::reduce */";
        assert_eq!(device("arch", text), []);
    }

    #[test]
    fn assembly_stays_in_arch() {
        let text = "fn f() { unsafe { core::arch::asm!(\"\") } }";
        assert_eq!(device("arch", text), []);
        assert_eq!(device("copy", text), [(1, "inline assembly in `copy`".to_owned())]);
    }

    #[test]
    fn an_unknown_module_is_a_violation() {
        assert!(device("helpers", "")[0].1.contains("`helpers`"));
        let root = Module { name: String::new(), depth: 0 };
        assert_eq!(check(&TABLES[0], &root, "pub mod abi;"), []);
    }

    #[test]
    fn the_host_names_only_its_part_of_the_device_crate() {
        let host = Module { name: "channel".into(), depth: 1 };
        assert_eq!(check(&TABLES[2], &host, "use warpwire_device::abi::Channel;"), []);
        assert_eq!(check(&TABLES[2], &host, "use warpwire_device::copy::group;").len(), 1);
        assert_eq!(check(&TABLES[2], &host, "use warpwire_device::{abi, spin::Policy};").len(), 1);
        assert_eq!(check(&TABLES[2], &host, "use warpwire_device::arch::Lane;").len(), 1);
        let device = Module { name: "device".into(), depth: 2 };
        assert_eq!(check(&TABLES[2], &device, "use warpwire_device::arch::Lane;"), []);
    }

    #[test]
    fn files_belong_to_their_first_folder() {
        let of = |path: &str| module_of(Path::new("src"), Path::new(path)).unwrap();
        assert_eq!(of("src/lib.rs"), Module { name: "".into(), depth: 0 });
        assert_eq!(of("src/spin.rs"), Module { name: "spin".into(), depth: 1 });
        assert_eq!(of("src/arch/mod.rs"), Module { name: "arch".into(), depth: 1 });
        assert_eq!(of("src/arch/nvptx/ldst.rs"), Module { name: "arch".into(), depth: 3 });
    }
}
