//! Finds a Rust compiler that can write PTX, or brings one.
//!
//! Any rustc from 1.95 on with LLVM's NVPTX backend will do, as long as the sources of `core` that lie in its own
//! sysroot are there: another version's do not compile. Looked at, in this order:
//!
//! 1. the compiler that `WARPWIRE_RUSTC` or [`Builder::rustc`](crate::Builder::rustc) names;
//! 2. the active toolchain (`rustc` in `PATH`), whose sources are rustup's component `rust-src`;
//! 3. the distribution's `/usr/bin/rustc`, such as Debian's `rustc-web` with `rust-web-src`;
//! 4. the one that [`provide`] unpacked into the tools' folder.

mod candidate;
mod provide;

pub use candidate::{Candidate, Unusable};
pub use provide::{NotProvided, provide};

use crate::environment;
use crate::process;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiler that can write PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// Its version as it says it itself, `rustc 1.95.0 (…)`.
    pub version: String,
    /// How it was found.
    pub origin: Origin,
    /// The folder with its shared libraries, where the system's loader does not know it.
    pub(crate) library_path: Option<PathBuf>,
}

impl Toolchain {
    /// Which compiler this is and why it was taken, in one line.
    pub fn describe(&self) -> String {
        format!("{}, {} ({})", self.version, self.origin, self.rustc.display())
    }
}

/// Where a compiler comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// Named by the user.
    Explicit,
    /// `rustc` in `PATH`, usually rustup's.
    Active,
    /// The distribution's.
    System,
    /// Unpacked by an earlier `--install`.
    Unpacked,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Explicit => "named by the user",
            Origin::Active => "the active toolchain, with its own sources of core",
            Origin::System => "the distribution's, with its own sources of core",
            Origin::Unpacked => "unpacked by an earlier --install",
        })
    }
}

/// Where to look.
#[derive(Debug, Clone)]
pub struct Search {
    /// The compiler that the user names; nothing else is looked at then.
    pub explicit: Option<PathBuf>,
    /// The folder with the tools that were brought.
    pub tools: PathBuf,
    /// The folder whose active toolchain counts.
    pub folder: PathBuf,
}

impl Search {
    /// What the environment says, for a crate in `workspace`.
    pub fn from_environment(workspace: &Path) -> Search {
        Search {
            explicit: environment::path(environment::RUSTC),
            tools: tools_folder(workspace),
            folder: workspace.to_owned(),
        }
    }

    /// Every place that is looked at, with what was found there.
    pub fn candidates(&self) -> Vec<Candidate> {
        if let Some(rustc) = &self.explicit {
            return vec![Candidate::examine(Origin::Explicit, Some(rustc.clone()), None)];
        }
        let active = self.active_rustc();
        let system = Some(PathBuf::from("/usr/bin/rustc")).filter(|rustc| rustc.is_file());
        let system = system.filter(|rustc| active.as_ref() != Some(rustc));
        let unpacked = self.unpacked_root();
        let libraries = crate::debian::library_folder(&unpacked);
        let unpacked = Some(unpacked.join("usr/bin/rustc")).filter(|rustc| rustc.is_file());
        vec![
            Candidate::examine(Origin::Active, active, None),
            Candidate::examine(Origin::System, system, None),
            Candidate::examine(Origin::Unpacked, unpacked, libraries),
        ]
    }

    /// The first usable compiler.
    pub fn find(&self) -> Result<Toolchain, NoToolchain> {
        // Each examination runs the compiler a few times, so stop at the first that will do.
        let mut tried = Vec::new();
        for candidate in self.candidates() {
            match candidate.verdict {
                Ok(toolchain) => return Ok(toolchain),
                Err(reason) => tried.push((candidate.origin, reason)),
            }
        }
        Err(NoToolchain { tried })
    }

    pub(crate) fn unpacked_root(&self) -> PathBuf {
        self.tools.join("rustc")
    }

    /// `rustc` in `PATH` may be rustup's proxy; the compiler itself stands in its sysroot.
    fn active_rustc(&self) -> Option<PathBuf> {
        let mut command = Command::new("rustc");
        command.args(["--print", "sysroot"]).current_dir(&self.folder);
        let sysroot = process::output(&mut command).ok()?;
        let rustc = Path::new(sysroot.trim()).join("bin/rustc");
        rustc.is_file().then_some(rustc)
    }
}

/// The folder for tools that are brought: `WARPWIRE_TOOLS`, or the workspace's `target/warpwire-tools`.
pub fn tools_folder(workspace: &Path) -> PathBuf {
    environment::path(environment::TOOLS).unwrap_or_else(|| workspace.join("target").join("warpwire-tools"))
}

/// No compiler that could write PTX was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoToolchain {
    /// Each place with what is wrong there.
    pub tried: Vec<(Origin, Unusable)>,
}

impl fmt::Display for NoToolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no Rust compiler here can build PTX:")?;
        for (origin, reason) in &self.tried {
            writeln!(f, "  {}: {reason}", candidate::place(*origin))?;
        }
        write!(
            f,
            "To bring what is missing, run `rustup component add rust-src`, or `cargo xtask build-ptx --install`, which \
             falls back to Debian's packages rustc-web and rust-web-src unpacked into a folder of its own; or name a \
             compiler in {}.",
            environment::RUSTC
        )
    }
}

impl std::error::Error for NoToolchain {}
