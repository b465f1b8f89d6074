//! Debian's packages: downloaded and unpacked into a folder without root, or installed.

use crate::process;
use crate::progress::Progress;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Some packages that are wanted together.
#[derive(Debug, Clone, Copy)]
pub struct Packages {
    /// What they are, for progress: "the compiler".
    pub what: &'static str,
    /// Their names. Their dependencies carry version numbers, so they are asked for.
    pub names: &'static [&'static str],
    /// Of their dependencies, those that are not needed for what is done with them here, or that every system has; with
    /// these, what only they depend on.
    pub not_needed: &'static [&'static str],
}

/// The shared libraries of packages that were unpacked into `root`.
pub fn library_folder(root: &Path) -> Option<PathBuf> {
    let items = fs::read_dir(root.join("usr/lib")).ok()?;
    let mut folders = items.filter_map(|item| Some(item.ok()?.path()));
    folders.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("-linux-gnu")))
}

/// Downloads the packages with what they depend on and unpacks them into `root`, which is replaced. `tools` is the folder that
/// the work is done in.
pub fn unpack(packages: &Packages, root: &Path, tools: &Path, progress: &dyn Progress) -> Result<(), String> {
    for tool in ["apt-get", "apt-cache", "dpkg-deb"] {
        if process::in_path(tool).is_none() {
            return Err(format!("there is no {tool}: not a Debian system"));
        }
    }
    // The system's package lists may be absent, or name versions that are no longer served; then lists of our own.
    match unpack_with(&Apt::system(), packages, root, tools, progress) {
        Ok(()) => Ok(()),
        Err(first) => {
            let own = Apt::own(tools)?;
            progress.step("getting package lists into target/warpwire-tools");
            own.update()?;
            unpack_with(&own, packages, root, tools, progress)
                .map_err(|second| format!("{first}; with new lists: {second}"))
        }
    }
}

fn unpack_with(
    apt: &Apt,
    packages: &Packages,
    root: &Path,
    tools: &Path,
    progress: &dyn Progress,
) -> Result<(), String> {
    let names = closure(packages, |package| apt.depends(package), is_installed)?;
    let downloads = fresh_folder(&tools.join("packages"))?;
    progress.step(&format!("downloading {}", names.iter().cloned().collect::<Vec<_>>().join(", ")));
    apt.download(&names, &downloads)?;
    let partial = fresh_folder(&root.with_extension("partial"))?;
    progress.step(&format!("unpacking {}", packages.what));
    for item in fs::read_dir(&downloads).map_err(|error| error.to_string())? {
        let package = item.map_err(|error| error.to_string())?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&partial))?;
        }
    }
    remove(root)?;
    fs::rename(&partial, root).map_err(|error| format!("cannot move to {}: {error}", root.display()))?;
    remove(&downloads)
}

/// Installs the packages for everybody; needs root.
pub fn install(packages: &Packages) -> Result<(), String> {
    let names = packages.names;
    let user = process::output(Command::new("id").arg("-u")).map_err(|error| error.to_string())?;
    if user.trim() != "0" {
        return Err(format!("needs root; as root: apt-get install {}", names.join(" ")));
    }
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    let install = || run(apt().args(["install", "--yes", "--no-install-recommends"]).args(names));
    install().or_else(|_| run(apt().arg("update")).and_then(|()| install()))
}

/// apt with the system's package lists or with lists of one's own.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn system() -> Apt {
        Apt { options: vec![] }
    }

    fn own(tools: &Path) -> Result<Apt, String> {
        let folder = |name: &str| {
            let path = tools.join("apt").join(name);
            fs::create_dir_all(path.join("partial"))
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let path = path.canonicalize().map_err(|error| error.to_string())?;
            Ok::<String, String>(path.display().to_string())
        };
        let lists = format!("Dir::State::Lists={}", folder("lists")?);
        let cache = format!("Dir::Cache={}", folder("cache")?);
        Ok(Apt { options: vec![lists, cache] })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // As root apt would drop to a user of its own, who cannot write into the tools' folder.
        command.args(["-o", "APT::Sandbox::User=root"]);
        for option in &self.options {
            command.args(["-o", option]);
        }
        command
    }

    fn update(&self) -> Result<(), String> {
        run(self.command("apt-get").arg("update"))
    }

    fn depends(&self, package: &str) -> Result<Vec<String>, String> {
        let mut command = self.command("apt-cache");
        command.arg("depends").arg(package);
        let text = process::output(&mut command).map_err(|error| error.to_string())?;
        Ok(parse_depends(&text))
    }

    fn download(&self, packages: &BTreeSet<String>, folder: &Path) -> Result<(), String> {
        run(self.command("apt-get").arg("download").args(packages).current_dir(folder))
    }
}

/// The packages named and all that they depend on, but for what is installed already.
fn closure(
    packages: &Packages,
    depends: impl Fn(&str) -> Result<Vec<String>, String>,
    installed: impl Fn(&str) -> bool,
) -> Result<BTreeSet<String>, String> {
    let mut found: BTreeSet<String> = packages.names.iter().map(|&root| root.to_owned()).collect();
    let mut todo: Vec<String> = found.iter().cloned().collect();
    while let Some(package) = todo.pop() {
        for dependency in depends(&package)? {
            let skip = packages.not_needed.contains(&dependency.as_str()) || found.contains(&dependency);
            if !skip && !installed(&dependency) {
                found.insert(dependency.clone());
                todo.push(dependency);
            }
        }
    }
    Ok(found)
}

/// The real packages that `apt-cache depends` lists: virtual ones stand in angle brackets, their providers below them
/// without a keyword, and of alternatives (`|Depends`) the last is enough.
fn parse_depends(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.filter(|name| !name.starts_with('<')).map(str::to_owned).collect()
}

fn is_installed(package: &str) -> bool {
    let query = process::output(Command::new("dpkg-query").args(["-W", "-f=${db:Status-Status}", package]));
    query.is_ok_and(|status| status == "installed")
}

fn fresh_folder(path: &Path) -> Result<PathBuf, String> {
    remove(path)?;
    fs::create_dir_all(path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
    Ok(path.to_owned())
}

fn remove(path: &Path) -> Result<(), String> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    process::output(command).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUSTC: &str = "rustc-web
  Depends: libc6
  Depends: libstd-rust-web-dev
 |Depends: gcc
  Depends: clang
  Depends: <libc-dev>
    libc6-dev
  Conflicts: rustc
  Recommends: cargo-web
";

    const COMPILER: Packages =
        Packages { what: "a compiler", names: &["rustc-web", "rust-web-src"], not_needed: &["gcc"] };

    #[test]
    fn dependencies_are_read() {
        assert_eq!(parse_depends(RUSTC), ["libc6", "libstd-rust-web-dev", "clang"]);
    }

    #[test]
    fn the_closure_leaves_out_what_is_there() {
        let depends = |package: &str| {
            Ok(match package {
                "rustc-web" => vec!["libstd-rust-web-dev".into(), "gcc".into()],
                "libstd-rust-web-dev" => vec!["libllvm22".into(), "zlib1g".into()],
                _ => vec![],
            })
        };
        let names = closure(&COMPILER, depends, |package| package == "zlib1g").unwrap();
        let expected = ["libllvm22", "libstd-rust-web-dev", "rust-web-src", "rustc-web"];
        assert_eq!(names.into_iter().collect::<Vec<_>>(), expected);
        assert!(closure(&COMPILER, |_| Err("no lists".into()), |_| false).is_err());
    }
}
