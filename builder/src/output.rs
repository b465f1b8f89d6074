//! What a build gives: files, their manifest, and what a build script tells cargo.

use crate::environment;
use crate::error::Error;
use crate::manifest::{self, Manifest};
use crate::sources::Sources;
use crate::toolchain::NoToolchain;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The PTX files of a kernel crate.
#[derive(Debug, Clone)]
pub struct Output {
    /// The crate that they were built from.
    pub sources: Sources,
    /// The folder with the files and the manifest.
    pub folder: PathBuf,
    /// What was built; without architectures where there was no compiler and
    /// [`or_cpu_only`](crate::Builder::or_cpu_only) allowed that.
    pub manifest: Option<Manifest>,
    /// Whether everything was there already.
    pub was_up_to_date: bool,
    missing: Option<NoToolchain>,
}

impl Output {
    pub(crate) fn built(
        sources: Sources,
        folder: PathBuf,
        manifest: Manifest,
        was_up_to_date: bool,
    ) -> Output {
        Output { sources, folder, manifest: Some(manifest), was_up_to_date, missing: None }
    }

    pub(crate) fn cpu_only(sources: Sources, folder: PathBuf, missing: NoToolchain) -> Output {
        Output { sources, folder, manifest: None, was_up_to_date: false, missing: Some(missing) }
    }

    /// The PTX files with the architecture's number, oldest first: one for each architecture, or several where the crate is
    /// [split](crate::Builder::split_by_module).
    pub fn files(&self) -> Vec<(u32, PathBuf)> {
        let built = self.manifest.iter().flat_map(|manifest| &manifest.architectures);
        let numbered = built.filter_map(|built| {
            let arch: crate::Arch = built.target.parse().ok()?;
            Some(built.files.iter().map(move |listed| (arch.number(), self.folder.join(&listed.file))))
        });
        numbered.flatten().collect()
    }

    /// Tells cargo, from a build script, when to run the script again, and where the PTX lies: the variable
    /// `LIBRARY_PTX_DIR` (the library's name in capitals) is set for the crate's own `env!`.
    pub fn emit_cargo(&self) -> &Output {
        for file in &self.sources.files {
            println!("cargo:rerun-if-changed={}", file.display());
        }
        for name in environment::ALL {
            println!("cargo:rerun-if-env-changed={name}");
        }
        let variable = format!("{}_PTX_DIR", self.sources.library.to_uppercase());
        println!("cargo:rustc-env={variable}={}", self.folder.display());
        if let Some(missing) = &self.missing {
            let lines: Vec<_> = missing.to_string().lines().map(|line| line.trim().to_owned()).collect();
            println!("cargo:warning=built for the CPU device only: {}", lines.join(" "));
        }
        self
    }

    /// Writes `LIBRARY_ptx.rs` into a folder, a Rust file that defines `PTX`, the texts with their architectures:
    /// `pub static PTX: &[(u32, &str)]`. A build script passes its `OUT_DIR`, and the crate includes the file.
    pub fn embed(&self, folder: impl AsRef<Path>) -> Result<PathBuf, Error> {
        let path = folder.as_ref().join(format!("{}_ptx.rs", self.sources.library));
        let mut text =
            format!("/// The PTX of `{}`, by the oldest architecture that runs it.\n", self.sources.package);
        text.push_str("pub static PTX: &[(u32, &str)] = &[\n");
        for (number, file) in self.files() {
            let file = file.canonicalize().map_err(Error::io("find", &file))?;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "    ({number}, include_str!({:?})),", file.display().to_string());
        }
        text.push_str("];\n");
        manifest::replace(&path, text.as_bytes())?;
        Ok(path)
    }
}
