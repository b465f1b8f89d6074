//! What the virtual machines are made of: QEMU, a kernel, busybox, and the user's side of soft-RoCE.

use crate::packages;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use warpwire_build::Progress;
use warpwire_build::debian::{self, Packages};

/// Debian's packages. Of their dependencies, those are left out that set up a real machine.
const PACKAGES: Packages = Packages {
    what: "QEMU, a kernel and soft-RoCE",
    names: &[
        "qemu-system-x86",
        "linux-image-amd64",
        "busybox-static",
        "iproute2",
        "libibverbs1",
        "ibverbs-providers",
    ],
    not_needed: &[
        "adduser",
        "debconf",
        "dracut",
        "gcc-12-base",
        "initramfs-tools",
        "init-system-helpers",
        "ipxe-qemu",
        "kmod",
        "libc6",
        "libcap2-bin",
        "libgcc-s1",
        "libgstreamer-plugins-base1.0-0",
        "libobjc4",
        "libstdc++6",
        "linux-base",
    ],
};

/// Where soft-RoCE's provider lies, relative to a root.
const PROVIDERS: &str = "usr/lib/x86_64-linux-gnu/libibverbs";

/// All of it, found.
#[derive(Debug)]
pub struct Tools {
    /// The unpacked packages, then the system.
    roots: Vec<PathBuf>,
    /// The emulator.
    pub qemu: PathBuf,
    /// The kernel's image.
    pub kernel: PathBuf,
    /// Its modules, a `lib/modules/VERSION`.
    pub modules: PathBuf,
    /// A busybox that needs no library.
    pub busybox: PathBuf,
    /// iproute2's `rdma`.
    pub rdma: PathBuf,
    /// libibverbs itself: the tests load it by name.
    pub libibverbs: PathBuf,
    /// soft-RoCE's provider.
    pub provider: PathBuf,
    /// The file by which libibverbs finds the provider.
    pub driver: PathBuf,
}

impl Tools {
    /// What an earlier `--install` unpacked below `tools`, or the system's. Else an error that names what is missing.
    pub fn find(tools: &Path) -> Result<Tools> {
        let roots = vec![tools.join("rdma"), PathBuf::from("/")];
        let (kernel, modules) = kernel(&roots).context("no kernel with the module rdma_rxe")?;
        let file = |paths: &[&str]| {
            let mut places = roots.iter().flat_map(|root| paths.iter().map(move |path| root.join(path)));
            places.find(|place| place.is_file()).with_context(|| format!("no {}", paths[0]))
        };
        let provider = roots.iter().find_map(|root| {
            let mut files = fs::read_dir(root.join(PROVIDERS)).ok()?.flatten().map(|item| item.path());
            files.find(|path| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("librxe"))
            })
        });
        Ok(Tools {
            qemu: file(&["usr/bin/qemu-system-x86_64"])?,
            kernel,
            modules,
            busybox: file(&["bin/busybox", "usr/bin/busybox"])?,
            rdma: file(&["usr/bin/rdma", "bin/rdma", "sbin/rdma"])?,
            libibverbs: file(&["usr/lib/x86_64-linux-gnu/libibverbs.so.1"])?,
            provider: provider.context("no librxe, libibverbs's provider for soft-RoCE")?,
            driver: file(&["etc/libibverbs.d/rxe.driver"])?,
            roots,
        })
    }

    /// Finds it, or brings it: packages unpacked below `tools`, which changes nothing else; and only where that fails,
    /// packages installed for everybody.
    pub fn provide(tools: &Path, install: bool, progress: &dyn Progress) -> Result<Tools> {
        let missing = match Tools::find(tools) {
            Ok(found) => return Ok(found),
            Err(missing) if !install => bail!("{missing}; cargo xtask test-rdma --install brings it"),
            Err(missing) => missing,
        };
        let again = || Tools::find(tools).map_err(|missing| format!("{missing:#}"));
        let unpacked = debian::unpack(&PACKAGES, &tools.join("rdma"), tools, progress);
        let first = match unpacked.and_then(|()| again()) {
            Ok(found) => return Ok(found),
            Err(reason) => reason,
        };
        progress.step(&format!("installing {}", PACKAGES.names.join(", ")));
        debian::install(&PACKAGES).and_then(|()| again()).map_err(|second| {
            anyhow::anyhow!("{missing:#}\n  unpacking packages: {first}\n  installing them: {second}")
        })
    }

    /// The emulator's command, with the libraries and the firmware that were unpacked beside it.
    pub fn qemu(&self) -> Command {
        let mut command = Command::new(&self.qemu);
        command.env("LD_LIBRARY_PATH", self.library_path());
        for root in &self.roots {
            for folder in ["usr/share/qemu", "usr/share/seabios"] {
                command.arg("-L").arg(root.join(folder));
            }
        }
        command
    }

    /// The shared libraries that a program needs, by their paths.
    pub fn libraries(&self, program: &Path) -> Result<Vec<PathBuf>> {
        if packages::in_path("ldd").is_none() {
            bail!("there is no ldd, which says what libraries a program needs");
        }
        let mut command = Command::new("ldd");
        let output = command.arg(program).env("LD_LIBRARY_PATH", self.library_path()).output();
        let output = output.context("cannot run ldd")?;
        // For a static program ldd fails; such a one needs none.
        libraries_in(&String::from_utf8_lossy(&output.stdout), program)
    }

    fn library_path(&self) -> OsString {
        let folders = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
        let paths = folders.map(|folder| self.roots[0].join(folder).into_os_string());
        paths.join(&OsString::from(":"))
    }
}

/// A kernel and its modules, from the first root that has one whose modules are not compressed.
fn kernel(roots: &[PathBuf]) -> Option<(PathBuf, PathBuf)> {
    roots.iter().find_map(|root| {
        let versions = fs::read_dir(root.join("lib/modules")).ok()?.flatten();
        versions.map(|version| version.path()).find_map(|modules| {
            let version = modules.file_name()?.to_str()?;
            let image = root.join("boot").join(format!("vmlinuz-{version}"));
            let rxe = modules.join("kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko");
            (image.is_file() && rxe.is_file()).then_some((image, modules))
        })
    })
}

/// The paths in ldd's answer: `NAME => PATH (ADDRESS)`, or `PATH (ADDRESS)` for the loader.
fn libraries_in(text: &str, program: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for line in text.lines() {
        if line.contains("=> not found") {
            bail!("{} needs {}, which is not here", program.display(), line.trim());
        }
        found.extend(line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_the_loaders_answer() {
        let program = Path::new("p");
        let text =
            "\tlinux-vdso.so.1 (0x7f)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n\t/lib64/ld-linux.so.2 (0x7f)\n";
        let found = libraries_in(text, program).unwrap();
        assert_eq!(found, [PathBuf::from("/lib/libc.so.6"), PathBuf::from("/lib64/ld-linux.so.2")]);
        assert!(
            libraries_in("\tlibx.so => not found\n", program).unwrap_err().to_string().contains("libx.so")
        );
        assert_eq!(libraries_in("\tstatically linked\n", program).unwrap(), [] as [PathBuf; 0]);
    }
}
