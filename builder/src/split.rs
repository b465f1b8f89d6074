//! Cuts a PTX module into several, so that a driver compiles what is asked for, and not all that was compiled together.

use crate::ptx::Module;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Cuts a module into one for each value that `part_of` gives its entries by name, in the order of the values.
///
/// Each part is a whole module: the directives that are about all of it, its entries, and the functions and variables that
/// these reach, in the text's order. What several parts reach stands in each of them; what no entry reaches stands in none.
pub(crate) fn split<K: Ord>(module: &Module<'_>, part_of: impl Fn(&str) -> K) -> Vec<(K, String)> {
    let graph = Graph::new(module);
    let mut parts: BTreeMap<K, BTreeSet<usize>> = BTreeMap::new();
    for entry in &module.entries {
        graph.reach(entry.name, parts.entry(part_of(entry.name)).or_default());
    }
    let assemble = |items: BTreeSet<usize>| {
        let head = module.items.first().map_or(module.text.len(), |item| item.span.start);
        let mut text = module.text[..head].to_owned();
        for (i, item) in module.items.iter().enumerate() {
            if item.name.is_none() || items.contains(&i) {
                text.push_str(&module.text[item.span.clone()]);
            }
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    };
    parts.into_iter().map(|(key, items)| (key, assemble(items))).collect()
}

/// Which item of a module mentions which symbol.
struct Graph<'m, 'a> {
    module: &'m Module<'a>,
    /// By symbol, its items: a function may be declared before it is defined.
    items: HashMap<&'a str, Vec<usize>>,
}

impl<'m, 'a> Graph<'m, 'a> {
    fn new(module: &'m Module<'a>) -> Self {
        let mut items: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, item) in module.items.iter().enumerate() {
            if let Some(name) = item.name {
                items.entry(name).or_default().push(i);
            }
        }
        Graph { module, items }
    }

    /// Adds a symbol's items, and those of all that they reach. A local name that is also a symbol's counts as that: a part
    /// may hold more than it needs, never less.
    fn reach(&self, symbol: &str, reached: &mut BTreeSet<usize>) {
        let mut next: Vec<usize> = self.items.get(symbol).into_iter().flatten().copied().collect();
        while let Some(i) = next.pop() {
            if !reached.insert(i) {
                continue;
            }
            for statement in self.module.statements(&self.module.items[i].span) {
                let mentioned = statement.tokens.iter().filter_map(|word| self.items.get(word));
                next.extend(mentioned.flatten().filter(|item| !reached.contains(item)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "//\n// made by hand\n//\n.version 8.0\n.target sm_90\n.address_size 64";
    const RING: &str = "\n.extern .shared .align 16 .b8 ring[];";
    const TABLE: &str = "\n.global .align 4 .b8 table[4] = {1};";
    const DEAD: &str = "\n.global .align 4 .b8 dead[4];";
    const DECLARED: &str = "\n.func report(.param .b64 report_param_0)\n;";
    const PUT: &str = "\n\t// .globl\tput\n.visible .entry put() {\n\tmov.u64 %rd1, ring; // report\n}";
    const WAIT: &str = "\n.visible .entry wait() {\n$L:\n\t@%p1 bra $L;\n\tcall.uni report, (a);\n}";
    const HOP: &str = "\n.visible .entry hop() {\n\tcall.uni report, (a);\n\tcall.uni hop;\n}";
    const DEFINED: &str = "\n.func report(.param .b64 report_param_0)\n{\n\tld.global.u32 %r1, [table+4];\n}";
    const END: &str = "\n\t// -- End function\n";

    fn parts(part_of: impl Fn(&str) -> &'static str) -> Vec<(&'static str, String)> {
        let text = [HEAD, RING, TABLE, DEAD, DECLARED, PUT, WAIT, HOP, DEFINED, END].concat();
        split(&Module::parse(&text).unwrap(), part_of)
    }

    #[test]
    fn each_part_is_a_module_with_what_its_entries_reach() {
        let parts = parts(|entry| if entry == "put" { "transfer" } else { "ping_pong" });
        let hops = [HEAD, TABLE, DECLARED, WAIT, HOP, DEFINED, END].concat();
        let transfer = [HEAD, RING, PUT, END].concat();
        assert_eq!(parts, [("ping_pong", hops), ("transfer", transfer)]);
    }

    #[test]
    fn one_part_is_the_whole_without_what_nothing_reaches() {
        let whole = [HEAD, RING, TABLE, DECLARED, PUT, WAIT, HOP, DEFINED, END].concat();
        assert_eq!(parts(|_| "all"), [("all", whole)]);
    }

    #[test]
    fn every_entry_is_in_one_part_and_every_symbol_defined_where_it_is_named() {
        let of: [(&str, &str); 3] = [("put", "c"), ("wait", "a"), ("hop", "b")];
        let parts = parts(|entry| of.iter().find(|(name, _)| *name == entry).unwrap().1);
        let mut entries = Vec::new();
        for (part, text) in &parts {
            let module = Module::parse(text).unwrap();
            entries.extend(module.entries.iter().map(|entry| (entry.name, *part)));
            let names: Vec<_> = module.items.iter().filter_map(|item| item.name).collect();
            let spans = module.items.iter().map(|item| &item.span);
            let words: Vec<_> = spans
                .flat_map(|span| module.statements(span))
                .flat_map(|statement| statement.tokens)
                .collect();
            for symbol in ["ring", "table", "report"].into_iter().filter(|symbol| words.contains(symbol)) {
                assert!(names.contains(&symbol), "{symbol} in {part}");
            }
            assert!(!names.contains(&"dead"));
        }
        assert_eq!(entries, [("wait", "a"), ("hop", "b"), ("put", "c")]);
    }

    #[test]
    fn a_module_without_entries_has_no_parts() {
        let module = Module::parse(HEAD).unwrap();
        assert!(split(&module, str::to_owned).is_empty());
    }
}
