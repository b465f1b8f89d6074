//! Runs cargo and rustc so that they write PTX.
//!
//! The crate is built as a static library, with `--emit=asm` alone and fat LTO: everything is then merged into one
//! module, its assembly is the PTX, and no linker is called. `core` is built from the compiler's sources, since no
//! toolchain carries it compiled for GPUs.

use crate::arch::Arch;
use crate::error::Error;
use crate::process;
use crate::sources::{Sources, TARGET};
use crate::toolchain::Toolchain;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Settings of the release profile, given by `--config` so that the kernel crate's workspace need not repeat them.
const PROFILE: [&str; 7] = [
    "profile.release.lto=\"fat\"",
    "profile.release.panic=\"abort\"",
    "profile.release.codegen-units=1",
    "profile.release.opt-level=3",
    "profile.release.debug=false",
    "profile.release.incremental=false",
    "profile.release.overflow-checks=false",
];

/// For the kernel crate alone: the `kernel!` macro writes inline PTX into it. Other crates, `core` among them, enable the
/// feature themselves where they need it, and enabling it twice is an error.
const KERNEL_CRATE: &str = "-Zcrate-attr=feature(asm_experimental_arch)";

/// Takes out of a command's environment what would change the compiler or its flags behind the builder's back, such as
/// what cargo sets for the build script that this may run in.
pub(crate) fn isolate(command: &mut Command) {
    const NAMES: [&str; 8] = [
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTC",
        "RUSTC_LINKER",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_MAKEFLAGS",
        "CARGO_TARGET_DIR",
        "MAKEFLAGS",
    ];
    const PREFIXES: [&str; 4] = ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_", "CARGO_UNSTABLE_"];
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if NAMES.contains(&&*text) || PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    // Empty, not removed: a wrapper may also stand in a configuration file.
    command.env("RUSTC_WRAPPER", "").env("RUSTC_WORKSPACE_WRAPPER", "");
}

/// The flags that rustc gets for every crate of the build.
pub(crate) fn flags(arch: Arch) -> Vec<String> {
    let mut flags = arch.flags();
    flags.push("-Zcrate-attr=feature(abi_ptx)".into());
    // This pass of rustc's knows of no convergent calls: it copies a barrier into both sides of a branch behind it, where the
    // threads of a block then wait at different barriers. LLVM's own passes do know.
    flags.push("-Zmir-enable-passes=-JumpThreading".into());
    // No source position in the PTX: it would differ from folder to folder.
    flags.push("-Zlocation-detail=none".into());
    flags
}

/// One compilation: which crate, by which compiler, for which architecture.
pub(crate) struct Compilation<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) toolchain: &'a Toolchain,
    pub(crate) cargo: &'a OsStr,
    pub(crate) arch: Arch,
    /// For cargo's files: one folder for each architecture, so that neither throws away the other's `core`, and the same
    /// for every kernel crate of a workspace, so that each finds `core` compiled.
    pub(crate) target_dir: PathBuf,
}

impl Compilation<'_> {
    /// Compiles and gives the PTX as the compiler wrote it.
    pub(crate) fn run(&self) -> Result<String, Error> {
        let _alone = self.lock()?;
        let release = self.target_dir.join(TARGET).join("release");
        // Cargo does not know of the assembly, and would not write it again for a crate that it holds to be fresh.
        remove_matching(&release.join("deps"), &format!("{}-", self.sources.library))?;
        remove_matching(&release.join(".fingerprint"), &format!("{}-", self.sources.package))?;
        match process::output(&mut self.command()) {
            Ok(_) => {}
            Err(Error::Command { command, detail }) => {
                let detail = format!("{command}\n{detail}");
                return Err(Error::Compile { arch: self.arch, detail });
            }
            Err(other) => return Err(other),
        }
        let assembly = self.newest_assembly(&release.join("deps"))?;
        fs::read_to_string(&assembly).map_err(Error::io("read", &assembly))
    }

    /// Keeps other builds out of the folder until it is dropped: cargo has a lock of its own, but the removals before it
    /// and the reading after it stand outside of that.
    fn lock(&self) -> Result<File, Error> {
        fs::create_dir_all(&self.target_dir).map_err(Error::io("create", &self.target_dir))?;
        let path = self.target_dir.join("warpwire.lock");
        let file = File::create(&path).map_err(Error::io("create", &path))?;
        file.lock().map_err(Error::io("lock", &path))?;
        Ok(file)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.cargo);
        isolate(&mut command);
        if let Some(folder) = self.sources.manifest.parent() {
            command.current_dir(folder);
        }
        command.args(["rustc", "--quiet", "--release", "--lib", "-Zbuild-std=core", "--target", TARGET]);
        command.args(["--crate-type", "staticlib", "--manifest-path"]).arg(&self.sources.manifest);
        command.arg("--target-dir").arg(&self.target_dir);
        for setting in PROFILE {
            command.args(["--config", setting]);
        }
        command.args(["--", "--emit=asm", KERNEL_CRATE]);
        // `-Zbuild-std` and the GPU calling convention are unstable; the compiler was checked to know them.
        command.env("RUSTC_BOOTSTRAP", "1");
        command.env("RUSTC", &self.toolchain.rustc);
        command.env("CARGO_ENCODED_RUSTFLAGS", flags(self.arch).join("\u{1f}"));
        if let Some(folder) = &self.toolchain.library_path {
            command.env("LD_LIBRARY_PATH", folder);
        }
        command
    }

    fn newest_assembly(&self, deps: &Path) -> Result<PathBuf, Error> {
        let prefix = format!("{}-", self.sources.library);
        let mut newest: Option<(SystemTime, PathBuf)> = None;
        for path in
            matching(deps, &prefix)?.into_iter().filter(|path| path.extension() == Some(OsStr::new("s")))
        {
            let modified =
                path.metadata().and_then(|data| data.modified()).map_err(Error::io("read", &path))?;
            if newest.as_ref().is_none_or(|(time, _)| *time < modified) {
                newest = Some((modified, path));
            }
        }
        newest.map(|(_, path)| path).ok_or_else(|| Error::Compile {
            arch: self.arch,
            detail: format!(
                "the compiler wrote no assembly for {} into {}",
                self.sources.library,
                deps.display()
            ),
        })
    }
}

/// What lies in a folder under a name that starts so; nothing where there is no folder.
fn matching(folder: &Path, prefix: &str) -> Result<Vec<PathBuf>, Error> {
    let Ok(items) = fs::read_dir(folder) else { return Ok(vec![]) };
    let mut found = Vec::new();
    for item in items {
        let item = item.map_err(Error::io("read", folder))?;
        let name: OsString = item.file_name();
        if name.to_string_lossy().starts_with(prefix) {
            found.push(item.path());
        }
    }
    Ok(found)
}

fn remove_matching(folder: &Path, prefix: &str) -> Result<(), Error> {
    for path in matching(folder, prefix)? {
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(Error::io("remove", &path))?;
    }
    Ok(())
}
