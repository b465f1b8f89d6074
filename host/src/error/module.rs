//! What can go wrong with a module and its kernels.

use super::words::architectures;
use super::{Error, ErrorKind};

/// A module that does not load, or a kernel that it does not have as it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// A kernel that the module does not have.
    #[error("the module {module} has no kernel {name:?}; it has {}", known.join(", "))]
    UnknownKernel {
        /// The kernel's name.
        name: String,
        /// The module's.
        module: String,
        /// The names that it has.
        known: Vec<String>,
    },

    /// The kernel of that name takes another argument block.
    #[error(
        "the kernel {kernel} takes an argument block of {expected} bytes, not of {got}: \
         the host and the module were built from different sources"
    )]
    ArgumentMismatch {
        /// The kernel.
        kernel: String,
        /// The bytes that the module's kernel takes.
        expected: usize,
        /// The bytes that the host would give.
        got: usize,
    },

    /// The kernel's argument block asks for an alignment that no launch gives.
    #[error(
        "the argument block of {kernel} is aligned to {asked} bytes; a launch aligns it to at most {limit}"
    )]
    ArgumentAlignment {
        /// The kernel.
        kernel: String,
        /// Its block's alignment.
        asked: usize,
        /// The most there is.
        limit: usize,
    },

    /// The module has no code for this GPU.
    #[error(
        "the module {module} has no PTX for {device} (compute capability {}.{}): it has {}; \
         build it for sm_{}{} or older with `cargo xtask build-ptx --arch`",
        capability.0, capability.1, architectures(present), capability.0, capability.1
    )]
    NoCode {
        /// The module.
        module: String,
        /// The device's name.
        device: String,
        /// Its compute capability.
        capability: (u32, u32),
        /// The architectures that the module has, 90 for `sm_90`.
        present: Vec<u32>,
    },

    /// The module's PTX is of a version that the driver does not take.
    #[error(
        "the module {module} is PTX {}.{}, and this driver (CUDA {}.{}) takes PTX up to {}.{}: \
         update the driver, or build the module for an older architecture",
        ptx.0, ptx.1, driver.0, driver.1, accepted.0, accepted.1
    )]
    PtxTooNew {
        /// The module.
        module: String,
        /// The PTX's version.
        ptx: (u32, u32),
        /// The newest version that the driver takes.
        accepted: (u32, u32),
        /// The CUDA version of the driver.
        driver: (u32, u32),
    },

    /// The module's PTX does not read as PTX.
    #[error("the PTX of module {module} for sm_{architecture} is broken: {reason}; build it anew")]
    InvalidPtx {
        /// The module.
        module: String,
        /// Which of its texts, 90 for `sm_90`.
        architecture: u32,
        /// What is wrong.
        reason: String,
    },

    /// The driver did not take a module.
    #[error("the driver did not load the module {module} for sm_{architecture}: {source}; its log: {log}")]
    Load {
        /// The module.
        module: String,
        /// Which of its texts, 90 for `sm_90`.
        architecture: u32,
        /// What the driver's compiler said.
        log: String,
        /// The driver's error.
        source: Box<Error>,
    },
}

impl ModuleError {
    /// See [`Error::kind`](super::Error::kind).
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownKernel { .. } => ErrorKind::NotFound,
            Self::ArgumentMismatch { .. } | Self::ArgumentAlignment { .. } => ErrorKind::InvalidArgument,
            Self::NoCode { .. } | Self::PtxTooNew { .. } => ErrorKind::Unsupported,
            Self::InvalidPtx { .. } | Self::Load { .. } => ErrorKind::Driver,
        }
    }
}
