//! `manifest.json`: what was built, from what, by what, and what each kernel needs of a GPU.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The version of the manifest's own format.
pub const FORMAT: u32 = 2;

/// The file's name.
pub const FILE_NAME: &str = "manifest.json";

/// Describes the PTX files beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// The kernel crate.
    pub package: String,
    /// [`Sources::hash`](crate::Sources::hash).
    pub sources: String,
    /// What rustc says of itself, `rustc 1.95.0 (…)`.
    pub compiler: String,
    /// Which code generator was used.
    pub codegen: String,
    /// Whether each Rust module with kernels has a file of its own.
    pub split: bool,
    /// One for each architecture, oldest first.
    pub architectures: Vec<Built>,
}

/// The PTX for one architecture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Built {
    /// `sm_90`
    pub target: String,
    /// The version of the PTX instruction set, `8.0`.
    pub ptx: String,
    /// The flags that rustc was given.
    pub flags: Vec<String>,
    /// Which ptxas assembled it; none where there was no ptxas.
    pub ptxas: Option<String>,
    /// One, or one for each Rust module with kernels. Each is a PTX module by itself.
    pub files: Vec<PtxFile>,
}

impl Built {
    /// Removes what an older build for the architecture left and this one does not have: kernels that are gone, or moved.
    pub(crate) fn remove_others(&self, older: &Built, folder: &Path) -> Result<(), Error> {
        let is_gone = |old: &&PtxFile| self.files.iter().all(|listed| listed.file != old.file);
        for old in older.files.iter().filter(is_gone) {
            let path = folder.join(&old.file);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io("remove", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// One file of PTX.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtxFile {
    /// The file, relative to the manifest, with `/` between folders.
    pub file: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Its kernels, in the file's order.
    pub entries: Vec<Kernel>,
}

/// One kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// The name that the host looks it up by.
    pub name: String,
    /// Threads that a block may have.
    pub max_threads: Option<u32>,
    /// Blocks that must fit one multiprocessor.
    pub min_blocks: Option<u32>,
    /// Bytes of its arguments.
    pub param_bytes: u32,
    /// What ptxas gave it; none where there was no ptxas.
    pub resources: Option<Resources>,
}

/// What a kernel takes of a multiprocessor, by ptxas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Registers of each thread.
    pub registers: u32,
    /// Bytes of static shared memory.
    pub shared: u32,
    /// Bytes of stack of each thread.
    pub stack: u32,
    /// Bytes that spilling stores.
    pub spill_stores: u32,
    /// Bytes that spilling loads.
    pub spill_loads: u32,
}

impl Manifest {
    /// Reads the manifest of a folder; none if the folder has none.
    pub fn read(folder: &Path) -> Result<Option<Manifest>, Error> {
        let path = folder.join(FILE_NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        let refuse = |detail: String| Error::Manifest { path: path.clone(), detail };
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        if manifest.format != FORMAT {
            return Err(refuse(format!("format {} where {FORMAT} is known; rebuild it", manifest.format)));
        }
        Ok(Some(manifest))
    }

    /// Writes it into a folder, unless it says the same already.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(FILE_NAME);
        let failed =
            |error: serde_json::Error| Error::Manifest { path: path.clone(), detail: error.to_string() };
        let mut text = serde_json::to_string_pretty(self).map_err(failed)?;
        text.push('\n');
        replace(&path, text.as_bytes())
    }

    /// The PTX for one architecture.
    pub fn architecture(&self, target: &str) -> Option<&Built> {
        self.architectures.iter().find(|built| built.target == target)
    }

    /// Files whose contents are not what this manifest says, missing ones among them.
    pub fn altered_files(&self, folder: &Path) -> Vec<String> {
        let altered = |listed: &&PtxFile| match fs::read(folder.join(&listed.file)) {
            Ok(bytes) => crate::sources::sha256(&bytes) != listed.sha256,
            Err(_) => true,
        };
        self.files().filter(altered).map(|listed| listed.file.clone()).collect()
    }

    /// The files of all architectures.
    pub fn files(&self) -> impl Iterator<Item = &PtxFile> {
        self.architectures.iter().flat_map(|built| &built.files)
    }
}

/// Writes a file through a temporary one, so that nobody reads half of it. Equal contents leave it untouched.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|old| old == contents) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    fs::write(partial, contents).map_err(Error::io("write", partial))?;
    fs::rename(partial, path).map_err(Error::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(text: &str) -> Manifest {
        Manifest {
            format: FORMAT,
            package: "kernels".into(),
            sources: "0".into(),
            compiler: "rustc".into(),
            codegen: "llvm".into(),
            split: false,
            architectures: vec![Built {
                target: "sm_90".into(),
                ptx: "8.0".into(),
                flags: vec!["-Ctarget-cpu=sm_90".into()],
                ptxas: None,
                files: vec![PtxFile {
                    file: "sm_90/kernels.ptx".into(),
                    sha256: crate::sources::sha256(text.as_bytes()),
                    entries: vec![],
                }],
            }],
        }
    }

    #[test]
    fn files_that_a_build_no_longer_gives_are_removed() {
        let folder = std::env::temp_dir().join(format!("warpwire-moved-{}", std::process::id()));
        let [older] = &manifest("ptx").architectures[..] else { panic!("one architecture") };
        for file in ["sm_90/kernels.ptx", "sm_90/others.ptx"] {
            replace(&folder.join(file), b"ptx").unwrap();
        }
        older.remove_others(older, &folder).unwrap();
        assert!(folder.join("sm_90/kernels.ptx").exists());
        let moved = PtxFile { file: "sm_90/kernels.put.ptx".into(), ..older.files[0].clone() };
        let newer = Built { files: vec![moved], ..older.clone() };
        for _ in 0..2 {
            newer.remove_others(older, &folder).unwrap(); // the second time it is gone already
            assert!(!folder.join("sm_90/kernels.ptx").exists());
        }
        assert!(folder.join("sm_90/others.ptx").exists(), "what no build has listed is not the builder's");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn it_comes_back_as_written_and_notices_altered_files() {
        let folder = std::env::temp_dir().join(format!("warpwire-manifest-{}", std::process::id()));
        assert_eq!(Manifest::read(&folder).unwrap(), None);
        let written = manifest("ptx");
        written.write(&folder.join("x")).unwrap();
        let folder = folder.join("x");
        let read = Manifest::read(&folder).unwrap().unwrap();
        assert_eq!(read, written);
        assert_eq!(read.altered_files(&folder), ["sm_90/kernels.ptx"], "a missing file is an altered one");
        replace(&folder.join("sm_90/kernels.ptx"), b"ptx").unwrap();
        assert_eq!(read.altered_files(&folder), [""; 0]);
        replace(&folder.join("sm_90/kernels.ptx"), b"other").unwrap();
        assert_eq!(read.altered_files(&folder).len(), 1);
        fs::write(folder.join(FILE_NAME), "{}").unwrap();
        assert!(matches!(Manifest::read(&folder), Err(Error::Manifest { .. })));
        Manifest { format: 99, ..written }.write(&folder).unwrap();
        assert!(Manifest::read(&folder).unwrap_err().to_string().contains("99"));
        fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }
}
