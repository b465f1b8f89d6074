//! Where the project's files are.

use std::env;
use std::path::{Path, PathBuf};

/// The project's root: the folder above this package. Cargo names the package to the program that it runs; what it was
/// compiled with may be another clone's, where clones share their target folder.
pub fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    package.parent().map(Path::to_owned).unwrap_or(package)
}

/// The kernel crate that the project ships.
pub fn kernels() -> PathBuf {
    root().join("device/kernels")
}

/// The committed PTX.
pub fn ptx() -> PathBuf {
    root().join("ptx")
}

/// A path as it is shown: relative to the current folder where it lies below it.
pub fn shown(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}
