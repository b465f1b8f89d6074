//! `cargo xtask build-hip`: compiles the gfx942 sibling of the fp8 conversions, in `device/hip`, to assembly and to a code
//! object in `ptx/gfx942`, or checks that the committed ones are what it gives.

mod manifest;
mod tools;

use crate::spinner::Spinner;
use crate::workspace;
use anyhow::{Context, Result, bail};
use manifest::Manifest;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tools::Hip;
use warpwire_build::toolchain::tools_folder;
use warpwire_build::{Progress, sha256};

/// The architecture: MI300.
const TARGET: &str = "gfx942";

/// What is compiled, in `device/hip`.
const SOURCE: &str = "e4m3b15.hip";

/// Without AMD's device libraries and headers: the kernels need neither, and Debian has none for this target.
const FLAGS: [&str; 7] = [
    "--offload-arch=gfx942",
    "-nogpulib",
    "-nogpuinc",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
    "-fuse-cuid=none", // a name made of the paths would differ from machine to machine
    "-O3",
];

/// Arguments of `build-hip`.
#[derive(clap::Args)]
pub struct Args {
    /// Bring hipcc, and a clang that knows gfx942, where there are none
    #[arg(long)]
    pub install: bool,
    /// Build elsewhere, and fail naming each file that differs from what the sources give
    #[arg(long)]
    pub check: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let spinner = Spinner::new();
    let verdict = build_or_check(args, &spinner);
    spinner.clear();
    verdict
}

fn build_or_check(args: &Args, spinner: &Spinner) -> Result<ExitCode> {
    let tools = tools_folder(&workspace::root());
    let hip = match Hip::find(&tools) {
        Ok(hip) => hip,
        Err(missing) if args.install => tools::provide(&tools, &missing, spinner)?,
        Err(missing) => bail!("{missing}"),
    };
    let committed = workspace::ptx().join(TARGET);
    if !args.check {
        let manifest = build(&hip, &committed, spinner)?;
        spinner.clear();
        report(&manifest, &committed);
        return Ok(ExitCode::SUCCESS);
    }
    let old = Manifest::read(&committed)?;
    let new = build(&hip, &workspace::root().join("target/warpwire-hip/check"), spinner)?;
    spinner.clear();
    let stale = old.differences(&new, &committed);
    for line in &stale {
        println!("stale: {line}");
    }
    if stale.is_empty() {
        println!("{}: current", workspace::shown(&committed));
        return Ok(ExitCode::SUCCESS);
    }
    println!("run `cargo xtask build-hip` and commit the result");
    Ok(ExitCode::FAILURE)
}

/// Where the sources are.
fn sources() -> PathBuf {
    workspace::root().join("device/hip")
}

/// Compiles into `folder`, and describes what came out.
fn build(hip: &Hip, folder: &Path, spinner: &Spinner) -> Result<Manifest> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let stem = Path::new(SOURCE).with_extension("");
    let outputs = [("-S", stem.with_extension("s")), ("-c", stem.with_extension("co"))];
    for (kind, name) in &outputs {
        spinner.step(&format!("compiling {SOURCE} to {}", name.display()));
        // In the sources' folder and with a relative name: the output names its source.
        let mut command = hip.command();
        let output = folder.join(name);
        command.args(FLAGS).arg(kind).arg(SOURCE).arg("-o").arg(&output).current_dir(sources());
        finish(&mut command)?;
        // The linker makes a code object executable; nothing executes it, and the committed one is not.
        fs::set_permissions(&output, Permissions::from_mode(0o644))
            .with_context(|| format!("cannot set the mode of {}", output.display()))?;
    }
    let assembly = fs::read_to_string(folder.join(&outputs[0].1))?;
    let manifest = Manifest {
        format: manifest::FORMAT,
        target: TARGET.into(),
        compiler: hip.version.clone(),
        flags: FLAGS.map(str::to_owned).into(),
        sources: hashes(&sources(), |_| true)?,
        files: hashes(folder, |name| name != manifest::FILE_NAME)?,
        symbols: symbols(&assembly),
    };
    manifest.write(folder)?;
    Ok(manifest)
}

fn finish(command: &mut Command) -> Result<()> {
    let spelled = format!("{command:?}");
    let done = command.output().with_context(|| format!("cannot run {spelled}"))?;
    if !done.status.success() {
        bail!("{spelled}: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(())
}

/// The files of a folder with the hashes of their contents.
fn hashes(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for item in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = item?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && wanted(&name) {
            let contents = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            found.insert(name, sha256(&contents));
        }
    }
    Ok(found)
}

/// The functions and kernels of an assembly file, in its order: kernels are those with a descriptor.
fn symbols(assembly: &str) -> BTreeMap<String, String> {
    let named =
        |line: &str, directive: &str| line.trim().strip_prefix(directive).map(|rest| rest.trim().to_owned());
    let kernels: Vec<String> = assembly.lines().filter_map(|line| named(line, ".amdhsa_kernel ")).collect();
    let functions = assembly
        .lines()
        .filter_map(|line| named(line, ".type")?.strip_suffix(",@function").map(str::to_owned));
    functions
        .map(|name| {
            let kind = if kernels.contains(&name) { "kernel" } else { "function" };
            (name, kind.to_owned())
        })
        .collect()
}

fn report(manifest: &Manifest, folder: &Path) {
    println!("{}", manifest.compiler);
    for (name, kind) in &manifest.symbols {
        println!("  {kind:<9} {name}");
    }
    for name in manifest.files.keys() {
        println!("{}", workspace::shown(&folder.join(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_and_functions_are_told_apart() {
        let assembly = "\t.type\tf,@function\nf:\n\t.type\tk,@function ; -- Begin\n\t.type\tk,@function\nk:\n\t.amdhsa_kernel k\n\t.type\tx,@object\n";
        let found = symbols(assembly);
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("f".to_owned(), "function".to_owned()), ("k".to_owned(), "kernel".to_owned())]
        );
    }
}
