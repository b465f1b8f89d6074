//! `ptx/gfx942/manifest.json`: what the files beside it were made from, and by what.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use warpwire_build::sha256;

/// The version of the format.
pub const FORMAT: u32 = 1;

/// The file's name.
pub const FILE_NAME: &str = "manifest.json";

/// Describes the assembly and the code object beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// `gfx942`
    pub target: String,
    /// What the compiler says of itself.
    pub compiler: String,
    /// The flags that it was given.
    pub flags: Vec<String>,
    /// The sources in `device/hip`, with the SHA-256 of each.
    pub sources: BTreeMap<String, String>,
    /// The files that came out, with the SHA-256 of each.
    pub files: BTreeMap<String, String>,
    /// The functions and kernels in them, each with which of the two it is.
    pub symbols: BTreeMap<String, String>,
}

impl Manifest {
    /// Reads a folder's.
    pub fn read(folder: &Path) -> Result<Manifest> {
        let path = folder.join(FILE_NAME);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let manifest: Manifest =
            serde_json::from_str(&text).with_context(|| format!("{} is no manifest", path.display()))?;
        if manifest.format != FORMAT {
            bail!("{}: format {} where {FORMAT} is known", path.display(), manifest.format);
        }
        Ok(manifest)
    }

    /// Writes a folder's.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE_NAME);
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// What of the files in `folder`, which this manifest is for, is not what `fresh` has: bytes are compared where the
    /// compiler is the same one.
    pub fn differences(&self, fresh: &Manifest, folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for (name, hash) in &self.files {
            if fs::read(folder.join(name)).map(|bytes| sha256(&bytes)).ok().as_ref() != Some(hash) {
                found.push(format!("{name} is not what the manifest says"));
            }
        }
        if self.sources != fresh.sources {
            found.push("the sources have changed".into());
        } else if (&self.compiler, &self.flags) == (&fresh.compiler, &fresh.flags)
            && self.files != fresh.files
        {
            found.push("the same sources give other files".into());
        } else if self.flags != fresh.flags {
            found.push("they were built with other flags".into());
        } else if self.symbols != fresh.symbols {
            found.push("the functions differ".into());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(compiler: &str, source: &str) -> Manifest {
        Manifest {
            format: FORMAT,
            target: "gfx942".into(),
            compiler: compiler.into(),
            flags: vec![],
            sources: [("a.hip".to_owned(), source.to_owned())].into(),
            files: [("a.s".to_owned(), sha256(b"code"))].into(),
            symbols: BTreeMap::new(),
        }
    }

    #[test]
    fn changed_sources_and_altered_files_are_found() {
        let folder = std::env::temp_dir().join(format!("warpwire-hip-manifest-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.s"), "code").unwrap();
        let old = manifest("clang 19", "1");
        old.write(&folder).unwrap();
        let old = Manifest::read(&folder).unwrap();
        assert_eq!(old.differences(&old, &folder), [""; 0]);
        assert_eq!(old.differences(&manifest("clang 19", "2"), &folder), ["the sources have changed"]);
        let other = Manifest { files: BTreeMap::new(), ..manifest("clang 20", "1") };
        assert_eq!(old.differences(&other, &folder), [""; 0], "another compiler writes other bytes");
        fs::write(folder.join("a.s"), "edited").unwrap();
        assert_eq!(old.differences(&old, &folder), ["a.s is not what the manifest says"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
