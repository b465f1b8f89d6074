//! Which code generator turns Rust into PTX.
//!
//! `llvm` is rustc's own NVPTX backend. `nvvm` is Rust-CUDA's `rustc_codegen_nvvm`, which goes through NVIDIA's libNVVM
//! and needs a toolchain of its own; this version of the builder finds out whether that toolchain is complete, and
//! drives `llvm` only.

use crate::cuda;
use crate::environment;
use crate::process;
use crate::sources::Sources;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// The nightly that `rustc_codegen_nvvm` is written against: it links with that compiler's own libraries.
const NIGHTLY: &str = "nightly-2025-06-23";

/// A way from Rust to PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Codegen {
    /// `nvvm` where it can be used, `llvm` elsewhere.
    #[default]
    Auto,
    /// rustc's NVPTX backend.
    Llvm,
    /// Rust-CUDA's `rustc_codegen_nvvm`.
    Nvvm,
}

impl FromStr for Codegen {
    type Err = String;

    fn from_str(name: &str) -> Result<Codegen, String> {
        match name {
            "auto" => Ok(Codegen::Auto),
            "llvm" => Ok(Codegen::Llvm),
            "nvvm" => Ok(Codegen::Nvvm),
            _ => Err(format!("unknown code generator `{name}`; known are auto, llvm, nvvm")),
        }
    }
}

/// Why `nvvm` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvvmUnavailable {
    /// What its toolchain lacks here. Empty where it is complete, and only this builder cannot drive it.
    pub missing: Vec<String>,
}

impl fmt::Display for NvvmUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.missing.is_empty() {
            return write!(
                f,
                "every part of the code generator nvvm is here, but this version of the builder drives llvm only; \
                 use --codegen llvm"
            );
        }
        write!(f, "the code generator nvvm lacks:")?;
        for part in &self.missing {
            write!(f, "\n  {part}")?;
        }
        write!(f, "\nuse --codegen llvm, which needs none of them")
    }
}

impl std::error::Error for NvvmUnavailable {}

impl Codegen {
    /// Settles on a code generator that can be used: its name, and why it was taken.
    pub(crate) fn settle(
        self,
        sources: &Sources,
        tools: &Path,
    ) -> Result<(&'static str, String), NvvmUnavailable> {
        match self {
            Codegen::Llvm => Ok(("llvm", "code generator llvm, as asked".into())),
            Codegen::Nvvm => Err(NvvmUnavailable { missing: missing_for_nvvm(sources, tools) }),
            Codegen::Auto => {
                let why = match missing_for_nvvm(sources, tools).len() {
                    0 => "this version does not drive nvvm".to_owned(),
                    count => format!("{count} parts of nvvm are missing; --codegen nvvm lists them"),
                };
                Ok(("llvm", format!("code generator llvm: {why}")))
            }
        }
    }
}

/// Looks for each part of `rustc_codegen_nvvm`'s toolchain and says which are missing, with how to get them.
fn missing_for_nvvm(sources: &Sources, tools: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    match nightly_sysroot() {
        None => missing.push(format!(
            "{NIGHTLY}: rustup toolchain install {NIGHTLY} -c rustc-dev -c llvm-tools -c rust-src"
        )),
        Some(sysroot) if !has_rustc_dev(&sysroot) => {
            missing
                .push(format!("{NIGHTLY}'s rustc-dev: rustup component add rustc-dev --toolchain {NIGHTLY}"));
        }
        Some(_) => {}
    }
    if !has_llvm("7") {
        missing.push("LLVM 7 for architectures up to sm_90: llvm-config-7 in PATH, or LLVM_CONFIG".into());
    }
    if !has_llvm("19") {
        missing.push("LLVM 19 for sm_100 and up: llvm-config-19 in PATH, or LLVM_CONFIG_19".into());
    }
    for name in ["cuda_std", "cuda_builder"] {
        let there = sources.dependencies.iter().any(|dependency| dependency.split(' ').next() == Some(name));
        if !there {
            missing.push(format!("the crate {name} among {}'s dependencies", sources.package));
        }
    }
    if libnvvm(tools).is_none() {
        missing.push("libnvvm: a CUDA toolkit in CUDA_HOME, or PyPI's nvidia-nvvm".into());
    }
    missing
}

fn nightly_sysroot() -> Option<PathBuf> {
    let mut command = Command::new("rustup");
    command.args(["run", NIGHTLY, "rustc", "--print", "sysroot"]);
    process::output(&mut command).ok().map(|sysroot| PathBuf::from(sysroot.trim()))
}

/// `rustc-dev` puts the compiler's own crates beside the standard library.
fn has_rustc_dev(sysroot: &Path) -> bool {
    let Ok(targets) = fs::read_dir(sysroot.join("lib/rustlib")) else { return false };
    targets.flatten().any(|target| {
        let Ok(files) = fs::read_dir(target.path().join("lib")) else { return false };
        files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("librustc_middle"))
    })
}

fn has_llvm(major: &str) -> bool {
    let named = ["LLVM_CONFIG".to_owned(), format!("LLVM_CONFIG_{major}")];
    let named = named.iter().filter_map(|name| environment::path(name));
    let mut programs =
        named.chain([PathBuf::from(format!("llvm-config-{major}")), PathBuf::from("llvm-config")]);
    programs.any(|program| {
        let version = process::output(Command::new(program).arg("--version"));
        version.is_ok_and(|version| version.trim().split('.').next() == Some(major))
    })
}

fn libnvvm(tools: &Path) -> Option<PathBuf> {
    let beside_nvcc =
        cuda::find("nvcc", tools).and_then(|nvcc| Some(nvcc.path.parent()?.parent()?.to_owned()));
    let homes = environment::cuda_homes().map(|(_, home)| home).chain(beside_nvcc);
    homes.map(|home| home.join("nvvm/lib64/libnvvm.so")).find(|library| library.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        assert_eq!("nvvm".parse(), Ok(Codegen::Nvvm));
        assert!("gcc".parse::<Codegen>().is_err());
    }

    #[test]
    fn nvvm_never_answers_as_if_it_worked() {
        let sources = Sources::for_tests();
        let error = Codegen::Nvvm.settle(&sources, Path::new("/nonexistent")).unwrap_err();
        assert!(error.missing.iter().any(|part| part.contains("cuda_std")));
        assert_eq!(Codegen::Auto.settle(&sources, Path::new("/nonexistent")).unwrap().0, "llvm");
        let complete = NvvmUnavailable { missing: vec![] };
        assert!(complete.to_string().contains("drives llvm only"));
    }
}
