//! The C++ compiler for GPUs, and what is compiled with it.

use crate::spinner::Spinner;
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use warpwire_build::cuda::{self, Group, Tool};
use warpwire_build::toolchain;

/// Where the baseline's sources are.
pub fn baseline(file: &str) -> PathBuf {
    workspace::root().join("xtask/bench/baseline").join(file)
}

/// NVIDIA's compiler, with its headers.
#[derive(Debug, Clone)]
pub struct Nvcc {
    /// The program, and where it was found.
    pub tool: Tool,
    includes: Vec<PathBuf>,
}

impl Nvcc {
    /// The nvcc of a CUDA toolkit, or of the tools that were brought; `install` brings them. None where there is none.
    pub fn provide(install: bool, spinner: &Spinner) -> Result<Option<Nvcc>> {
        let tools = toolchain::tools_folder(&workspace::root());
        if let Some(tool) = cuda::find("nvcc", &tools) {
            return Ok(Some(Nvcc::of(tool)));
        }
        if !install {
            return Ok(None);
        }
        cuda::provide(Group::Nvcc, &tools, spinner)?;
        Ok(cuda::find("nvcc", &tools).map(Nvcc::of))
    }

    fn of(tool: Tool) -> Nvcc {
        // A toolkit's nvcc finds its headers by itself; that of PyPI's packages does not find libcu++ beside them.
        let program = tool.path.canonicalize().unwrap_or_else(|_| tool.path.clone());
        let home = program.ancestors().nth(2).unwrap_or(Path::new("/"));
        let includes = ["include", "include/cccl"].map(|folder| home.join(folder));
        Nvcc { tool, includes: includes.into_iter().filter(|folder| folder.is_dir()).collect() }
    }

    /// Compiles a source to PTX.
    pub fn compile(&self, source: &Path, arch: &str, includes: &[PathBuf], to: &Path) -> Result<()> {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let mut command = Command::new(&self.tool.path);
        command.args(["-std=c++17", "-O3", "-ptx"]).arg(format!("-arch={arch}"));
        for folder in includes.iter().chain(&self.includes) {
            command.arg("-I").arg(folder);
        }
        command.arg(source).arg("-o").arg(to);
        let output = command.output().with_context(|| format!("cannot run {}", self.tool.path.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("nvcc does not compile {}:\n{}", workspace::shown(source), said.trim());
        }
        Ok(())
    }
}
