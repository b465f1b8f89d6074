//! What a device is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::identity::{DeviceUuid, PciAddress};

/// What kind of device runs the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DeviceKind {
    /// This process' own threads.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        })
    }
}

/// A device's name and limits.
#[derive(Clone, Debug)]
pub struct Properties {
    /// Its name, for people.
    pub name: String,
    /// Its kind.
    pub kind: DeviceKind,
    /// A GPU's number in this process; 0 for the CPU device. Two processes may number one GPU differently.
    pub ordinal: u32,
    /// Which of all devices it is: equal on two ranks that share it.
    pub uuid: DeviceUuid,
    /// Where a GPU is plugged in.
    pub pci: Option<PciAddress>,
    /// A GPU's compute capability: (9, 0) for `sm_90`.
    pub compute_capability: Option<(u32, u32)>,
    /// Multiprocessors; for the CPU device, the processors that its blocks share.
    pub multiprocessors: u32,
    /// The most threads of a block.
    pub max_threads_per_block: u32,
    /// The most dynamic shared memory of a block, in bytes.
    pub max_shared_bytes_per_block: u32,
    /// The most blocks of a grid.
    pub max_blocks: u32,
    /// How many streams are sure to run beside each other; `None`: as many as there are.
    pub max_concurrent_streams: Option<u32>,
}
