//! `--check`: are the committed files what the crate gives now?

use crate::spinner::Spinner;
use crate::workspace;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::ExitCode;
use warpwire_build::manifest::PtxFile;
use warpwire_build::{Builder, Manifest, Output};

/// Builds into a folder below `target` and compares.
pub fn run(builder: Builder, spinner: &Spinner) -> Result<ExitCode> {
    let committed_in = builder.output_folder()?;
    let committed = Manifest::read(&committed_in)?.with_context(|| {
        format!("{} has no manifest; run `cargo xtask build-ptx` first", workspace::shown(&committed_in))
    })?;
    let fresh = builder.out_dir(workspace::root().join("target/warpwire-ptx/check")).build()?;
    spinner.clear();
    let verdict = compare(&committed, &committed_in, &fresh);
    for line in &verdict.remarks {
        println!("{line}");
    }
    for line in &verdict.stale {
        println!("stale: {line}");
    }
    if verdict.stale.is_empty() {
        println!("{}: current", workspace::shown(&committed_in));
        return Ok(ExitCode::SUCCESS);
    }
    println!("run `cargo xtask build-ptx` and commit the result");
    Ok(ExitCode::FAILURE)
}

/// What a comparison found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    stale: Vec<String>,
    remarks: Vec<String>,
}

fn compare(committed: &Manifest, folder: &Path, fresh: &Output) -> Verdict {
    let mut verdict = Verdict::default();
    let Some(built) = &fresh.manifest else { return verdict };
    verdict.stale.extend(
        committed
            .altered_files(folder)
            .into_iter()
            .map(|file| format!("{file} is not what the manifest says")),
    );
    compare_manifests(committed, built, &mut verdict);
    verdict
}

fn compare_manifests(committed: &Manifest, built: &Manifest, verdict: &mut Verdict) {
    let same_compiler = committed.compiler == built.compiler && committed.codegen == built.codegen;
    let same_sources = committed.sources == built.sources;
    if !same_compiler {
        verdict.remarks.push(format!(
            "the committed PTX was made by {}, here is {}: compared by the sources' hash, and what was built here was \
             checked and assembled",
            committed.compiler, built.compiler
        ));
    }
    for new in &built.architectures {
        let Some(old) = committed.architecture(&new.target) else {
            verdict.stale.push(format!("{} is missing", new.target));
            continue;
        };
        if old.flags != new.flags {
            verdict.stale.push(format!("{} was built with other flags", new.target));
        }
        // Another compiler's code takes other registers.
        let same_tools = same_compiler && old.ptxas == new.ptxas;
        for listed in &new.files {
            let file = &listed.file;
            match old.files.iter().find(|old| old.file == *file) {
                None => verdict.stale.push(format!("{file} is missing")),
                Some(old) if if same_compiler { old.sha256 != listed.sha256 } else { !same_sources } => {
                    verdict.stale.push(format!("{file} differs from what the sources give"));
                }
                Some(old) if same_tools && old.entries != listed.entries => {
                    verdict.stale.push(format!("{file}: the manifest's kernels differ"));
                }
                Some(_) => {}
            }
        }
        let is_gone = |old: &&PtxFile| new.files.iter().all(|listed| listed.file != old.file);
        let gone = old.files.iter().filter(is_gone);
        verdict.stale.extend(gone.map(|old| format!("{} is nothing that the sources give", old.file)));
    }
    // Equal PTX from other sources: a comment changed, say. The manifest still has to tell the truth.
    if verdict.stale.is_empty() && !same_sources {
        verdict.stale.push("manifest.json names other sources; the PTX itself is the same".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwire_build::manifest::{Built, FORMAT, Kernel};

    fn manifest(compiler: &str, sources: &str, sha256: &str) -> Manifest {
        Manifest {
            format: FORMAT,
            package: "kernels".into(),
            sources: sources.into(),
            compiler: compiler.into(),
            codegen: "llvm".into(),
            split: false,
            architectures: vec![Built {
                target: "sm_90".into(),
                ptx: "8.0".into(),
                flags: vec![],
                ptxas: None,
                files: vec![PtxFile {
                    file: "sm_90/kernels.ptx".into(),
                    sha256: sha256.into(),
                    entries: vec![],
                }],
            }],
        }
    }

    fn kernel() -> Kernel {
        Kernel { name: "k".into(), max_threads: None, min_blocks: None, param_bytes: 0, resources: None }
    }

    fn compared(old: &Manifest, new: &Manifest) -> Verdict {
        let mut verdict = Verdict::default();
        compare_manifests(old, new, &mut verdict);
        verdict
    }

    #[test]
    fn equal_is_current() {
        let old = manifest("rustc 1.95.0", "s", "p");
        assert_eq!(compared(&old, &old.clone()), Verdict::default());
    }

    #[test]
    fn a_changed_kernel_names_its_file() {
        let verdict = compared(&manifest("rustc 1.95.0", "s", "p"), &manifest("rustc 1.95.0", "t", "q"));
        assert_eq!(verdict.stale, ["sm_90/kernels.ptx differs from what the sources give"]);
    }

    #[test]
    fn a_kernel_in_another_file_names_both() {
        let old = manifest("rustc 1.95.0", "s", "p");
        let mut new = manifest("rustc 1.95.0", "t", "p");
        new.architectures[0].files[0].file = "sm_90/kernels.put.ptx".into();
        let stale = compared(&old, &new).stale;
        assert_eq!(stale.len(), 2, "{stale:?}");
        assert!(stale[0].starts_with("sm_90/kernels.put.ptx is missing"));
        assert!(stale[1].starts_with("sm_90/kernels.ptx is nothing"));
    }

    #[test]
    fn another_compiler_is_compared_by_sources() {
        let mut new = manifest("rustc 1.96.0", "s", "q");
        new.architectures[0].files[0].entries.push(kernel());
        let verdict = compared(&manifest("rustc 1.95.0", "s", "p"), &new);
        assert_eq!((verdict.stale.len(), verdict.remarks.len()), (0, 1));
        let verdict = compared(&manifest("rustc 1.95.0", "s", "p"), &manifest("rustc 1.96.0", "t", "q"));
        assert_eq!(verdict.stale.len(), 1);
    }

    #[test]
    fn the_manifest_must_tell_the_truth() {
        let verdict = compared(&manifest("rustc 1.95.0", "s", "p"), &manifest("rustc 1.95.0", "t", "p"));
        assert!(verdict.stale[0].contains("manifest.json"));
        let mut other = manifest("rustc 1.95.0", "s", "p");
        other.architectures[0].files[0].entries.push(kernel());
        assert!(compared(&manifest("rustc 1.95.0", "s", "p"), &other).stale[0].contains("kernels differ"));
    }
}
