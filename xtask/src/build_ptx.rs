//! `cargo xtask build-ptx`: builds the kernels to PTX, or checks that the committed PTX is what they give.

mod check;
mod report;

use crate::spinner::Spinner;
use crate::workspace;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use warpwire_build::{Arch, Builder, Codegen};

/// Arguments of `build-ptx`.
#[derive(clap::Args)]
pub struct Args {
    /// Architectures, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = Arch::DEFAULT)]
    pub arch: Vec<Arch>,
    /// The kernel crate: its folder or its Cargo.toml [default: the project's own]
    #[arg(long, value_name = "PATH")]
    pub manifest_path: Option<PathBuf>,
    /// Where the PTX goes [default: ptx, or ptx beside another crate's Cargo.toml]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Bring a compiler and ptxas where there are none
    #[arg(long)]
    pub install: bool,
    /// Build elsewhere, and fail naming each file that differs from what the crate gives
    #[arg(long)]
    pub check: bool,
    /// A file for each Rust module with kernels, as for the project's own, instead of one for all
    #[arg(long, requires = "manifest_path")]
    pub split: bool,
    /// auto, llvm or nvvm
    #[arg(long, default_value = "auto")]
    pub codegen: Codegen,
}

impl Args {
    /// The project's own kernels, with every default.
    pub fn project(install: bool) -> Args {
        Args {
            arch: Arch::DEFAULT.into(),
            manifest_path: None,
            out: None,
            install,
            check: false,
            split: false,
            codegen: Codegen::Auto,
        }
    }

    /// The folder with the PTX, where it is not the builder's own default.
    fn folder(&self) -> Option<PathBuf> {
        let own = self.manifest_path.is_none().then(workspace::ptx);
        self.out.clone().or(own)
    }

    /// A builder as the arguments say.
    pub fn builder(&self) -> Builder {
        let builder = Builder::new(self.manifest_path.clone().unwrap_or_else(workspace::kernels))
            .architectures(self.arch.iter().copied())
            .codegen(self.codegen)
            .install(self.install);
        // The project's own, of which most programs need a part.
        let builder = builder.split_by_module(self.manifest_path.is_none() || self.split);
        match self.folder() {
            Some(folder) => builder.out_dir(folder),
            None => builder,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let spinner = Rc::new(Spinner::new());
    let builder = args.builder().progress(spinner.clone());
    if args.check {
        let verdict = check::run(builder, &spinner);
        spinner.clear();
        return verdict;
    }
    let output = builder.build();
    spinner.clear();
    report::print(&output?);
    Ok(ExitCode::SUCCESS)
}
