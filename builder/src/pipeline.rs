//! One architecture's way: compile, check, put the launch bounds in, split, assemble, describe.

use crate::arch::Arch;
use crate::compile::{self, Compilation};
use crate::cuda::{Assembled, Ptxas};
use crate::description::{self, Described};
use crate::error::Error;
use crate::lint::{self, Fault, FaultKind};
use crate::manifest::{self, Built, Kernel, PtxFile, Resources};
use crate::progress::Progress;
use crate::ptx::{Entry, Module};
use crate::sources::{self, Sources};
use crate::split::split;
use crate::symbols;
use crate::toolchain::Toolchain;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The entries that may do what is otherwise refused.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowed {
    pub(crate) local_memory: BTreeSet<String>,
    pub(crate) spills: BTreeSet<String>,
}

/// What every architecture of a build shares.
pub(crate) struct Pipeline<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) toolchain: &'a Toolchain,
    pub(crate) ptxas: Option<&'a Ptxas>,
    pub(crate) cargo: &'a OsStr,
    /// For cargo's files, and for the PTX on its way.
    pub(crate) work: PathBuf,
    pub(crate) allowed: &'a Allowed,
    /// Whether each Rust module of the crate has a file of its own.
    pub(crate) split: bool,
    pub(crate) progress: &'a dyn Progress,
}

/// PTX that passed every check, and its description.
pub(crate) struct Finished {
    pub(crate) built: Built,
    /// The texts of the files in `built`, in their order.
    pub(crate) texts: Vec<String>,
}

impl Pipeline<'_> {
    /// Goes the whole way for one architecture. Nothing outside of the work folder is written.
    pub(crate) fn run(&self, arch: Arch) -> Result<Finished, Error> {
        let work = self.work.join(&self.sources.package).join(arch.name());
        self.progress.step(&format!("compiling {} for {arch}", self.sources.package));
        let raw = self.compile(arch)?;
        // A refusal counts its lines in this file.
        let unchecked = work.join("unchecked.ptx");
        manifest::replace(&unchecked, raw.as_bytes())?;
        let described = self.check(arch, &raw, &unchecked)?;

        let mut built = Built {
            target: arch.name().to_owned(),
            ptx: String::new(),
            flags: compile::flags(arch),
            ptxas: None,
            files: vec![],
        };
        let mut texts = vec![];
        for (name, text) in self.parts(arch, described)? {
            let checked = work.join(&name);
            manifest::replace(&checked, text.as_bytes())?;
            let (ptxas, resources) = self.assemble(arch, &checked)?;
            self.refuse_spills(arch, &resources, &checked)?;
            let module = Module::parse(&text).map_err(|source| Error::Ptx { arch, source })?;
            built.ptx = module.header.version.to_string();
            built.ptxas = ptxas;
            built.files.push(describe(format!("{arch}/{name}"), &module, &resources));
            texts.push(text);
        }
        Ok(Finished { built, texts })
    }

    /// The files that a text becomes, by name.
    fn parts(&self, arch: Arch, described: Described) -> Result<Vec<(String, String)>, Error> {
        let Described { text, modules } = described;
        if !self.split {
            return Ok(vec![(format!("{}.ptx", self.sources.library), text)]);
        }
        let module = Module::parse(&text).map_err(|source| Error::Ptx { arch, source })?;
        let file = |entry: &str| format!("{}.ptx", modules[entry].replace("::", "."));
        Ok(split(&module, file))
    }

    fn compile(&self, arch: Arch) -> Result<String, Error> {
        let compilation = Compilation {
            sources: self.sources,
            toolchain: self.toolchain,
            cargo: self.cargo,
            arch,
            target_dir: self.work.join("cargo").join(arch.name()),
        };
        Ok(symbols::without_hashes(&compilation.run()?))
    }

    /// Checks the compiler's text and puts the launch bounds in.
    fn check(&self, arch: Arch, raw: &str, file: &Path) -> Result<Described, Error> {
        let module = Module::parse(raw).map_err(|source| Error::Ptx { arch, source })?;
        let faults = lint::check(&module, &self.allowed.local_memory);
        if !faults.is_empty() {
            return Err(Error::Refused { arch, faults, file: file.to_owned() });
        }
        description::apply(&module).map_err(|bad| Error::Bounds {
            arch,
            entry: bad.entry,
            detail: bad.detail,
        })
    }

    /// The version of ptxas that took the file, and what each entry uses; neither where there is no ptxas for it.
    fn assemble(
        &self,
        arch: Arch,
        file: &Path,
    ) -> Result<(Option<String>, HashMap<String, Resources>), Error> {
        let Some(ptxas) = self.ptxas else { return Ok(Default::default()) };
        let name = file.file_stem().unwrap_or_default().display();
        self.progress.step(&format!("assembling {name} for {arch}"));
        match ptxas.assemble(arch, file, &file.with_extension("cubin"))? {
            Assembled::Taken(report) => Ok((Some(ptxas.version.clone()), report)),
            Assembled::TooOld(said) => {
                let version = &ptxas.version;
                self.progress.note(&format!("{arch}: not assembled, ptxas {version} is too old: {said}"));
                Ok(Default::default())
            }
        }
    }

    fn refuse_spills(
        &self,
        arch: Arch,
        resources: &HashMap<String, Resources>,
        file: &Path,
    ) -> Result<(), Error> {
        let spilt = resources.iter().filter(|(entry, used)| {
            (used.spill_stores > 0 || used.spill_loads > 0) && !self.allowed.spills.contains(entry.as_str())
        });
        let mut faults: Vec<Fault> = spilt
            .map(|(entry, used)| Fault {
                entry: entry.clone(),
                line: 0,
                kind: FaultKind::Spill { stores: used.spill_stores, loads: used.spill_loads },
            })
            .collect();
        faults.sort_by(|a, b| a.entry.cmp(&b.entry));
        if faults.is_empty() { Ok(()) } else { Err(Error::Refused { arch, faults, file: file.to_owned() }) }
    }
}

/// What the manifest says of a file.
fn describe(file: String, module: &Module<'_>, resources: &HashMap<String, Resources>) -> PtxFile {
    let kernel = |entry: &Entry<'_>| Kernel {
        name: entry.name.to_owned(),
        max_threads: entry.max_threads(),
        min_blocks: entry.min_blocks,
        param_bytes: entry.param_size(),
        resources: resources.get(entry.name).copied(),
    };
    PtxFile {
        file,
        sha256: sources::sha256(module.text.as_bytes()),
        entries: module.entries.iter().map(kernel).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use crate::toolchain::Origin;

    #[test]
    fn spills_are_refused_unless_allowed() {
        let sources = Sources::for_tests();
        let toolchain = Toolchain {
            rustc: PathBuf::new(),
            version: String::new(),
            origin: Origin::Explicit,
            library_path: None,
        };
        let refuse = |allowed: &Allowed| {
            let pipeline = Pipeline {
                sources: &sources,
                toolchain: &toolchain,
                ptxas: None,
                cargo: OsStr::new("cargo"),
                work: PathBuf::new(),
                allowed,
                split: false,
                progress: &Silent,
            };
            let used = Resources { spill_stores: 8, ..Resources::default() };
            pipeline.refuse_spills(Arch::SM_90, &HashMap::from([("k".to_owned(), used)]), Path::new("k.ptx"))
        };
        let error = refuse(&Allowed::default()).unwrap_err().to_string();
        assert!(error.contains("k: ptxas spills registers (8 bytes stored"), "{error}");
        assert!(refuse(&Allowed { spills: ["k".to_owned()].into(), ..Allowed::default() }).is_ok());
    }
}
