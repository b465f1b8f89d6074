//! Failures sorted for callers that decide.

use warpwire_device::abi::WaitError;

use super::Error;

/// What a caller may decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call was wrong as it was written.
    InvalidArgument,
    /// What was named does not exist.
    NotFound,
    /// It exists, but not in this build or for this device.
    Unsupported,
    /// What it needs (a driver, a GPU) is not on this machine.
    Unavailable,
    /// Memory ran out.
    OutOfMemory,
    /// A limit of the device.
    Limit,
    /// A wait's time passed.
    Timeout,
    /// A wait was called off.
    Aborted,
    /// The object is in a state that does not allow it.
    State,
    /// Another rank is gone.
    PeerLost,
    /// A rank and the job that it came to do not belong together, or the owner of memory does not hand it over.
    Refused,
    /// The driver or the operating system failed.
    Driver,
    /// A kernel's code broke its own rules.
    Kernel,
}

impl Error {
    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidSelector { .. }
            | Self::InvalidVariable { .. }
            | Self::EmptyAllocation
            | Self::SizeOverflow { .. }
            | Self::OutOfRange { .. }
            | Self::OutsideMemory { .. }
            | Self::ArgumentMismatch { .. }
            | Self::ArgumentAlignment { .. }
            | Self::EmptyLaunch { .. }
            | Self::RankCount { .. }
            | Self::TooManyElements { .. }
            | Self::Misaligned { .. }
            | Self::Overlap { .. }
            | Self::ForeignObject { .. } => ErrorKind::InvalidArgument,
            Self::NoSuchRank { .. } | Self::NoSuchDevice { .. } | Self::UnknownKernel { .. } => {
                ErrorKind::NotFound
            }
            Self::NoPeerAccess | Self::NoSuchMemory { .. } | Self::NoCode { .. } | Self::PtxTooNew { .. } => {
                ErrorKind::Unsupported
            }
            Self::CudaDisabled | Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            Self::TooManyThreads { .. }
            | Self::GridTooLarge { .. }
            | Self::SharedTooLarge { .. }
            | Self::TooManyBlocks { .. }
            | Self::TooManyStreams { .. } => ErrorKind::Limit,
            Self::WaitFailed { outcome: WaitError::Timeout, .. } => ErrorKind::Timeout,
            Self::WaitFailed { outcome: WaitError::Aborted, .. } => ErrorKind::Aborted,
            Self::Memory(error) => error.kind(),
            Self::CaptureActive { .. }
            | Self::NotCapturing
            | Self::StreamBusy { .. }
            | Self::RankBusy { .. } => ErrorKind::State,
            Self::Driver { .. } | Self::System { .. } | Self::InvalidPtx { .. } | Self::ModuleLoad { .. } => {
                ErrorKind::Driver
            }
            Self::Bootstrap(error) => error.kind(),
            Self::Connection(error) => error.kind(),
            Self::Verbs(error) => error.kind(),
            Self::Proxy(error) => error.kind(),
            Self::Communicator(error) => error.kind(),
            Self::DataType(error) => error.kind(),
            Self::CorruptReport { .. } | Self::KernelPanicked { .. } | Self::BarrierDivergence { .. } => {
                ErrorKind::Kernel
            }
        }
    }
}
