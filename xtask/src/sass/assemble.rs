//! From PTX to a listing of machine code, by ptxas and cuobjdump.

use super::listing::{self, Code};
use crate::spinner::Spinner;
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use warpwire_build::Arch;
use warpwire_build::cuda::{self, Group, Ptxas};
use warpwire_build::toolchain;

/// NVIDIA's assembler and disassembler.
pub struct Tools {
    /// The assembler.
    pub ptxas: Ptxas,
    cuobjdump: PathBuf,
}

impl Tools {
    /// Those of a CUDA toolkit, or those that were brought; `install` brings them.
    pub fn provide(install: bool, spinner: &Spinner) -> Result<Tools> {
        let folder = toolchain::tools_folder(&workspace::root());
        let find = || Some((Ptxas::find(None, &folder)?, cuda::find("cuobjdump", &folder)?.path));
        let found = match find() {
            None if install => {
                cuda::provide(Group::Nvcc, &folder, spinner)?;
                find()
            }
            found => found,
        };
        let (ptxas, cuobjdump) = found.context(
            "ptxas and cuobjdump are needed, of a CUDA toolkit (CUDA_HOME, PATH, /usr/local/cuda) or of PyPI's packages, \
             which --install brings",
        )?;
        Ok(Tools { ptxas, cuobjdump })
    }

    /// The machine code of every entry of a PTX file.
    pub fn code(&self, ptx: &Path, arch: Arch) -> Result<BTreeMap<String, Code>> {
        let folder = workspace::root().join("target/sass");
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let cubin = folder.join(ptx.file_name().unwrap_or_default()).with_extension("cubin");
        let mut assemble = Command::new(&self.ptxas.tool.path);
        assemble.arg(format!("-arch={arch}")).arg(ptx).arg("-o").arg(&cubin);
        output(&mut assemble).with_context(|| format!("assembling {}", workspace::shown(ptx)))?;
        let mut disassemble = Command::new(&self.cuobjdump);
        disassemble.args(["-sass", "-res-usage"]).arg(&cubin);
        let listing =
            output(&mut disassemble).with_context(|| format!("listing {}", workspace::shown(&cubin)))?;
        let entries = listing::parse(&listing);
        if entries.values().all(|code| code.instructions == 0) {
            bail!("{} lists no instruction of {}", self.cuobjdump.display(), workspace::shown(&cubin));
        }
        Ok(entries)
    }
}

fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
