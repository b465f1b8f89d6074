//! hipcc, and a clang behind it that knows gfx942.
//!
//! ROCm's own hipcc comes with such a clang. Debian 12's calls `clang-15`, which knows no gfx942; Debian's `clang-19` does.
//! hipcc looks for its compiler in the folder that `HIP_CLANG_PATH` names, so it is given one of links.

use crate::packages;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use warpwire_build::Progress;
use warpwire_build::debian::{self, Packages};

/// What hipcc needs to compile for one GPU without its libraries. Of its dependencies, clang 15 does not know gfx942, and the
/// rest is for programs that link with the HIP runtime.
const PACKAGES: Packages = Packages {
    what: "hipcc and clang",
    names: &["hipcc", "clang-19", "lld-19"],
    not_needed: &[
        "clang-15",
        "llvm-15",
        "lld-15",
        "clang-tools-15",
        "libclang-common-15-dev",
        "rocm-device-libs",
        "rocminfo",
        "libamdhip64-dev",
        "file",
        "perl",
        "libstdc++-12-dev",
        "libgcc-12-dev",
        "libobjc-12-dev",
        "libc6-dev",
        "binutils",
        "libc6",
        "libgcc-s1",
        "libstdc++6",
    ],
};

/// What hipcc of one version or another calls its compiler.
const CLANG_NAMES: [&str; 4] = ["clang-15", "clang++-15", "clang", "clang++"];

/// Newest first; 17 was the first to know gfx942.
const CLANGS: [&str; 6] = ["clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17"];

/// hipcc, ready to be run.
#[derive(Debug)]
pub struct Hip {
    hipcc: PathBuf,
    environment: Vec<(&'static str, OsString)>,
    /// What the compiler behind it says of itself.
    pub version: String,
}

/// What was looked for in vain.
#[derive(Debug)]
pub struct Missing {
    what: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; run `cargo xtask build-hip --install`, or as root: apt-get install {}, or install ROCm and put its bin \
             folder into PATH",
            self.what,
            PACKAGES.names.join(" ")
        )
    }
}

impl Hip {
    /// The system's, ROCm's, or what an earlier `--install` unpacked below `tools`.
    pub fn find(tools: &Path) -> Result<Hip, Missing> {
        let unpacked = tools.join("hip");
        let rocm = Path::new("/opt/rocm");
        let candidates =
            [packages::in_path("hipcc"), Some(rocm.join("bin/hipcc")), Some(unpacked.join("usr/bin/hipcc"))];
        let Some(hipcc) = candidates.into_iter().flatten().find(|path| path.is_file()) else {
            return Err(Missing { what: "there is no hipcc, in PATH or in /opt/rocm/bin".into() });
        };
        let mut environment = library_path(&unpacked);
        let own = hipcc.parent().map(|bin| bin.join("../llvm/bin/clang"));
        let clang = [own, Some(rocm.join("llvm/bin/clang"))].into_iter().flatten();
        let clang = clang.chain(CLANGS.iter().filter_map(|name| packages::in_path(name)));
        let clang = clang.chain(unpacked_clangs(&unpacked));
        let knowing = clang.filter(|clang| clang.is_file()).find(|clang| knows_target(clang, &environment));
        let Some(clang) = knowing else {
            return Err(Missing { what: format!("no clang that knows {} was found", super::TARGET) });
        };
        let links = link(&clang, &tools.join("hip-clang"))
            .map_err(|error| Missing { what: format!("cannot link to {}: {error:#}", clang.display()) })?;
        environment.push(("HIP_CLANG_PATH", links.into()));
        environment.push(("HIP_PLATFORM", "amd".into()));
        if hipcc.starts_with(&unpacked) {
            environment.push(("PERL5LIB", unpacked.join("usr/share/perl5").into()));
            environment.push(("HIP_PATH", unpacked.join("usr").into()));
            environment.push(("ROCM_PATH", unpacked.join("usr").into()));
        }
        let version = version_of(&clang, &environment);
        Ok(Hip { hipcc, environment, version })
    }

    /// A run of hipcc.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.hipcc);
        command.envs(self.environment.iter().cloned());
        command
    }
}

/// Brings what is missing: packages unpacked below `tools`, which changes nothing else; and only where that fails, packages
/// installed for everybody.
pub fn provide(tools: &Path, missing: &Missing, progress: &dyn Progress) -> Result<Hip> {
    let unpacked = debian::unpack(&PACKAGES, &tools.join("hip"), tools, progress);
    let first = match unpacked.and_then(|()| Hip::find(tools).map_err(|missing| missing.what)) {
        Ok(hip) => return Ok(hip),
        Err(reason) => reason,
    };
    progress.step(&format!("installing {}", PACKAGES.names.join(", ")));
    match debian::install(&PACKAGES).and_then(|()| Hip::find(tools).map_err(|missing| missing.what)) {
        Ok(hip) => Ok(hip),
        Err(second) => bail!("{missing}\n  unpacking packages: {first}\n  installing them: {second}"),
    }
}

/// The loader's path, where a compiler was unpacked with libraries that the system has not.
fn library_path(unpacked: &Path) -> Vec<(&'static str, OsString)> {
    let Some(libraries) = debian::library_folder(unpacked) else { return vec![] };
    let before = std::env::var_os("LD_LIBRARY_PATH").map(|path| [OsString::from(":"), path]);
    let mut path = libraries.into_os_string();
    before.into_iter().flatten().for_each(|part| path.push(part));
    vec![("LD_LIBRARY_PATH", path)]
}

fn unpacked_clangs(unpacked: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = fs::read_dir(unpacked.join("usr/lib")).into_iter().flatten().flatten();
    let names: BTreeSet<PathBuf> = folders.map(|item| item.path().join("bin/clang")).collect();
    names.into_iter().rev()
}

fn knows_target(clang: &Path, environment: &[(&'static str, OsString)]) -> bool {
    let mut command = Command::new(clang);
    command
        .args(["--target=amdgcn-amd-amdhsa", "-nogpulib", "--print-supported-cpus"])
        .envs(environment.iter().cloned());
    // Whichever stream it prints to.
    command.output().is_ok_and(|output| {
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&said).split_whitespace().any(|word| word == super::TARGET)
    })
}

fn version_of(clang: &Path, environment: &[(&'static str, OsString)]) -> String {
    let mut command = Command::new(clang);
    let output = command.arg("--version").envs(environment.iter().cloned()).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    said.lines().next().unwrap_or("unknown").to_owned()
}

/// A folder in which `clang` has each of the names that hipcc calls it by.
fn link(clang: &Path, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let clang = clang.canonicalize().with_context(|| format!("cannot find {}", clang.display()))?;
    for name in CLANG_NAMES {
        let link = folder.join(name);
        if fs::read_link(&link).ok().as_deref() == Some(&clang) {
            continue;
        }
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link)?;
        }
        symlink(&clang, &link).with_context(|| format!("cannot create {}", link.display()))?;
    }
    Ok(folder.canonicalize()?)
}
