//! Brings NVIDIA's tools from PyPI, where they lie as plain archives: no root, nothing of the system touched.

use crate::process;
use crate::progress::Progress;
use crate::toolchain::NotProvided;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tools that are brought together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// ptxas alone: what building PTX makes use of.
    Ptxas,
    /// nvcc with its headers and libraries, and the disassemblers: what comparing with CUDA C++ needs.
    Nvcc,
}

impl Group {
    /// Every group, the one with more tools first.
    pub const ALL: [Group; 2] = [Group::Nvcc, Group::Ptxas];

    /// Whether the group has what the program needs to work.
    pub(super) fn serves(self, program: &str) -> bool {
        self == Group::Nvcc || program == "ptxas"
    }

    /// Where the group's tools lie. Each has a folder of its own, since pip replaces a folder as a whole.
    pub(super) fn folder(self, tools: &Path) -> PathBuf {
        tools.join("cuda").join(match self {
            Group::Ptxas => "ptxas",
            Group::Nvcc => "nvcc",
        })
    }

    /// PyPI's packages. 13.0 is what the oldest supported driver of that generation loads; the disassemblers have no
    /// such release and read every older format.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Group::Ptxas => &["nvidia-cuda-nvcc==13.0.*"],
            Group::Nvcc => &[
                "nvidia-cuda-nvcc==13.0.*",
                "nvidia-nvvm==13.0.*",
                "nvidia-cuda-runtime==13.0.*",
                "nvidia-cuda-crt==13.0.*",
                "nvidia-cuda-cccl==13.0.*",
                "nvidia-cuda-cuobjdump==13.*",
                "nvidia-cuda-nvdisasm==13.*",
            ],
        }
    }
}

/// Brings a group of tools into `tools`, unless it is there.
pub fn provide(group: Group, tools: &Path, progress: &dyn Progress) -> Result<(), NotProvided> {
    let folder = group.folder(tools);
    if folder.is_dir() {
        return Ok(());
    }
    progress.step(&format!("downloading {} from PyPI", group.packages().join(", ")));
    let partial = folder.with_extension("partial");
    let failed = |attempt: &str, outcome: String| NotProvided {
        what: format!("CUDA's {group:?} tools"),
        attempts: vec![(attempt.to_owned(), outcome)],
    };
    let place = || {
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        fs::create_dir_all(&partial)
    };
    place().map_err(|error| failed("creating the folder", error.to_string()))?;
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"]);
    command.arg(&partial).args(group.packages());
    process::output(&mut command)
        .map_err(|error| failed("python3 -m pip install", format!("{error} (it needs Python 3 with pip)")))?;
    fs::rename(&partial, &folder).map_err(|error| failed("moving the tools in place", error.to_string()))
}
