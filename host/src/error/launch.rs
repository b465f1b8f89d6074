//! What can be wrong with a launch before anything runs.

use super::words::room_words;
use super::{ErrorKind, ThreadLimit};

/// A launch of a shape that the kernel or the device does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A launch without blocks or without threads.
    #[error("{kernel} was launched with {blocks} blocks of {threads} threads: both have to be at least 1")]
    Empty {
        /// The kernel.
        kernel: String,
        /// Blocks asked for.
        blocks: u32,
        /// Threads of each.
        threads: u32,
    },

    /// More threads a block than the kernel or the device takes.
    #[error("{kernel} was launched with {asked} threads a block; {limited_by} takes at most {limit}")]
    TooManyThreads {
        /// The kernel.
        kernel: String,
        /// Threads asked for.
        asked: u32,
        /// The most there may be.
        limit: u32,
        /// Who sets the limit.
        limited_by: ThreadLimit,
    },

    /// A grid that the device cannot number.
    #[error(
        "{kernel} was launched with {blocks} blocks of {threads} threads; a grid has at most {max_blocks} blocks and 4294967295 threads"
    )]
    GridTooLarge {
        /// The kernel.
        kernel: String,
        /// Blocks asked for.
        blocks: u32,
        /// Threads of each.
        threads: u32,
        /// The most blocks of the device.
        max_blocks: u32,
    },

    /// More shared memory than a block may have.
    #[error(
        "{kernel} was launched with {asked} bytes of shared memory a block; the device gives at most {limit}"
    )]
    SharedTooLarge {
        /// The kernel.
        kernel: String,
        /// Bytes asked for.
        asked: u32,
        /// The most there may be.
        limit: u32,
    },

    /// More blocks that wait for each other than the device holds at once: they would wait for ever.
    #[error(
        "{kernel} was launched with {blocks} blocks of {threads} threads and {shared_bytes} bytes of shared memory, \
         {concurrent} such grids at once: {asked} blocks would have to be resident together, and the device holds {limit}{}; \
         use fewer or smaller blocks, or fewer ranks on this device",
        room_words(*room)
    )]
    TooManyBlocks {
        /// The kernel.
        kernel: String,
        /// Blocks that would have to be resident: `blocks` times `concurrent`.
        asked: u64,
        /// How many of this shape the device holds, beside `room`.
        limit: u32,
        /// Blocks of the grid.
        blocks: u32,
        /// Grids that have to run together.
        concurrent: u32,
        /// Threads of a block.
        threads: u32,
        /// Shared memory of a block.
        shared_bytes: u32,
        /// Threads that are left room for in one multiprocessor, for copies that the grids wait for: 0 where there are none.
        room: u32,
    },

    /// More grids that wait for each other than the device runs streams beside each other.
    #[error(
        "{kernel} was launched as one of {asked} grids that run at once; the device runs {limit} streams at once: \
         set CUDA_DEVICE_MAX_CONNECTIONS above {asked} (32 is the most) before the program's first CUDA call, \
         or put fewer ranks on this device"
    )]
    TooManyStreams {
        /// The kernel.
        kernel: String,
        /// Streams asked for.
        asked: u32,
        /// How many there may be.
        limit: u32,
    },
}

impl LaunchError {
    /// See [`Error::kind`](super::Error::kind).
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Empty { .. } => ErrorKind::InvalidArgument,
            Self::TooManyThreads { .. }
            | Self::GridTooLarge { .. }
            | Self::SharedTooLarge { .. }
            | Self::TooManyBlocks { .. }
            | Self::TooManyStreams { .. } => ErrorKind::Limit,
        }
    }
}
