//! `--check`: are the committed files what the crate gives now?

use crate::spinner::Spinner;
use crate::workspace;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::ExitCode;
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
            verdict.stale.push(format!("{} is missing", new.file));
            continue;
        };
        let differs = if same_compiler { old.sha256 != new.sha256 } else { !same_sources };
        if differs {
            verdict.stale.push(format!("{} differs from what the sources give", new.file));
        } else if old.flags != new.flags {
            verdict.stale.push(format!("{} was built with other flags", new.file));
        } else if same_compiler && old.ptxas == new.ptxas && old.entries != new.entries {
            // Another compiler's code takes other registers.
            verdict.stale.push(format!("{}: the manifest's kernels differ", new.file));
        }
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
            architectures: vec![Built {
                target: "sm_90".into(),
                ptx: "8.0".into(),
                file: "sm_90/kernels.ptx".into(),
                sha256: sha256.into(),
                flags: vec![],
                ptxas: None,
                entries: vec![],
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
    fn another_compiler_is_compared_by_sources() {
        let mut new = manifest("rustc 1.96.0", "s", "q");
        new.architectures[0].entries.push(kernel());
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
        other.architectures[0].entries.push(kernel());
        assert!(compared(&manifest("rustc 1.95.0", "s", "p"), &other).stale[0].contains("kernels differ"));
    }
}
