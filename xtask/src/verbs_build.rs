//! What the feature `ib` is built with: the crate `ibverbs` reads libibverbs's headers with libclang, after cmake has
//! arranged them. Running needs none of it.

use crate::packages;
use anyhow::{Result, bail};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use warpwire_build::Progress;
use warpwire_build::debian::{self, Packages};

/// Debian's packages. Of their dependencies, those are left out that only compiling C++ or Objective-C needs.
const PACKAGES: Packages = Packages {
    what: "cmake, libclang and what they read",
    names: &["cmake", "libclang-14-dev", "pkg-config", "libibverbs-dev"],
    not_needed: &[
        "gcc-12-base",
        "libc6",
        "libc6-dev",
        "libgcc-12-dev",
        "libgcc-s1",
        "libobjc-12-dev",
        "libobjc4",
        "libstdc++-12-dev",
        "libstdc++6",
        "procps",
    ],
};

/// The variables that a build with the feature is run with.
#[derive(Debug, Default)]
pub struct Environment {
    variables: Vec<(&'static str, OsString)>,
}

impl Environment {
    /// Gives them to a command.
    pub fn apply(&self, command: &mut Command) {
        command.envs(self.variables.iter().cloned());
    }
}

/// Finds what the build needs, or brings it: packages unpacked below `tools`, and only where that fails, packages installed
/// for everybody.
pub fn provide(tools: &Path, install: bool, progress: &dyn Progress) -> Result<Environment> {
    let missing = match find(tools) {
        Ok(environment) => return Ok(environment),
        Err(missing) if !install => bail!(
            "the feature ib cannot be built: {missing}; cargo xtask test-rdma --install brings it, or as root: apt-get \
             install {}",
            PACKAGES.names.join(" ")
        ),
        Err(missing) => missing,
    };
    let unpacked = debian::unpack(&PACKAGES, &tools.join("verbs-build"), tools, progress);
    let first = match unpacked.and_then(|()| find(tools)) {
        Ok(environment) => return Ok(environment),
        Err(reason) => reason,
    };
    progress.step(&format!("installing {}", PACKAGES.names.join(", ")));
    match debian::install(&PACKAGES).and_then(|()| find(tools)) {
        Ok(environment) => Ok(environment),
        Err(second) => bail!("{missing}\n  unpacking packages: {first}\n  installing them: {second}"),
    }
}

/// The system's, or what was unpacked.
fn find(tools: &Path) -> Result<Environment, String> {
    let lacking = match lacking_of_system() {
        None => return Ok(Environment::default()),
        Some(lacking) => lacking,
    };
    let root = tools.join("verbs-build");
    let Some(clang) = libclang(&root.join("usr/lib")) else { return Err(lacking) };
    let libraries = debian::library_folder(&root).ok_or(lacking)?;
    let prefixed = |first: &[&Path], variable: &str| {
        let rest = std::env::var_os(variable);
        let parts = first.iter().map(|part| part.as_os_str()).chain(rest.as_deref());
        parts.collect::<Vec<_>>().join(OsStr::new(":"))
    };
    // Debian has some of them, libnl-3's among them, below /lib still.
    let older = root.join(libraries.strip_prefix(root.join("usr")).unwrap_or(&libraries));
    let searched = [libraries.as_path(), older.as_path()];
    Ok(Environment {
        variables: vec![
            ("PATH", prefixed(&[&root.join("usr/bin")], "PATH")),
            ("LD_LIBRARY_PATH", prefixed(&searched, "LD_LIBRARY_PATH")),
            ("LIBRARY_PATH", prefixed(&searched, "LIBRARY_PATH")),
            ("PKG_CONFIG_PATH", prefixed(&[&libraries.join("pkgconfig")], "PKG_CONFIG_PATH")),
            ("PKG_CONFIG_SYSROOT_DIR", root.clone().into_os_string()),
            ("BINDGEN_EXTRA_CLANG_ARGS", clang_arguments(&root, &clang).into()),
            ("LIBCLANG_PATH", clang.into_os_string()),
        ],
    })
}

/// Where the unpacked headers are, and libclang's own: it looks for those beside the file that its name leads to, which lies in
/// another folder than they do.
fn clang_arguments(root: &Path, clang: &Path) -> String {
    let mut arguments = format!("-I{}", root.join("usr/include").display());
    let versions = fs::read_dir(clang.join("clang")).into_iter().flatten().flatten();
    for own in versions.map(|version| version.path()).filter(|folder| folder.join("include").is_dir()) {
        arguments += &format!(" -resource-dir={}", own.display());
    }
    arguments
}

/// What the system has not; `None` where it has everything.
fn lacking_of_system() -> Option<String> {
    for program in ["cmake", "pkg-config"] {
        if packages::in_path(program).is_none() {
            return Some(format!("there is no {program}"));
        }
    }
    let named = std::env::var_os("LIBCLANG_PATH").is_some();
    if !named && libclang(Path::new("/usr/lib")).is_none() && libclang(Path::new("/usr/lib64")).is_none() {
        return Some("there is no libclang".into());
    }
    let mut command = Command::new("pkg-config");
    command
        .args(["--exists", "libibverbs", "libnl-3.0", "libnl-route-3.0"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let headers = command.status().is_ok_and(|status| status.success());
    (!headers).then(|| "there are no headers of libibverbs, or of libnl-route-3".into())
}

/// A folder with a `libclang.so`, below a `usr/lib`.
fn libclang(libraries: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(libraries).ok()?.flatten().filter_map(|item| {
        let name = item.file_name();
        name.to_str()?.strip_prefix("llvm-")?;
        Some(item.path().join("lib"))
    });
    let places = versions.chain([libraries.to_owned(), libraries.join("x86_64-linux-gnu")]);
    let mut found: Vec<PathBuf> = places.filter(|folder| has_libclang(folder)).collect();
    found.sort();
    found.pop()
}

fn has_libclang(folder: &Path) -> bool {
    ["libclang.so", "libclang.so.1"].iter().any(|name| folder.join(name).exists())
}
