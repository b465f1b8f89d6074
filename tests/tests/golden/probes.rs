//! The probes' PTX.

use std::path::Path;
use std::sync::OnceLock;

use warpwire_build::ptx::Module;
use warpwire_build::{Arch, Builder, Error};
use warpwire_tests::ptx::{Flow, Instruction};
use warpwire_tests::skip;

/// The PTX of the probes for one architecture.
pub struct Probes {
    /// Which one, for messages.
    pub arch: Arch,
    text: String,
}

impl Probes {
    /// The flow of one probe.
    pub fn flow(&self, entry: &str) -> Flow {
        Flow::of(&self.module(), entry)
    }

    /// All of it.
    pub fn module(&self) -> Module<'_> {
        Module::parse(&self.text).expect("the builder has read it before")
    }
}

/// Runs `check` on each architecture's PTX; says why where there is none.
pub fn each(test: &str, check: impl Fn(&Probes)) {
    match compiled() {
        Ok(probes) => probes.iter().for_each(check),
        Err(Missing::Compiler(why)) if !skip::is_required("WARPWIRE_REQUIRE_PTX") => skip::skipped(test, why),
        Err(Missing::Compiler(why) | Missing::Ptx(why)) => panic!("the probes do not become PTX: {why}"),
    }
}

/// Why there are no probes.
enum Missing {
    /// No compiler here writes PTX.
    Compiler(String),
    /// One does, and it failed.
    Ptx(String),
}

/// Compiled once in this process, and kept in cargo's folder for the tests' files, where the next run finds it up to date.
fn compiled() -> Result<&'static [Probes], &'static Missing> {
    static COMPILED: OnceLock<Result<Vec<Probes>, Missing>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let built = Builder::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("probes"))
            .architectures(Arch::DEFAULT)
            .out_dir(target.join("probes"))
            .work_dir(target.join("probes-work"))
            .build();
        let files = match built {
            Ok(output) => output.files(),
            Err(Error::NoToolchain(missing)) => return Err(Missing::Compiler(missing.to_string())),
            Err(error) => return Err(Missing::Ptx(error.to_string())),
        };
        let arch = |number| Arch::DEFAULT.into_iter().find(|arch| arch.number() == number);
        let read = |(number, path)| Probes {
            arch: arch(number).expect("only these were asked for"),
            text: std::fs::read_to_string(path).expect("the builder has just written it"),
        };
        Ok(files.into_iter().map(read).collect())
    });
    compiled.as_deref()
}

/// The mnemonics of `instructions` that `wanted` names, in the text's order.
pub fn opcodes(flow: &Flow, wanted: impl Fn(&Instruction) -> bool) -> Vec<&str> {
    flow.positions(wanted).into_iter().map(|i| flow.instructions[i].opcode.as_str()).collect()
}
