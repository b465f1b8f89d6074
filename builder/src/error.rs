//! What can go wrong on the way from Rust to PTX.

use crate::arch::{Arch, UnknownArch};
use crate::codegen::NvvmUnavailable;
use crate::lint::Fault;
use crate::ptx::ParseError;
use crate::toolchain::{NoToolchain, NotProvided};
use std::path::{Path, PathBuf};

/// Why no PTX was built. Each variant says what was tried and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder or file could not be read or written.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// What was tried: "read", "write", ...
        doing: &'static str,
        /// Of which path.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A program could not be run, or it failed.
    #[error("`{command}` failed: {detail}")]
    Command {
        /// The program with its arguments.
        command: String,
        /// What it wrote, or why it did not start.
        detail: String,
    },
    /// The kernel crate is not what the builder can compile.
    #[error("{manifest} is not a kernel crate: {detail}")]
    Package {
        /// Its Cargo.toml.
        manifest: PathBuf,
        /// What it lacks.
        detail: String,
    },
    /// An architecture that the builder does not know.
    #[error(transparent)]
    Arch(#[from] UnknownArch),
    /// There is no compiler that can build PTX.
    #[error(transparent)]
    NoToolchain(#[from] NoToolchain),
    /// A missing tool could not be brought.
    #[error(transparent)]
    NotProvided(#[from] NotProvided),
    /// The code generator that was asked for cannot be used.
    #[error(transparent)]
    Nvvm(#[from] NvvmUnavailable),
    /// The kernel crate does not compile.
    #[error("the kernel crate does not compile for {arch}:\n{detail}")]
    Compile {
        /// For which architecture.
        arch: Arch,
        /// The compiler's messages.
        detail: String,
    },
    /// The compiler wrote something that is no PTX module.
    #[error("the compiler's output for {arch}: {source}")]
    Ptx {
        /// For which architecture.
        arch: Arch,
        /// Where it is at fault.
        source: ParseError,
    },
    /// An entry has no launch bounds, or ones that no GPU can satisfy.
    #[error("{arch}: entry `{entry}`: {detail}")]
    Bounds {
        /// For which architecture.
        arch: Arch,
        /// Which entry.
        entry: String,
        /// What is wrong and how to mend it.
        detail: String,
    },
    /// The PTX does something that device code must not do.
    #[error("the PTX for {arch} is refused ({}):\n{}", .file.display(), list(.faults))]
    Refused {
        /// For which architecture.
        arch: Arch,
        /// Each fault with its entry and line.
        faults: Vec<Fault>,
        /// The text that the lines are counted in.
        file: PathBuf,
    },
    /// ptxas does not take the PTX.
    #[error("ptxas refuses the PTX for {arch}:\n{detail}")]
    Assemble {
        /// For which architecture.
        arch: Arch,
        /// Its messages.
        detail: String,
    },
    /// A manifest that is not one, or of another format.
    #[error("{path} is not a manifest that this version can read: {detail}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { doing, path, source }
    }
}

fn list(faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("  {fault}")).collect::<Vec<_>>().join("\n")
}
