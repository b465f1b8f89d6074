//! Runs ptxas and reads what it says of each kernel.

use super::{Tool, find};
use crate::arch::Arch;
use crate::environment;
use crate::error::Error;
use crate::manifest::Resources;
use crate::process;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// NVIDIA's assembler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptxas {
    /// The program.
    pub tool: Tool,
    /// Its version, `13.0.88`.
    pub version: String,
}

/// What came of assembling a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// It was taken; what each entry uses.
    Taken(HashMap<String, Resources>),
    /// This ptxas is too old for the architecture or the PTX version, which says nothing about the file.
    TooOld(String),
}

impl Ptxas {
    /// The ptxas that `WARPWIRE_PTXAS` names, or the first that [`find`] finds and that runs.
    pub fn find(explicit: Option<&Path>, tools: &Path) -> Option<Ptxas> {
        let named = explicit.map(Path::to_owned).or_else(|| environment::path(environment::PTXAS));
        let tool = match named {
            Some(path) => Tool { path, origin: environment::PTXAS },
            None => find("ptxas", tools)?,
        };
        let text = process::output(Command::new(&tool.path).arg("--version")).ok()?;
        Some(Ptxas { tool, version: parse_version(&text)? })
    }

    /// Assembles a file into `cubin`.
    pub(crate) fn assemble(&self, arch: Arch, ptx: &Path, cubin: &Path) -> Result<Assembled, Error> {
        let mut command = Command::new(&self.tool.path);
        command.args(["-v", &format!("-arch={arch}")]).arg(ptx).arg("-o").arg(cubin);
        match process::both(&mut command) {
            // ptxas reports on standard error, and some versions on standard output.
            Ok((stdout, stderr)) => Ok(Assembled::Taken(parse_report(&format!("{stdout}\n{stderr}")))),
            Err(Error::Command { detail, .. }) if is_too_old(&detail) => Ok(Assembled::TooOld(detail)),
            Err(Error::Command { detail, .. }) => Err(Error::Assemble { arch, detail }),
            Err(other) => Err(other),
        }
    }
}

fn is_too_old(said: &str) -> bool {
    said.contains("is not defined for option 'gpu-name'") || said.contains("Unsupported .version")
}

fn parse_version(text: &str) -> Option<String> {
    let start = text.find(", V")? + 3;
    let rest = text.get(start..)?;
    let version: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    (!version.is_empty()).then_some(version)
}

/// Reads the report of `ptxas -v`: of each function a line that names it, one of its stack and spills, and one of its
/// registers and memory.
fn parse_report(report: &str) -> HashMap<String, Resources> {
    let mut all: HashMap<String, Resources> = HashMap::new();
    let (mut entry, mut properties_of) = (None, None);
    for line in report.lines() {
        if let Some(name) = between(line, "Compiling entry function '", "'") {
            entry = Some(name);
            all.entry(name.to_owned()).or_default();
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            properties_of = Some(name.trim());
        } else if line.contains("bytes stack frame") {
            // Functions that are no entries have properties too, in between.
            if let Some(found) = properties_of.and_then(|name| all.get_mut(name)) {
                found.stack = before(line, " bytes stack frame");
                found.spill_stores = before(line, " bytes spill stores");
                found.spill_loads = before(line, " bytes spill loads");
            }
        } else if line.contains(" registers")
            && let Some(found) = entry.and_then(|name| all.get_mut(name))
        {
            found.registers = before(line, " registers");
            found.shared = before(line, " bytes smem");
        }
    }
    all
}

fn between<'t>(line: &'t str, start: &str, end: &str) -> Option<&'t str> {
    Some(line.split_once(start)?.1.split_once(end)?.0)
}

/// The number right before a text; 0 where the text is not there.
fn before(line: &str, text: &str) -> u32 {
    let number = line.split_once(text).and_then(|(head, _)| head.rsplit([' ', ',']).next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'exp_entry' for 'sm_90'
ptxas info    : Function properties for exp_entry
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem, 592 bytes cmem[0]
ptxas info    : Compile time = 3.1 ms
ptxas info    : Function properties for helper
    640 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'tiny' for 'sm_90'
ptxas info    : Function properties for tiny
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers
";

    #[test]
    fn the_report_is_read() {
        let all = parse_report(REPORT);
        let expected = Resources { registers: 24, shared: 1024, stack: 16, spill_stores: 8, spill_loads: 12 };
        assert_eq!(all["exp_entry"], expected);
        assert_eq!(all["tiny"], Resources { registers: 4, ..Resources::default() });
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn the_version_is_read() {
        let text = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.0, V13.0.88\nBuild x";
        assert_eq!(parse_version(text).as_deref(), Some("13.0.88"));
        assert_eq!(parse_version("nonsense"), None);
    }

    #[test]
    fn an_old_ptxas_is_told_from_bad_text() {
        assert!(is_too_old("ptxas fatal   : Value 'sm_103' is not defined for option 'gpu-name'"));
        assert!(is_too_old(
            "ptxas x.ptx, line 5; fatal   : Unsupported .version 9.9; current version is '9.0'"
        ));
        assert!(!is_too_old("ptxas x.ptx, line 9; error : Unknown symbol"));
    }
}
