//! Brings a compiler where there is none: `--install`.

use super::{NoToolchain, Search, Toolchain};
use crate::debian::{self, Packages};
use crate::process;
use crate::progress::Progress;
use std::fmt;
use std::process::Command;

/// What was tried to bring a tool, and how each attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotProvided {
    /// The tool.
    pub what: String,
    /// Each attempt with its outcome.
    pub attempts: Vec<(String, String)>,
}

impl fmt::Display for NotProvided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} could not be brought; tried:", self.what)?;
        for (attempt, outcome) in &self.attempts {
            write!(f, "\n  {attempt}: {outcome}")?;
        }
        Ok(())
    }
}

impl std::error::Error for NotProvided {}

/// Finds a compiler, and brings one if there is none. What changes least comes first: rustup's component for the
/// toolchain that is there, packages unpacked into the tools' folder, and only then packages installed for everybody.
pub fn provide(search: &Search, progress: &dyn Progress) -> Result<Toolchain, NotProvided> {
    if let Ok(toolchain) = search.find() {
        return Ok(toolchain);
    }
    let mut attempts = Vec::new();
    for method in [Method::RustupComponent, Method::Unpack, Method::AptInstall] {
        progress.step(&format!("getting a compiler for PTX: {}", method.describe()));
        let outcome = method.run(search, progress).and_then(|()| search.find().map_err(still_missing));
        match outcome {
            Ok(toolchain) => return Ok(toolchain),
            Err(reason) => attempts.push((method.describe().to_owned(), reason)),
        }
    }
    Err(NotProvided { what: "a Rust compiler that can build PTX".into(), attempts })
}

fn still_missing(missing: NoToolchain) -> String {
    let reasons: Vec<_> = missing
        .tried
        .iter()
        .map(|(origin, reason)| format!("{}: {reason}", super::candidate::place(*origin)))
        .collect();
    format!("done, yet no compiler is usable ({})", reasons.join("; "))
}

/// The compiler and the sources of its `core`. Only linking needs what is left out, and PTX is never linked; or every system
/// has it.
const PACKAGES: Packages = Packages {
    what: "the compiler",
    names: &["rustc-web", "rust-web-src"],
    not_needed: &["gcc", "binutils", "libc6-dev", "libc-dev", "libc6", "libgcc-s1"],
};

#[derive(Clone, Copy)]
enum Method {
    RustupComponent,
    Unpack,
    AptInstall,
}

impl Method {
    fn describe(self) -> &'static str {
        match self {
            Method::RustupComponent => "rustup component add rust-src",
            Method::Unpack => "Debian's rustc-web and rust-web-src, unpacked under target/warpwire-tools",
            Method::AptInstall => "apt-get install rustc-web rust-web-src",
        }
    }

    fn run(self, search: &Search, progress: &dyn Progress) -> Result<(), String> {
        match self {
            Method::RustupComponent => {
                if process::in_path("rustup").is_none() {
                    return Err("there is no rustup".into());
                }
                let mut command = Command::new("rustup");
                command.args(["component", "add", "rust-src"]).current_dir(&search.folder);
                process::output(&mut command).map(drop).map_err(|error| error.to_string())
            }
            Method::Unpack => debian::unpack(&PACKAGES, &search.unpacked_root(), &search.tools, progress),
            Method::AptInstall => debian::install(&PACKAGES),
        }
    }
}
