//! The environment variables that the builder reads, all of them here.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// `WARPWIRE_RUSTC`: the compiler to use, which must carry its own sources of `core`.
pub const RUSTC: &str = "WARPWIRE_RUSTC";
/// `WARPWIRE_PTXAS`: the ptxas to use.
pub const PTXAS: &str = "WARPWIRE_PTXAS";
/// `WARPWIRE_TOOLS`: the folder for tools that were brought; the workspace's `target/warpwire-tools` otherwise.
pub const TOOLS: &str = "WARPWIRE_TOOLS";

/// The variables that change what is built, for `cargo:rerun-if-env-changed`.
pub(crate) const ALL: [&str; 5] = [RUSTC, PTXAS, TOOLS, "CUDA_HOME", "CUDA_PATH"];

pub(crate) fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where CUDA toolkits are said to be.
pub(crate) fn cuda_homes() -> impl Iterator<Item = (&'static str, PathBuf)> {
    ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(|name| path(name).map(|home| (name, home)))
}

/// The cargo that runs this, or the one in `PATH`.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
