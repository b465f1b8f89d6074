//! Examines one compiler: does it write PTX, and are the sources of its own `core` there?

use super::{Origin, Toolchain};
use crate::process;
use crate::sources::TARGET;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first release whose compiler takes the device crate.
const OLDEST: (u32, u32) = (1, 95);

/// One place where a compiler was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Which place.
    pub origin: Origin,
    /// The compiler, or why there is none to use.
    pub verdict: Result<Toolchain, Unusable>,
}

/// Why a compiler cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// There is none.
    Absent,
    /// It does not run.
    Broken(String),
    /// It is too old for the device crate.
    TooOld(String),
    /// It has no backend for NVIDIA's GPUs.
    NoBackend(String),
    /// The sources of its own `core` are not in its sysroot.
    NoCoreSources {
        /// Which compiler.
        version: String,
        /// Where they would be.
        expected: PathBuf,
    },
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Absent => write!(f, "none"),
            Unusable::Broken(detail) => write!(f, "it does not run: {detail}"),
            Unusable::TooOld(version) => write!(f, "{version} is older than {}.{}", OLDEST.0, OLDEST.1),
            Unusable::NoBackend(version) => write!(f, "{version} does not know the target {TARGET}"),
            Unusable::NoCoreSources { version, expected } => {
                write!(f, "{version} lacks the sources of core ({})", expected.display())
            }
        }
    }
}

/// The place's name in a list.
pub(super) fn place(origin: Origin) -> &'static str {
    match origin {
        Origin::Explicit => "WARPWIRE_RUSTC",
        Origin::Active => "active toolchain",
        Origin::System => "/usr/bin/rustc",
        Origin::Unpacked => "target/warpwire-tools/rustc",
    }
}

impl Candidate {
    pub(super) fn examine(
        origin: Origin,
        rustc: Option<PathBuf>,
        library_path: Option<PathBuf>,
    ) -> Candidate {
        let verdict = match rustc {
            None => Err(Unusable::Absent),
            Some(rustc) => examine(origin, rustc, library_path),
        };
        Candidate { origin, verdict }
    }

    /// The place's name, for a table.
    pub fn place(&self) -> &'static str {
        place(self.origin)
    }
}

fn examine(origin: Origin, rustc: PathBuf, library_path: Option<PathBuf>) -> Result<Toolchain, Unusable> {
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(&rustc);
        command.args(arguments);
        if let Some(folder) = &library_path {
            command.env("LD_LIBRARY_PATH", folder);
        }
        process::output(&mut command)
    };
    let version = ask(&["--version"]).map_err(|error| Unusable::Broken(error.to_string()))?.trim().to_owned();
    if release(&version).is_none_or(|release| release < OLDEST) {
        return Err(Unusable::TooOld(version));
    }
    let sysroot = ask(&["--print", "sysroot"]).map_err(|error| Unusable::Broken(error.to_string()))?;
    let core = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core/src/lib.rs");
    if !core.is_file() {
        return Err(Unusable::NoCoreSources { version, expected: core });
    }
    // Asks LLVM itself: a compiler may know the target's name and still be built without its backend.
    let knows = ask(&["--print", "target-cpus", "--target", TARGET]).is_ok_and(|list| list.contains("sm_80"));
    if !knows {
        return Err(Unusable::NoBackend(version));
    }
    Ok(Toolchain { rustc, version, origin, library_path })
}

/// `rustc 1.95.0 (…)` is (1, 95).
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split_whitespace().nth(1)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read() {
        assert_eq!(release("rustc 1.95.0 (59807616e 2026-04-14)"), Some((1, 95)));
        assert_eq!(release("rustc 1.97.0-nightly (abc 2026-05-19)"), Some((1, 97)));
        assert_eq!(release("gcc"), None);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let absent = Candidate::examine(Origin::System, None, None);
        assert_eq!(absent.verdict, Err(Unusable::Absent));
        let broken = Candidate::examine(Origin::Explicit, Some("/nonexistent/rustc".into()), None);
        assert!(matches!(broken.verdict, Err(Unusable::Broken(_))));
    }
}
