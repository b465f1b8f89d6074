//! Launch bounds: rustc has no attribute for them, so they travel as static variables and are put in place here.
//!
//! Without `.maxntid` ptxas may give a kernel more registers than its threads can have, and the launch fails. The
//! `kernel!` macro therefore emits a static `__warpwire_bounds_ENTRY` of two 32-bit words (the most threads of a
//! block, and the blocks that must fit one multiprocessor), which becomes the entry's directives and is removed.

use crate::ptx::Module;

/// What the statics' names start with; the entry's name follows.
const PREFIX: &str = "__warpwire_bounds_";

/// No GPU launches larger blocks.
const MAX_THREADS: u32 = 1024;

/// An entry without usable bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadBounds {
    pub(crate) entry: String,
    pub(crate) detail: String,
}

/// Rewrites the module's text: each entry with its directives, and no bounds statics.
pub(crate) fn apply(module: &Module<'_>) -> Result<String, BadBounds> {
    let mut edits: Vec<(usize, usize, String)> = Vec::new();
    for entry in &module.entries {
        if entry.maxntid.is_some() {
            continue; // a compiler that has learnt to write them
        }
        let name = format!("{PREFIX}{}", entry.name);
        let Some(global) = module.globals.iter().find(|global| global.name == name) else {
            return Err(bad(entry.name, "has no launch bounds; define it with the `kernel!` macro".into()));
        };
        let (threads, blocks) = words(&global.bytes())
            .ok_or_else(|| bad(entry.name, format!("`{name}` does not hold two 32-bit words")))?;
        if threads == 0 || threads > MAX_THREADS {
            let detail = format!("its bound of {threads} threads is not between 1 and {MAX_THREADS}");
            return Err(bad(entry.name, detail));
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
    Ok(rewrite(module.text, edits))
}

fn words(bytes: &[u8]) -> Option<(u32, u32)> {
    let bytes: [u8; 8] = bytes.try_into().ok()?;
    let [a, b, c, d, e, f, g, h] = bytes;
    Some((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])))
}

fn bad(entry: &str, detail: String) -> BadBounds {
    BadBounds { entry: entry.to_owned(), detail }
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

    fn applied(rest: &str) -> Result<String, BadBounds> {
        let text = format!("{HEAD}{rest}");
        apply(&Module::parse(&text).unwrap())
    }

    #[test]
    fn bounds_move_from_the_static_to_the_entry() {
        let text = applied(
            ".visible .global .align 4 .b8 __warpwire_bounds_a[8] = {0, 4, 0, 0, 1};\n.visible .entry a(\n\t.param .u64 a_param_0\n)\n{ ret; }\n",
        )
        .unwrap();
        assert!(
            text.ends_with("\t.param .u64 a_param_0\n)\n.maxntid 1024, 1, 1\n.minnctapersm 1\n{ ret; }\n")
        );
        assert!(!text.contains(PREFIX));
        let module = Module::parse(&text).unwrap();
        assert_eq!((module.entries[0].max_threads(), module.entries[0].min_blocks), (Some(1024), Some(1)));
    }

    #[test]
    fn words_and_no_minimum() {
        let text =
            applied(".visible .global .align 4 .u32 __warpwire_bounds_a[2] = {32, 0};\n.entry a()\n{ }")
                .unwrap();
        assert!(text.ends_with(".entry a()\n.maxntid 32, 1, 1\n{ }"));
    }

    #[test]
    fn a_kernel_without_bounds_is_named() {
        let error = applied(".visible .entry lonely() { ret; }").unwrap_err();
        assert_eq!(error.entry, "lonely");
        assert!(error.detail.contains("kernel!"));
    }

    #[test]
    fn impossible_bounds_are_refused() {
        let text = ".global .u32 __warpwire_bounds_a[2] = {2048, 1};\n.entry a() { }";
        assert!(applied(text).unwrap_err().detail.contains("2048"));
        assert!(applied(".global .u32 __warpwire_bounds_a[1] = {32};\n.entry a() { }").is_err());
    }
}
