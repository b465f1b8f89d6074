//! What a user sets, and the way from a kernel crate to a folder of PTX files with their manifest.

use crate::arch::Arch;
use crate::codegen::Codegen;
use crate::compile;
use crate::cuda::{self, Ptxas};
use crate::environment;
use crate::error::Error;
use crate::manifest::{self, Built, FORMAT, Manifest};
use crate::output::Output;
use crate::pipeline::{Allowed, Finished, Pipeline};
use crate::progress::{Progress, Silent};
use crate::sources::Sources;
use crate::toolchain::{self, Search, Toolchain};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Builds a kernel crate to PTX. See the [crate's documentation](crate) for an example.
#[must_use = "nothing is built before `build` is called"]
pub struct Builder {
    folder: PathBuf,
    architectures: BTreeSet<Arch>,
    out: Option<PathBuf>,
    work: Option<PathBuf>,
    rustc: Option<PathBuf>,
    ptxas: Option<PathBuf>,
    cargo: OsString,
    codegen: Codegen,
    install: bool,
    cpu_only_allowed: bool,
    split: bool,
    allowed: Allowed,
    progress: Rc<dyn Progress>,
}

impl Builder {
    /// For the kernel crate in a folder. In a build script the folder is relative to the script's package, elsewhere to
    /// the current folder.
    pub fn new(folder: impl AsRef<Path>) -> Builder {
        let base = std::env::var_os("CARGO_MANIFEST_DIR").filter(|_| std::env::var_os("OUT_DIR").is_some());
        Builder {
            folder: base.map(PathBuf::from).unwrap_or_default().join(folder),
            architectures: Arch::DEFAULT.into(),
            out: None,
            work: None,
            rustc: None,
            ptxas: None,
            cargo: environment::cargo(),
            codegen: Codegen::default(),
            install: false,
            cpu_only_allowed: false,
            split: false,
            allowed: Allowed::default(),
            progress: Rc::new(Silent),
        }
    }

    /// For which architectures; [`Arch::DEFAULT`] otherwise.
    pub fn architectures(mut self, architectures: impl IntoIterator<Item = Arch>) -> Builder {
        self.architectures = architectures.into_iter().collect();
        self
    }

    /// Where the PTX and the manifest go; `OUT_DIR/ptx` in a build script, `ptx` in the kernel crate's folder elsewhere.
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.out = Some(folder.into());
        self
    }

    /// Where cargo works; the `target/warpwire-ptx` of the kernel crate's workspace otherwise, where all its kernel crates
    /// share a compiled `core`.
    pub fn work_dir(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.work = Some(folder.into());
        self
    }

    /// Which compiler, instead of the first that will do.
    pub fn rustc(mut self, rustc: impl Into<PathBuf>) -> Builder {
        self.rustc = Some(rustc.into());
        self
    }

    /// Which ptxas, instead of the first that is found.
    pub fn ptxas(mut self, ptxas: impl Into<PathBuf>) -> Builder {
        self.ptxas = Some(ptxas.into());
        self
    }

    /// Which code generator.
    pub fn codegen(mut self, codegen: Codegen) -> Builder {
        self.codegen = codegen;
        self
    }

    /// Whether to bring a compiler and ptxas where there are none.
    pub fn install(mut self, install: bool) -> Builder {
        self.install = install;
        self
    }

    /// Makes a missing compiler a warning of cargo's and gives an empty list of PTX, so that the program still runs on
    /// the CPU device. Kernels that do not compile are errors all the same.
    pub fn or_cpu_only(mut self) -> Builder {
        self.cpu_only_allowed = true;
        self
    }

    /// Gives each Rust module of the crate that declares kernels a PTX file of its own, named by its path, instead of all
    /// kernels one file. A driver then compiles the files whose kernels a program asks for, so that its first launch does
    /// not wait for the others. Functions that several modules call stand in the file of each.
    pub fn split_by_module(mut self, split: bool) -> Builder {
        self.split = split;
        self
    }

    /// Lets an entry keep data in local memory: an array that is indexed by what is only known at run time.
    pub fn allow_local_memory(mut self, entry: impl Into<String>) -> Builder {
        self.allowed.local_memory.insert(entry.into());
        self
    }

    /// Lets ptxas spill an entry's registers.
    pub fn allow_spills(mut self, entry: impl Into<String>) -> Builder {
        self.allowed.spills.insert(entry.into());
        self
    }

    /// Who is told of the steps.
    pub fn progress(mut self, progress: Rc<dyn Progress>) -> Builder {
        self.progress = progress;
        self
    }

    /// Reads the crate's sources and their hash, without building anything.
    pub fn sources(&self) -> Result<Sources, Error> {
        Sources::load(&self.folder, &self.cargo)
    }

    /// The folder that the PTX and the manifest go to.
    pub fn output_folder(&self) -> Result<PathBuf, Error> {
        Ok(self.out_folder(&self.sources()?))
    }

    /// Whether the files in the output folder come from the sources as they are now, whatever compiler made them.
    /// Needs no compiler.
    pub fn is_current_by_sources(&self) -> Result<bool, Error> {
        let sources = self.sources()?;
        let out = self.out_folder(&sources);
        let Some(manifest) = Manifest::read(&out)? else { return Ok(false) };
        let complete = self.architectures.iter().all(|arch| manifest.architecture(arch.name()).is_some());
        let same = manifest.sources == sources.hash && manifest.split == self.split;
        Ok(complete && same && manifest.altered_files(&out).is_empty())
    }

    /// Builds what is not up to date.
    pub fn build(&self) -> Result<Output, Error> {
        let sources = self.sources()?;
        let out = self.out_folder(&sources);
        let toolchain = match self.toolchain(&sources) {
            Ok(toolchain) => toolchain,
            Err(Error::NoToolchain(missing)) if self.cpu_only_allowed => {
                return Ok(Output::cpu_only(sources, out, missing));
            }
            Err(error) => return Err(error),
        };
        let tools = toolchain::tools_folder(&sources.workspace);
        let (codegen, why) = self.codegen.settle(&sources, &tools)?;
        let ptxas = self.assembler(&tools);
        let head = Manifest {
            format: FORMAT,
            package: sources.package.clone(),
            sources: sources.hash.clone(),
            compiler: toolchain.version.clone(),
            codegen: codegen.to_owned(),
            split: self.split,
            architectures: vec![],
        };
        // An unreadable manifest describes nothing that could be kept.
        let old = Manifest::read(&out).unwrap_or(None);
        if let Some(old) = &old
            && self.is_up_to_date(old, &head, &out, ptxas.as_ref())
        {
            return Ok(Output::built(sources, out, old.clone(), true));
        }
        self.progress.note(&format!("compiler: {}", toolchain.describe()));
        self.progress.note(&why);
        match &ptxas {
            Some(ptxas) => {
                self.progress.note(&format!("ptxas {}, from {}", ptxas.version, ptxas.tool.origin))
            }
            None => self.progress.note("no ptxas here: the PTX is built and checked, but not assembled"),
        }
        let pipeline = Pipeline {
            sources: &sources,
            toolchain: &toolchain,
            ptxas: ptxas.as_ref(),
            cargo: &self.cargo,
            work: self.work_folder(&sources),
            allowed: &self.allowed,
            split: self.split,
            progress: &*self.progress,
        };
        // All are made before the first is written: a failure leaves the folder as it was, not half new.
        let finished: Vec<Finished> =
            self.architectures.iter().map(|arch| pipeline.run(*arch)).collect::<Result<_, _>>()?;
        let mut manifest = head;
        for Finished { built, texts } in finished {
            for (listed, text) in built.files.iter().zip(&texts) {
                manifest::replace(&out.join(&listed.file), text.as_bytes())?;
            }
            if let Some(older) = old.as_ref().and_then(|old| old.architecture(&built.target)) {
                built.remove_others(older, &out)?;
            }
            manifest.architectures.push(built);
        }
        self.keep_others(&mut manifest, old.as_ref(), &out);
        manifest.write(&out)?;
        Ok(Output::built(sources, out, manifest, false))
    }

    fn toolchain(&self, sources: &Sources) -> Result<Toolchain, Error> {
        let mut search = Search::from_environment(&sources.workspace);
        if let Some(rustc) = &self.rustc {
            search.explicit = Some(rustc.clone());
        }
        self.progress.step("looking for a compiler");
        if self.install && search.explicit.is_none() {
            return Ok(toolchain::provide(&search, &*self.progress)?);
        }
        Ok(search.find()?)
    }

    /// Assembling is a check: where ptxas cannot be had, the PTX is built all the same.
    fn assembler(&self, tools: &Path) -> Option<Ptxas> {
        let find = || Ptxas::find(self.ptxas.as_deref(), tools);
        find().or_else(|| {
            if !self.install {
                return None;
            }
            match cuda::provide(cuda::Group::Ptxas, tools, &*self.progress) {
                Ok(()) => find(),
                Err(error) => {
                    self.progress.note(&error.to_string());
                    None
                }
            }
        })
    }

    fn is_up_to_date(&self, old: &Manifest, head: &Manifest, out: &Path, ptxas: Option<&Ptxas>) -> bool {
        let same = Manifest { architectures: old.architectures.clone(), ..head.clone() } == *old;
        let current = |arch: &Arch| {
            old.architecture(arch.name()).is_some_and(|built| {
                let assembled = ptxas.is_none() || built.ptxas.is_some();
                assembled && built.flags == compile::flags(*arch)
            })
        };
        same && self.architectures.iter().all(current) && old.altered_files(out).is_empty()
    }

    /// A build for some architectures keeps the others' files in the manifest as long as they are as current.
    fn keep_others(&self, manifest: &mut Manifest, old: Option<&Manifest>, out: &Path) {
        let Some(old) = old else { return };
        let same = Manifest { architectures: vec![], ..old.clone() }
            == Manifest { architectures: vec![], ..manifest.clone() };
        let altered = old.altered_files(out);
        for built in &old.architectures {
            if manifest.architecture(&built.target).is_some() {
                continue;
            }
            if same && !built.files.iter().any(|listed| altered.contains(&listed.file)) {
                manifest.architectures.push(built.clone());
            } else {
                let target = &built.target;
                self.progress.note(&format!("{target} is stale and no longer listed; build {target} too"));
            }
        }
        let age = |built: &Built| built.target.parse::<Arch>().ok();
        manifest.architectures.sort_by_key(age);
    }

    fn out_folder(&self, sources: &Sources) -> PathBuf {
        let script = std::env::var_os("OUT_DIR").map(|folder| PathBuf::from(folder).join("ptx"));
        let beside = || sources.manifest.parent().unwrap_or(Path::new(".")).join("ptx");
        self.out.clone().or(script).unwrap_or_else(beside)
    }

    fn work_folder(&self, sources: &Sources) -> PathBuf {
        let shared = || sources.workspace.join("target").join("warpwire-ptx");
        self.work.clone().unwrap_or_else(shared)
    }
}
