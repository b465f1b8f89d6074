//! What travels beside a kernel's code: its launch bounds, for which rustc has no attribute, and the Rust module that
//! declares it.
//!
//! The `kernel!` macro emits a static `__warpwire_kernel_ENTRY`: two 32-bit words (the most threads of a block, and the
//! blocks that must fit one multiprocessor), then the module's path. The bounds become the entry's directives (without
//! `.maxntid` ptxas may give a kernel more registers than its threads can have, and the launch fails), the path says into
//! which file a split module puts the kernel, and the static is removed.

use crate::ptx::{Entry, Module};
use std::collections::BTreeMap;

/// What the statics' names start with; the entry's name follows.
const PREFIX: &str = "__warpwire_kernel_";

/// No GPU launches larger blocks.
const MAX_THREADS: u32 = 1024;

/// An entry without a usable description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadDescription {
    pub(crate) entry: String,
    pub(crate) detail: String,
}

/// A module with its descriptions put in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    /// The text: each entry with its bounds as directives, and no statics.
    pub(crate) text: String,
    /// For each entry the path of the Rust module that declares it.
    pub(crate) modules: BTreeMap<String, String>,
}

/// Rewrites a module's text by its descriptions.
pub(crate) fn apply(module: &Module<'_>) -> Result<Described, BadDescription> {
    let mut edits: Vec<(usize, usize, String)> = Vec::new();
    let mut modules = BTreeMap::new();
    for entry in &module.entries {
        let Description { threads, blocks, path } = Description::of(entry, module)?;
        modules.insert(entry.name.to_owned(), path);
        if entry.maxntid.is_some() {
            continue; // a compiler that has learnt to write them
        }
        let mut directives = format!("\n.maxntid {threads}, 1, 1");
        if blocks > 0 {
            directives += &format!("\n.minnctapersm {blocks}");
        }
        edits.push((entry.directives_at, entry.directives_at, directives));
    }
    for global in module.globals.iter().filter(|global| global.name.starts_with(PREFIX)) {
        let line_end = module.text[global.span.end..].starts_with('\n') as usize;
        edits.push((global.span.start, global.span.end + line_end, String::new()));
    }
    Ok(Described { text: rewrite(module.text, edits), modules })
}

/// What an entry's static says.
struct Description {
    threads: u32,
    blocks: u32,
    path: String,
}

impl Description {
    fn of(entry: &Entry<'_>, module: &Module<'_>) -> Result<Description, BadDescription> {
        let bad = |detail| BadDescription { entry: entry.name.to_owned(), detail };
        let name = format!("{PREFIX}{}", entry.name);
        let Some(global) = module.globals.iter().find(|global| global.name == name) else {
            return Err(bad("has no launch bounds; define it with the `kernel!` macro".into()));
        };
        let description = Description::read(&global.bytes())
            .ok_or_else(|| bad(format!("`{name}` does not hold two 32-bit words and a path")))?;
        if !(1..=MAX_THREADS).contains(&description.threads) {
            let threads = description.threads;
            return Err(bad(format!("its bound of {threads} threads is not between 1 and {MAX_THREADS}")));
        }
        Ok(description)
    }

    /// Reads the static's bytes; behind the path there may be padding, which is zeros.
    fn read(bytes: &[u8]) -> Option<Description> {
        let (threads, rest) = bytes.split_first_chunk()?;
        let (blocks, path) = rest.split_first_chunk()?;
        let path = std::str::from_utf8(path).ok()?.trim_end_matches('\0');
        let is_path = |c: char| c == ':' || c == '_' || c.is_alphanumeric();
        (!path.is_empty() && path.chars().all(is_path)).then(|| Description {
            threads: u32::from_le_bytes(*threads),
            blocks: u32::from_le_bytes(*blocks),
            path: path.to_owned(),
        })
    }
}

/// Replaces the given ranges of `text`, which do not overlap.
fn rewrite(text: &str, mut edits: Vec<(usize, usize, String)>) -> String {
    edits.sort_by_key(|(start, ..)| *start);
    let mut out = String::with_capacity(text.len() + 64 * edits.len());
    let mut at = 0;
    for (start, end, with) in edits {
        out.push_str(&text[at..start]);
        out.push_str(&with);
        at = end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

    fn applied(rest: &str) -> Result<Described, BadDescription> {
        let text = format!("{HEAD}{rest}");
        apply(&Module::parse(&text).unwrap())
    }

    /// The static of an entry, as LLVM writes it: zeros at the end are left out.
    fn description(entry: &str, threads: u32, blocks: u32, path: &str) -> String {
        let words = [threads, blocks].map(u32::to_le_bytes);
        let bytes: Vec<_> = words.as_flattened().iter().chain(path.as_bytes()).map(u8::to_string).collect();
        let padded = bytes.len().next_multiple_of(4);
        format!(".visible .global .align 4 .b8 {PREFIX}{entry}[{padded}] = {{{}}};\n", bytes.join(", "))
    }

    #[test]
    fn bounds_move_from_the_static_to_the_entry() {
        let entry = ".visible .entry a(\n\t.param .u64 a_param_0\n)\n{ ret; }\n";
        let Described { text, modules } =
            applied(&(description("a", 1024, 1, "kernels::transfer") + entry)).unwrap();
        assert!(
            text.ends_with("\t.param .u64 a_param_0\n)\n.maxntid 1024, 1, 1\n.minnctapersm 1\n{ ret; }\n")
        );
        assert!(!text.contains(PREFIX));
        assert_eq!(modules["a"], "kernels::transfer");
        let module = Module::parse(&text).unwrap();
        assert_eq!((module.entries[0].max_threads(), module.entries[0].min_blocks), (Some(1024), Some(1)));
    }

    #[test]
    fn no_minimum_of_blocks_is_no_directive() {
        let text = applied(&(description("a", 32, 0, "kernels") + ".entry a()\n{ }")).unwrap().text;
        assert!(text.ends_with(".entry a()\n.maxntid 32, 1, 1\n{ }"));
    }

    #[test]
    fn directives_that_are_there_stay() {
        let entry = ".entry a()\n.maxntid 64, 1, 1\n{ }";
        let text = applied(&(description("a", 32, 2, "kernels") + entry)).unwrap().text;
        assert!(text.ends_with(entry), "{text}");
    }

    #[test]
    fn a_kernel_without_bounds_is_named() {
        let error = applied(".visible .entry lonely() { ret; }").unwrap_err();
        assert_eq!(error.entry, "lonely");
        assert!(error.detail.contains("kernel!"));
    }

    #[test]
    fn impossible_descriptions_are_refused() {
        let refused =
            |description: &str| applied(&format!("{description}.entry a() {{ }}")).unwrap_err().detail;
        for threads in [0, 2048] {
            assert!(refused(&description("a", threads, 1, "kernels")).contains(&threads.to_string()));
        }
        for path in ["", "../kernels"] {
            assert!(refused(&description("a", 32, 1, path)).contains("a path"), "{path}");
        }
        assert!(refused(".global .u32 __warpwire_kernel_a[1] = {32};").contains("two 32-bit words"));
    }
}
