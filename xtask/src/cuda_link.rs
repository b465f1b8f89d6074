//! `cargo xtask cuda-link`: what the feature `cuda` links with, on a machine with neither CUDA's toolkit nor its driver.
//!
//! A plain stub of `libcuda.so` would do for linking, but the program would then not start without a driver. This one
//! is a small static library that looks for `libcuda.so.1` when its first function is called: with a driver every call
//! goes straight there, and without one every call answers CUDA_ERROR_STUB_LIBRARY. The linker finds it under the
//! driver's name through a linker script.

mod assembly;
mod names;

use crate::workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

const SHIM: &str = include_str!("cuda_link/shim.c");

/// `dlopen` is part of glibc's libc from 2.34 on; before, and in its name still, it is libdl.
const SCRIPT: &str = "/* Written by cargo xtask cuda-link. */\nINPUT(-lwarpwire_cuda_shim -ldl -lpthread)\n";

/// Arguments of `cuda-link`.
#[derive(clap::Args)]
pub struct Args {
    /// Install a C compiler where there is none (as root, by apt-get)
    #[arg(long)]
    pub install: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let linked = provide(args.install)?;
    println!("{linked}");
    Ok(ExitCode::SUCCESS)
}

/// Makes linking with the driver possible, and says how.
pub fn provide(install: bool) -> Result<String> {
    let folder = workspace::root().join("target/cuda-link");
    if let Some(chosen) = env::var_os("CUDA_LIBRARY_PATH").map(PathBuf::from)
        && chosen != folder
    {
        return Ok(format!("linking with the libraries in CUDA_LIBRARY_PATH={}", chosen.display()));
    }
    if env::consts::ARCH != "x86_64" {
        bail!(
            "the CUDA shim is written for x86_64 only; on {} set CUDA_LIBRARY_PATH to a CUDA toolkit's folder",
            env::consts::ARCH
        );
    }
    if install {
        crate::packages::require("cc", "gcc")?;
    }
    let names = names::of_bindings(&workspace::root())?;
    let library = folder.join("lib64");
    let work = folder.join("work");
    for folder in [&library, &work] {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let assembly = assembly::trampolines(&names);
    let archive = library.join("libwarpwire_cuda_shim.a");
    let sources = [(work.join("shim.c"), SHIM), (work.join("trampolines.s"), &assembly)];
    let current = archive.is_file()
        && library.join("libcuda.so").is_file()
        && sources.iter().all(|(path, text)| fs::read_to_string(path).is_ok_and(|old| old == *text));
    if !current {
        for (path, text) in &sources {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        compile(&work, &archive)?;
        fs::write(library.join("libcuda.so"), SCRIPT).context("cannot write libcuda.so")?;
    }
    Ok(format!(
        "linking with {}: {} functions, found in libcuda.so.1 when they are first called",
        workspace::shown(&library.join("libcuda.so")),
        names.len()
    ))
}

fn compile(work: &Path, archive: &Path) -> Result<()> {
    let cc = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let tool = cc.to_string_lossy().into_owned();
    let missing =
        format!("cannot run `{tool}`: install a C compiler (apt-get install gcc), or name one in CC");
    let mut compile = Command::new(cc);
    compile.args(["-O2", "-fPIC", "-Wall", "-Wextra", "-c", "shim.c", "trampolines.s"]).current_dir(work);
    succeed(&mut compile).context(missing)?;
    if archive.exists() {
        fs::remove_file(archive).with_context(|| format!("cannot replace {}", archive.display()))?;
    }
    let mut pack = Command::new("ar");
    pack.arg("rcs").arg(archive).args(["shim.o", "trampolines.o"]).current_dir(work);
    succeed(&mut pack).context("cannot run `ar`, which comes with the C compiler (apt-get install binutils)")
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
