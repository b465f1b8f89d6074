//! `xtask/bench/sass.json`: what each entry took when it was last looked at and found good.

use super::listing::Code;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The version of the format.
const FORMAT: u32 = 1;

/// By how much a number may grow unblessed, in percent.
const TOLERANCE: u32 = 5;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    format: u32,
    /// By architecture.
    pub architectures: BTreeMap<String, Recorded>,
}

/// One architecture's entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The compiler that wrote the PTX.
    pub compiler: String,
    /// The ptxas that assembled it.
    pub ptxas: String,
    /// By entry.
    pub entries: BTreeMap<String, Size>,
}

/// What is watched of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Registers of each thread.
    pub registers: u32,
    /// Instructions.
    pub instructions: u32,
    /// Accesses to local memory.
    pub spills: u32,
}

impl Size {
    /// Of an entry's code.
    pub fn of(code: &Code) -> Size {
        Size { registers: code.registers, instructions: code.instructions, spills: code.spills }
    }
}

impl Record {
    /// Nothing recorded.
    pub fn empty() -> Record {
        Record { format: FORMAT, architectures: BTreeMap::new() }
    }

    /// Reads the file; empty where there is none.
    pub fn read(path: &Path) -> Result<Record> {
        let shown = path.display();
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Record::empty()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        };
        let record: Record = serde_json::from_str(&text).with_context(|| format!("{shown} is no record"))?;
        ensure!(
            record.format == FORMAT,
            "{shown} has format {}, and {FORMAT} is known: bless it anew",
            record.format
        );
        Ok(record)
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Recorded {
    /// What grew beyond the record, a line each. Entries that the record does not have cannot have grown.
    pub fn regressions(&self, now: &BTreeMap<String, Size>) -> Vec<String> {
        let mut found = Vec::new();
        for (entry, size) in now {
            let Some(old) = self.entries.get(entry) else { continue };
            let watched = [
                ("registers", old.registers, size.registers),
                ("instructions", old.instructions, size.instructions),
            ];
            for (what, before, after) in watched {
                // In integers, so that the limit is exact.
                if u64::from(after) * 100 > u64::from(before) * u64::from(100 + TOLERANCE) {
                    found.push(format!(
                        "{entry}: {after} {what}, {before} recorded (more than {TOLERANCE} % beyond)"
                    ));
                }
            }
            if size.spills > old.spills {
                found.push(format!(
                    "{entry}: {} accesses to local memory, {} recorded",
                    size.spills, old.spills
                ));
            }
        }
        found
    }

    /// Entries that the record does not have.
    pub fn unknown<'n>(&self, now: &'n BTreeMap<String, Size>) -> Vec<&'n str> {
        now.keys().filter(|entry| !self.entries.contains_key(*entry)).map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(registers: u32, instructions: u32, spills: u32) -> BTreeMap<String, Size> {
        BTreeMap::from([("probe_wait".to_owned(), Size { registers, instructions, spills })])
    }

    fn recorded() -> Recorded {
        Recorded { compiler: "rustc".into(), ptxas: "13.0.88".into(), entries: sizes(20, 100, 0) }
    }

    #[test]
    fn growth_beyond_the_tolerance_and_any_spill_are_regressions() {
        assert!(recorded().regressions(&sizes(21, 105, 0)).is_empty());
        assert!(recorded().regressions(&sizes(8, 10, 0)).is_empty());
        let found = recorded().regressions(&sizes(22, 106, 1));
        assert_eq!(found.len(), 3);
        assert!(found[0].contains("probe_wait: 22 registers, 20 recorded"), "{found:?}");
        assert!(found[1].contains("106 instructions, 100 recorded"), "{found:?}");
        assert!(found[2].contains("1 accesses to local memory, 0 recorded"), "{found:?}");
    }

    #[test]
    fn new_entries_are_told_apart() {
        let mut now = sizes(20, 100, 0);
        now.insert("probe_new".into(), Size { registers: 1, instructions: 1, spills: 1 });
        assert!(recorded().regressions(&now).is_empty());
        assert_eq!(recorded().unknown(&now), ["probe_new"]);
    }

    #[test]
    fn it_comes_back_as_written() {
        let path = std::env::temp_dir().join(format!("warpwire-sass-{}.json", std::process::id()));
        assert_eq!(Record::read(&path).unwrap(), Record::empty());
        let mut record = Record::empty();
        record.architectures.insert("sm_90".into(), recorded());
        record.write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap(), record);
        fs::write(&path, fs::read_to_string(&path).unwrap().replace("\"format\": 1", "\"format\": 9"))
            .unwrap();
        assert!(Record::read(&path).unwrap_err().to_string().contains("bless"));
        fs::remove_file(path).unwrap();
    }
}
