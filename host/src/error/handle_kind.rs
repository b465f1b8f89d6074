//! The kinds of handle that memory leaves its process by. They stand here since errors name them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How memory is handed to another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HandleKind {
    /// A fabric handle: reaches GPUs of other hosts in the same NVLink domain. Needs the fabric's service (IMEX).
    Fabric,
    /// A POSIX file descriptor, passed over a Unix socket: reaches processes of this host.
    PosixFd,
    /// A legacy CUDA IPC handle, for plain allocations: reaches processes of this host.
    CudaIpc,
}

impl HandleKind {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::Fabric, Self::PosixFd, Self::CudaIpc];

    /// Whether a handle of this kind means something on another host.
    #[must_use]
    pub const fn leaves_host(self) -> bool {
        matches!(self, Self::Fabric)
    }

    /// The kind that `WARPWIRE_HANDLE_TYPE` names so: `fabric`, `fd` or `ipc`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What it is called in `WARPWIRE_HANDLE_TYPE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fabric => "fabric",
            Self::PosixFd => "fd",
            Self::CudaIpc => "ipc",
        }
    }
}

impl fmt::Display for HandleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fabric => "fabric",
            Self::PosixFd => "file-descriptor",
            Self::CudaIpc => "CUDA IPC",
        })
    }
}
