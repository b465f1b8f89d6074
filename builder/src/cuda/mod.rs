//! NVIDIA's own tools: ptxas, which assembles PTX, and nvcc with its companions.
//!
//! PTX is built without any of them. With ptxas it is also assembled, so that a mistake shows before a GPU sees it, and
//! the registers, the shared memory and the spills of each kernel are known.

mod provide;
mod ptxas;

pub use provide::{Group, provide};
pub(crate) use ptxas::Assembled;
pub use ptxas::Ptxas;

use crate::environment;
use crate::process;
use std::fs;
use std::path::{Path, PathBuf};

/// A program of a CUDA toolkit, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The program.
    pub path: PathBuf,
    /// Where it was found: `WARPWIRE_PTXAS`, `CUDA_HOME`, `PATH`, ...
    pub origin: &'static str,
}

/// Looks for a program of a CUDA toolkit: in `CUDA_HOME` and `CUDA_PATH`, in `PATH`, in `/usr/local/cuda`, and among
/// the tools that [`provide`] brought into `tools`.
pub fn find(name: &str, tools: &Path) -> Option<Tool> {
    let in_home = environment::cuda_homes().map(|(origin, home)| (origin, home.join("bin").join(name)));
    let elsewhere = [
        process::in_path(name).map(|path| ("PATH", path)),
        Some(("/usr/local/cuda", Path::new("/usr/local/cuda/bin").join(name))),
        provided(name, tools).map(|path| ("target/warpwire-tools", path)),
    ];
    let mut places = in_home.chain(elsewhere.into_iter().flatten());
    places.find(|(_, path)| path.is_file()).map(|(origin, path)| Tool { path, origin })
}

/// `nvidia/cu13/bin/NAME` in the folder of a group that makes the program usable: PyPI's packages carry the toolkit's
/// version in the path, and the one with ptxas also has an nvcc, which does not work without the others.
fn provided(name: &str, tools: &Path) -> Option<PathBuf> {
    for group in Group::ALL.into_iter().filter(|group| group.serves(name)) {
        let Ok(items) = fs::read_dir(group.folder(tools).join("nvidia")) else { continue };
        for item in items.flatten() {
            let path = item.path().join("bin").join(name);
            if path.is_file() {
                return Some(path);
            }
        }
    }
    None
}
