//! Refuses PTX that device code must not contain: panics, unscoped atomics and fences, local memory.

use crate::ptx::{Module, Statement};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;

/// One thing that is not allowed, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The entry, or the function where the fault is not tied to one entry.
    pub entry: String,
    /// The line of the PTX text, from 1; 0 where only ptxas knows.
    pub line: usize,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What device code must not do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// It can reach a panic, which on a GPU is an endless loop or a dead context.
    Panic {
        /// The function that stands for the panic.
        callee: String,
    },
    /// An atomic without an order or without a scope: relaxed and of the GPU's scope only, whatever the source said.
    UnscopedAtomic {
        /// The instruction.
        instruction: String,
    },
    /// A fence without a scope.
    UnscopedFence {
        /// The instruction.
        instruction: String,
    },
    /// An array that lies in local memory, which is as slow as global memory.
    LocalMemory,
    /// Registers that ptxas had to spill.
    Spill {
        /// Bytes stored.
        stores: u32,
        /// Bytes loaded.
        loads: u32,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.entry)?;
        if self.line > 0 {
            write!(f, " (line {})", self.line)?;
        }
        match &self.kind {
            FaultKind::Panic { callee } => write!(f, ": reaches the panic path `{callee}`"),
            FaultKind::UnscopedAtomic { instruction } => {
                write!(f, ": `{instruction}` names no order and scope; use the device crate's atomics")
            }
            FaultKind::UnscopedFence { instruction } => write!(f, ": `{instruction}` names no scope"),
            FaultKind::LocalMemory => {
                write!(
                    f,
                    ": keeps data in local memory; index arrays by constants, or allow it for this entry"
                )
            }
            FaultKind::Spill { stores, loads } => {
                write!(f, ": ptxas spills registers ({stores} bytes stored, {loads} loaded)")
            }
        }
    }
}

/// Parts of symbols that only panicking code has.
const PANIC_MARKS: [&str; 12] = [
    "panicking",
    "rust_begin_unwind",
    "panic_fmt",
    "panic_bounds_check",
    "panic_nounwind",
    "panic_const",
    "unwrap_failed",
    "expect_failed",
    "slice_index_fail",
    "index_len_fail",
    "index_order_fail",
    "len_mismatch_fail",
];

const ORDERS: [&str; 4] = ["relaxed", "acquire", "release", "acq_rel"];
const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

/// Every fault of a module, except those that only ptxas can see. `local_allowed` names entries that may keep data in
/// local memory.
pub(crate) fn check(module: &Module<'_>, local_allowed: &BTreeSet<String>) -> Vec<Fault> {
    let graph = Graph::new(module);
    let mut faults = Vec::new();
    for entry in &module.entries {
        for function in graph.reachable(entry.name, &entry.body) {
            let mut report = |line, kind| faults.push(Fault { entry: entry.name.to_owned(), line, kind });
            for statement in module.statements(&function) {
                if let Some(callee) = statement.tokens.iter().find(|word| is_panic(word)) {
                    report(statement.line, FaultKind::Panic { callee: (*callee).to_owned() });
                }
                if let Some(kind) = instruction_fault(&statement) {
                    report(statement.line, kind);
                }
                if is_depot(&statement) && !local_allowed.contains(entry.name) {
                    report(statement.line, FaultKind::LocalMemory);
                }
            }
        }
    }
    faults
}

fn is_panic(word: &str) -> bool {
    PANIC_MARKS.iter().any(|mark| word.contains(mark))
}

fn is_depot(statement: &Statement<'_>) -> bool {
    statement.opcode() == ".local" && statement.tokens.iter().any(|word| word.starts_with("__local_depot"))
}

fn instruction_fault(statement: &Statement<'_>) -> Option<FaultKind> {
    let instruction = statement.opcode();
    let mut parts = instruction.split('.').filter(|part| !part.is_empty());
    let mut family = parts.next()?;
    let qualifiers: Vec<&str> = parts.collect();
    if family == "multimem" {
        // `multimem.red` is an atomic; `multimem.ld_reduce` and `.st` may be weak, like any load and store.
        family = qualifiers.first()?;
    }
    let has = |set: &[&str]| qualifiers.iter().any(|qualifier| set.contains(qualifier));
    match family {
        "atom" | "red" if !(has(&ORDERS) && has(&SCOPES)) => {
            Some(FaultKind::UnscopedAtomic { instruction: instruction.to_owned() })
        }
        // A proxy fence orders kinds of access, not threads, and has no scope unless it also synchronises.
        "fence" if !has(&SCOPES) && !has(&["proxy"]) => {
            Some(FaultKind::UnscopedFence { instruction: instruction.to_owned() })
        }
        "membar" if !has(&["cta", "gl", "sys", "proxy"]) => {
            Some(FaultKind::UnscopedFence { instruction: instruction.to_owned() })
        }
        _ => None,
    }
}

/// Which function mentions which. A function that nothing reaches cannot run, so it is not looked at.
struct Graph<'m, 'a> {
    module: &'m Module<'a>,
    bodies: HashMap<&'a str, Range<usize>>,
}

impl<'m, 'a> Graph<'m, 'a> {
    fn new(module: &'m Module<'a>) -> Self {
        let defined = module.functions.iter().filter(|function| !function.body.is_empty());
        Graph { module, bodies: defined.map(|function| (function.name, function.body.clone())).collect() }
    }

    /// The bodies that an entry can run: its own first. Panicking functions are named by their callers, not entered.
    fn reachable(&self, entry: &'a str, body: &Range<usize>) -> Vec<Range<usize>> {
        let mut seen = BTreeSet::from([entry]);
        let mut found = vec![body.clone()];
        let mut at = 0;
        while let Some(body) = found.get(at).cloned() {
            at += 1;
            for statement in self.module.statements(&body) {
                for word in statement.tokens {
                    if let Some(body) = self.bodies.get(word).filter(|_| !is_panic(word))
                        && seen.insert(word)
                    {
                        found.push(body.clone());
                    }
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(body: &str) -> Vec<Fault> {
        let text = format!(".version 8.0\n.target sm_90\n.visible .entry k()\n{{\n{body}\n}}\n");
        check(&Module::parse(&text).unwrap(), &BTreeSet::new())
    }

    #[test]
    fn good_code_passes() {
        let body = "atom.acq_rel.sys.global.add.u64 %rd1, [%rd2], 1;\n@%p1 red.release.gpu.global.add.u64 [a], 1;\nfence.acq_rel.sys;\nfence.proxy.async;\nmembar.gl;\nredux.sync.add.s32 %r1, %r2, -1;\nmultimem.red.release.sys.global.add.f32 [a], %f1;\nmultimem.ld_reduce.weak.global.add.f32 %f1, [a];";
        assert_eq!(faults(body), []);
    }

    #[test]
    fn atomics_need_order_and_scope() {
        for body in [
            "atom.global.add.u64 %rd1, [a], 1;",
            "red.release.global.add.u64 [a], 1;",
            "@%p1 atom.gpu.global.add.u32 %r1, [a], 1;",
            "multimem.red.global.add.f32 [a], %f1;",
        ] {
            let found = faults(body);
            assert_eq!(found.len(), 1, "{body}");
            assert_eq!((found[0].entry.as_str(), found[0].line), ("k", 5));
            assert!(matches!(found[0].kind, FaultKind::UnscopedAtomic { .. }));
        }
    }

    #[test]
    fn fences_need_a_scope() {
        assert!(matches!(
            faults("ret;\nfence.acq_rel;")[..],
            [Fault { line: 6, kind: FaultKind::UnscopedFence { .. }, .. }]
        ));
        assert!(matches!(faults("membar;")[..], [Fault { kind: FaultKind::UnscopedFence { .. }, .. }]));
    }

    #[test]
    fn local_memory_needs_leave() {
        let text = ".version 8.0\n.target sm_90\n.entry k() {\n.local .align 16 .b8 __local_depot0[16];\n}";
        let module = Module::parse(text).unwrap();
        assert_eq!(check(&module, &BTreeSet::new())[0].kind, FaultKind::LocalMemory);
        assert_eq!(check(&module, &BTreeSet::from(["k".to_owned()])), []);
    }

    #[test]
    fn a_panic_is_found_through_a_helper_and_names_the_entry() {
        let text = ".version 8.0\n.target sm_90\n.func helper() {\ncall.uni _ZN4core9panicking9panic_fmt17h0E, (a);\n}\n.func _ZN4core9panicking9panic_fmt17h0E() { bra $L; }\n.entry guilty() {\ncall.uni helper;\n}\n.entry innocent() { ret; }";
        let found = check(&Module::parse(text).unwrap(), &BTreeSet::new());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].entry.as_str(), found[0].line), ("guilty", 4));
        assert!(found[0].to_string().contains("panic_fmt"));
    }
}
