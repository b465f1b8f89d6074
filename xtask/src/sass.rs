//! `cargo xtask sass`: what the kernels and the primitives are as machine code, beside the C++ baseline, without a GPU; and
//! whether they have grown beyond what is recorded.

mod assemble;
mod listing;
mod record;
mod table;

use crate::bench::{Nvcc, baseline};
use crate::build_ptx;
use crate::spinner::Spinner;
use crate::workspace;
use anyhow::{Context, Result, bail};
use assemble::Tools;
use listing::Code;
use record::{Record, Recorded, Size};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use table::Line;
use warpwire_build::manifest::Built;
use warpwire_build::{Arch, Builder, Manifest};

/// Arguments of `sass`.
#[derive(clap::Args)]
pub struct Args {
    /// Only this entry, with or without its prefix
    #[arg(long, value_name = "ENTRY")]
    entry: Option<String>,
    /// The architecture
    #[arg(long, default_value_t = Arch::SM_90)]
    arch: Arch,
    /// Bring a compiler, ptxas, cuobjdump and nvcc where there are none
    #[arg(long)]
    install: bool,
    /// Record what there is now
    #[arg(long)]
    bless: bool,
}

/// Our entries' prefixes, the table's heading for each, and the C++ file with their counterparts.
const GROUPS: [(&str, &str, &str); 2] =
    [("warpwire_", "kernels", "kernels.cu"), ("probe_", "primitives", "probes.cu")];
/// The prefix of the counterparts.
const BASELINE: &str = "baseline_";
/// What follows the stem in the names of counterparts whose waits have our waits' contract: a limit, an abort, a report.
const BOUNDED: &str = "_bounded";

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let spinner = Rc::new(Spinner::new());
    let found = Entries::collect(args, &spinner);
    spinner.clear();
    let found = found?;
    if let Some(note) = &found.note {
        println!("{note}");
    }
    let wanted = |name: &str| args.entry.as_deref().is_none_or(|entry| entry == name || entry == stem(name));
    if !found.ours.keys().any(|name| wanted(name)) {
        let known: Vec<&str> = found.ours.keys().map(|name| stem(name)).collect();
        bail!(
            "there is no entry `{}`; there are {}",
            args.entry.as_deref().unwrap_or_default(),
            known.join(", ")
        );
    }
    for (prefix, title, _) in GROUPS {
        let ours = found.ours.iter().filter(|(name, _)| name.starts_with(prefix) && wanted(name));
        let lines: Vec<Line<'_>> = ours.flat_map(|(name, code)| found.lines(name, code)).collect();
        if !lines.is_empty() {
            table::print(title, &lines);
            println!();
        }
    }
    found.verdict(args)
}

/// The name that ours and its counterpart share.
fn stem(name: &str) -> &str {
    let prefixes = GROUPS.iter().map(|(prefix, ..)| *prefix).chain([BASELINE]);
    prefixes.filter_map(|prefix| name.strip_prefix(prefix)).next().unwrap_or(name)
}

/// Everything that was assembled.
struct Entries {
    ours: BTreeMap<String, Code>,
    baseline: BTreeMap<String, Code>,
    compiler: String,
    ptxas: String,
    note: Option<String>,
}

impl Entries {
    fn collect(args: &Args, spinner: &Rc<Spinner>) -> Result<Entries> {
        let tools = Tools::provide(args.install, spinner)?;
        let (kernels, compiler) = kernels(args, spinner)?;
        let probes = Builder::new(workspace::root().join("tests/probes"));
        let (probes, _) = built(probes, "probes", args, spinner)?;
        let mut ours = BTreeMap::new();
        for ptx in kernels.iter().chain(&probes) {
            ours.extend(tools.code(ptx, args.arch)?);
        }
        let mut found = Entries {
            ours,
            baseline: BTreeMap::new(),
            compiler,
            ptxas: tools.ptxas.version.clone(),
            note: None,
        };
        match Nvcc::provide(args.install, spinner)? {
            None => {
                found.note = Some("no C++ lines: there is no nvcc; --install brings one from PyPI".into())
            }
            Some(nvcc) => {
                for (.., file) in GROUPS {
                    let ptx = workspace::root().join("target/sass/baseline").join(file).with_extension("ptx");
                    nvcc.compile(&baseline(file), args.arch.name(), &[], &ptx)?;
                    found.baseline.extend(tools.code(&ptx, args.arch)?);
                }
            }
        }
        Ok(found)
    }

    /// Ours, and below it its counterparts where there are any.
    fn lines<'a>(&'a self, name: &'a str, code: &'a Code) -> Vec<Line<'a>> {
        let mut lines = vec![Line { name: stem(name), who: "warpwire", code }];
        for (who, suffix) in [("C++", ""), ("bounded", BOUNDED)] {
            if let Some(code) = self.baseline.get(&format!("{BASELINE}{}{suffix}", stem(name))) {
                lines.push(Line { name: "", who, code });
            }
        }
        lines
    }

    /// Compares with the record, or writes it.
    fn verdict(&self, args: &Args) -> Result<ExitCode> {
        let path = workspace::root().join("xtask/bench/sass.json");
        let shown = workspace::shown(&path);
        let now: BTreeMap<String, Size> =
            self.ours.iter().map(|(name, code)| (name.clone(), Size::of(code))).collect();
        let mut record =
            if args.bless { Record::read(&path).unwrap_or(Record::empty()) } else { Record::read(&path)? };
        if args.bless {
            let recorded =
                Recorded { compiler: self.compiler.clone(), ptxas: self.ptxas.clone(), entries: now };
            record.architectures.insert(args.arch.name().to_owned(), recorded);
            record.write(&path)?;
            println!("{shown}: recorded {} entries for {}", self.ours.len(), args.arch);
            return Ok(ExitCode::SUCCESS);
        }
        let Some(recorded) = record.architectures.get(args.arch.name()) else {
            println!("{shown} has no record for {}; --bless makes one", args.arch);
            return Ok(ExitCode::SUCCESS);
        };
        for (what, here, there) in
            [("ptxas", &self.ptxas, &recorded.ptxas), ("compiler", &self.compiler, &recorded.compiler)]
        {
            if here != there {
                println!("not compared with {shown}: it is of {what} {there}, here is {here}");
                return Ok(ExitCode::SUCCESS);
            }
        }
        for entry in recorded.unknown(&now) {
            println!("{entry} is not in {shown}; --bless records it");
        }
        let regressions = recorded.regressions(&now);
        for regression in &regressions {
            println!("grown: {regression}");
        }
        if regressions.is_empty() {
            println!("no entry has grown beyond {shown}");
            return Ok(ExitCode::SUCCESS);
        }
        println!("mend it, or record it with --bless");
        Ok(ExitCode::FAILURE)
    }
}

/// The project's kernels: the committed PTX where it is what the sources give, else built.
fn kernels(args: &Args, spinner: &Rc<Spinner>) -> Result<(Vec<PathBuf>, String)> {
    let builder =
        build_ptx::Args { arch: vec![args.arch], ..build_ptx::Args::project(args.install) }.builder();
    if builder.is_current_by_sources()? {
        let folder = workspace::ptx();
        let manifest = Manifest::read(&folder)?;
        let committed =
            manifest.as_ref().and_then(|manifest| Some((manifest, manifest.architecture(args.arch.name())?)));
        if let Some((manifest, built)) = committed {
            return Ok((files(&folder, built), manifest.compiler.clone()));
        }
    }
    built(builder, "kernels", args, spinner)
}

/// The files of a build in a folder.
fn files(folder: &Path, built: &Built) -> Vec<PathBuf> {
    built.files.iter().map(|listed| folder.join(&listed.file)).collect()
}

/// Builds a kernel crate for the one architecture, into a folder of its own below `target`; its files and their compiler.
fn built(builder: Builder, name: &str, args: &Args, spinner: &Rc<Spinner>) -> Result<(Vec<PathBuf>, String)> {
    let folder = workspace::root().join("target/sass").join(name);
    let builder = builder.architectures([args.arch]).install(args.install).progress(spinner.clone());
    let output = builder.out_dir(&folder).build()?;
    let manifest = output.manifest.as_ref().context("the build left no manifest")?;
    let built = manifest.architecture(args.arch.name()).context("the build left out the architecture")?;
    Ok((files(&folder, built), manifest.compiler.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counterparts_share_a_stem() {
        for name in ["warpwire_put", "baseline_put", "put"] {
            assert_eq!(stem(name), "put");
        }
        assert_eq!(stem("probe_ll16_read"), stem("baseline_ll16_read"));
    }
}
