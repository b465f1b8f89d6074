//! What a kernel crate is made of: its packages, their files, and one hash over all of it.

use crate::error::Error;
use crate::process;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target that rustc knows NVIDIA's GPUs by.
pub(crate) const TARGET: &str = "nvptx64-nvidia-cuda";

/// A kernel crate with its path dependencies.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The package's name, `warpwire-kernels`.
    pub package: String,
    /// The library's name, `warpwire_kernels`, which the PTX files are called by.
    pub library: String,
    /// The package's Cargo.toml.
    pub manifest: PathBuf,
    /// The workspace's folder.
    pub workspace: PathBuf,
    /// Every Rust source and Cargo.toml that the PTX depends on.
    pub files: Vec<PathBuf>,
    /// SHA-256 over the files' names within their packages and their contents, and over the names and versions of the
    /// dependencies that come from a registry.
    pub hash: String,
    pub(crate) dependencies: BTreeSet<String>,
}

impl Sources {
    /// Reads the crate in `folder`, which may also be its Cargo.toml.
    pub fn load(folder: &Path, cargo: &OsStr) -> Result<Sources, Error> {
        let manifest = if folder.is_dir() { folder.join("Cargo.toml") } else { folder.to_owned() };
        let manifest = manifest.canonicalize().map_err(Error::io("find", &manifest))?;
        let metadata = Metadata::of(&manifest, cargo)?;
        let wrong = |detail: String| Error::Package { manifest: manifest.clone(), detail };

        let is_root = |package: &&Package| package.manifest_path == manifest;
        let root =
            metadata.packages.iter().find(is_root).ok_or_else(|| wrong("it names no package".into()))?;
        let library = root.library().ok_or_else(|| wrong("it has no library".into()))?;
        let (local, foreign) = metadata.closure(&root.id);

        let mut by_name = BTreeMap::new();
        for package in &local {
            package.collect_files(&mut by_name)?;
        }
        let mut hash = Sha256::new();
        for dependency in &foreign {
            hash.update(dependency);
            hash.update([0]);
        }
        for (name, path) in &by_name {
            let contents = fs::read(path).map_err(Error::io("read", path))?;
            hash.update(name);
            hash.update([0]);
            hash.update((contents.len() as u64).to_le_bytes());
            hash.update(contents);
        }
        Ok(Sources {
            package: root.name.clone(),
            library: library.name.replace('-', "_"),
            manifest: manifest.clone(),
            workspace: metadata.workspace_root.clone(),
            files: by_name.into_values().collect(),
            hash: hex(&hash.finalize()),
            dependencies: foreign
                .into_iter()
                .chain(local.iter().map(|package| package.name.clone()))
                .collect(),
        })
    }
}

#[cfg(test)]
impl Sources {
    /// A crate that is nowhere.
    pub(crate) fn for_tests() -> Sources {
        Sources {
            package: "k".into(),
            library: "k".into(),
            manifest: PathBuf::new(),
            workspace: PathBuf::new(),
            files: vec![],
            hash: String::new(),
            dependencies: BTreeSet::new(),
        }
    }
}

/// SHA-256 of some bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The part of `cargo metadata`'s answer that is needed here.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
    workspace_root: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    source: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Debug, Deserialize)]
struct Dep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Debug, Deserialize)]
struct DepKind {
    kind: Option<String>,
}

impl Metadata {
    fn of(manifest: &Path, cargo: &OsStr) -> Result<Metadata, Error> {
        let mut command = Command::new(cargo);
        command.args(["metadata", "--format-version", "1", "--filter-platform", TARGET, "--manifest-path"]);
        command.arg(manifest);
        crate::compile::isolate(&mut command);
        let json = process::output(&mut command)?;
        let unreadable = |error: serde_json::Error| Error::Command {
            command: process::spelled(&command),
            detail: error.to_string(),
        };
        serde_json::from_str(&json).map_err(unreadable)
    }

    /// The packages that `root` is built from: those with a path, and the names and versions of the others.
    fn closure(&self, root: &str) -> (Vec<&Package>, BTreeSet<String>) {
        let packages: HashMap<&str, &Package> = self.packages.iter().map(|p| (p.id.as_str(), p)).collect();
        let nodes: HashMap<&str, &Node> = self.resolve.nodes.iter().map(|n| (n.id.as_str(), n)).collect();
        let (mut local, mut foreign) = (Vec::new(), BTreeSet::new());
        let mut seen = BTreeSet::from([root]);
        let mut todo = vec![root];
        while let Some(id) = todo.pop() {
            let Some(package) = packages.get(id) else { continue };
            match package.source {
                None => local.push(*package),
                Some(_) => {
                    foreign.insert(format!("{} {}", package.name, package.version));
                }
            }
            for dep in nodes.get(id).map_or(&[][..], |node| &node.deps) {
                let built_in = dep.dep_kinds.iter().any(|kind| kind.kind.is_none());
                if built_in && seen.insert(&dep.pkg) {
                    todo.push(&dep.pkg);
                }
            }
        }
        (local, foreign)
    }
}

impl Package {
    fn library(&self) -> Option<&Target> {
        const KINDS: [&str; 4] = ["lib", "rlib", "cdylib", "staticlib"];
        self.targets.iter().find(|target| target.kind.iter().any(|kind| KINDS.contains(&kind.as_str())))
    }

    /// Adds Cargo.toml, the build script and the library's Rust sources, each by its name within the package.
    fn collect_files(&self, files: &mut BTreeMap<String, PathBuf>) -> Result<(), Error> {
        let folder = self.manifest_path.parent().unwrap_or(Path::new("."));
        let mut add = |path: PathBuf| {
            let relative = path.strip_prefix(folder).unwrap_or(&path);
            let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
            files.insert(format!("{}/{}", self.name, parts.join("/")), path);
        };
        add(self.manifest_path.clone());
        for target in &self.targets {
            if target.kind.iter().any(|kind| kind == "custom-build") {
                add(target.src_path.clone());
            }
        }
        if let Some(root) = self.library().and_then(|library| library.src_path.parent()) {
            rust_files(root, &mut add)?;
        }
        Ok(())
    }
}

/// Every `.rs` below a folder. A folder with a Cargo.toml of its own is another package.
fn rust_files(folder: &Path, add: &mut impl FnMut(PathBuf)) -> Result<(), Error> {
    for item in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = item.map_err(Error::io("read", folder))?.path();
        if path.is_dir() {
            if !path.join("Cargo.toml").exists() {
                rust_files(&path, add)?;
            }
        } else if path.extension() == Some(OsStr::new("rs")) {
            add(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_in(folder: &Path, body: &str) -> Sources {
        fs::create_dir_all(folder.join("src/inner")).unwrap();
        let toml =
            "[package]\nname = \"some-kernels\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
        fs::write(folder.join("Cargo.toml"), toml).unwrap();
        fs::write(folder.join("src/lib.rs"), "mod inner;").unwrap();
        fs::write(folder.join("src/inner/mod.rs"), body).unwrap();
        Sources::load(folder, OsStr::new("cargo")).unwrap()
    }

    #[test]
    fn the_hash_follows_contents_and_not_the_folder() {
        let base = std::env::temp_dir().join(format!("warpwire-sources-{}", std::process::id()));
        let one = crate_in(&base.join("one"), "// a");
        let two = crate_in(&base.join("two"), "// a");
        let three = crate_in(&base.join("three"), "// b");
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(one.library, "some_kernels");
        assert_eq!(one.files.len(), 3);
        assert_eq!(one.hash, two.hash);
        assert_ne!(one.hash, three.hash);
    }
}
