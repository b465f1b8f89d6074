//! Counts tests by kind out of cargo's own output.

use std::collections::BTreeMap;
use std::fmt;

/// Tests that passed, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    passed: BTreeMap<&'static str, usize>,
    ignored: usize,
}

/// What the name of a test binary's source says of the kind of its tests; the first match counts.
const KINDS: [(&str, &str); 17] = [
    ("loom", "loom models"),
    ("prop", "property"),
    ("golden", "golden PTX"),
    ("compile_fail", "compile-fail"),
    ("ui", "compile-fail"),
    ("abi", "layout"),
    ("sanitize", "sanitised code"),
    ("gpu", "GPU"),
    ("cuda", "CUDA stand-in"),
    ("multi", "multi-process"),
    ("rdma", "RDMA"),
    // The host crate's own: each launches kernels on the CPU device.
    ("cpu", "CPU device"),
    ("blocks", "CPU device"),
    ("kernels", "CPU device"),
    ("launches", "CPU device"),
    ("streams", "CPU device"),
    ("waits", "CPU device"),
];

impl Counts {
    /// Adds another step's.
    pub fn merge(&mut self, other: &Counts) {
        for (kind, count) in &other.passed {
            *self.passed.entry(kind).or_default() += count;
        }
        self.ignored += other.ignored;
    }

    /// How many passed, if any tests ran at all.
    pub fn total(&self) -> Option<usize> {
        (!self.passed.is_empty()).then(|| self.passed.values().sum())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.passed.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        f.write_str(&kinds.join(", "))?;
        if self.ignored > 0 {
            write!(f, "; ignored {}", self.ignored)?;
        }
        Ok(())
    }
}

/// Follows cargo's output, line by line: `Running tests/loom.rs (…)` says whose `test result: …` comes next.
#[derive(Debug, Default)]
pub struct Counter {
    kind: Option<&'static str>,
    counts: Counts,
}

impl Counter {
    /// Takes the next line.
    pub fn line(&mut self, line: &str) {
        let line = line.trim_start();
        if let Some(source) = line.strip_prefix("Running ") {
            self.kind = Some(kind_of(source));
        } else if line.starts_with("Doc-tests ") {
            self.kind = Some("doc");
        } else if let Some(result) = line.strip_prefix("test result: ") {
            let kind = self.kind.unwrap_or("unit");
            let passed = number_before(result, " passed");
            if passed > 0 {
                *self.counts.passed.entry(kind).or_default() += passed;
            }
            self.counts.ignored += number_before(result, " ignored");
        }
    }

    /// What was counted.
    pub fn counts(self) -> Counts {
        self.counts
    }
}

fn kind_of(source: &str) -> &'static str {
    if source.starts_with("unittests") {
        return "unit";
    }
    let name = source.split(" (").next().unwrap_or(source);
    KINDS.iter().find(|(mark, _)| name.contains(mark)).map_or("across crates", |(_, kind)| kind)
}

fn number_before(text: &str, mark: &str) -> usize {
    let number = text.split_once(mark).and_then(|(before, _)| before.rsplit([' ', ';']).next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_output_is_counted_by_kind() {
        let mut counter = Counter::default();
        for line in [
            "     Running unittests src/lib.rs (target/debug/deps/warpwire_build-1)",
            "test result: ok. 31 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.15s",
            "     Running tests/loom.rs (target/debug/deps/loom-1)",
            "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.15s",
            "     Running tests/compile_fail.rs (target/debug/deps/compile_fail-1)",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.15s",
            "   Doc-tests warpwire",
            "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
        ] {
            counter.line(line);
        }
        let counts = counter.counts();
        assert_eq!(counts.total(), Some(43));
        assert_eq!(counts.to_string(), "compile-fail 1, doc 7, loom models 4, unit 31; ignored 1");
    }
}
