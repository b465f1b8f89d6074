//! What can go wrong, and what to do about it.

mod bootstrap;
mod communicator;
mod connection;
mod data_type;
mod handle_kind;
mod kind;
mod memory;
mod proxy;
mod verbs;
mod words;

use std::io;

use warpwire_device::abi::{ChannelId, Rank, WaitError, WaitKind};

pub use bootstrap::{BootstrapError, Departure, Refusal};
pub use communicator::CommunicatorError;
pub use connection::ConnectionError;
pub use data_type::DataTypeError;
pub use handle_kind::HandleKind;
pub use kind::ErrorKind;
pub use memory::{Attempts, MemoryError};
pub use proxy::ProxyError;
pub use verbs::VerbsError;
pub use words::ThreadLimit;
use words::{architectures, kind_words, outcome_words, room_words};

/// The crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation: a variant for each, with what was tried and, where another error caused it, that one as its source.
///
/// [`Error::kind`] sorts them for callers that decide; the text is for people.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A device selector that is none.
    #[error("{text:?} names no device: give \"auto\", \"cpu\", \"cuda\" or \"cuda:N\"")]
    InvalidSelector {
        /// What was given.
        text: String,
    },

    /// An environment variable with a value that it cannot have.
    #[error("the environment variable {name} is {value:?}; it has to be {expected}, or unset")]
    InvalidVariable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        expected: String,
    },

    /// A CUDA device was asked of a build that has none.
    #[error("this build has no CUDA devices: build with `--features cuda`, or choose the device \"cpu\"")]
    CudaDisabled,

    /// What a device needs is not on this machine.
    #[error("{what}: {hint}")]
    Unavailable {
        /// What is missing.
        what: String,
        /// What to do.
        hint: String,
    },

    /// A device number that no device has.
    #[error("there is no CUDA device {asked}: this process sees {present}, numbered from 0")]
    NoSuchDevice {
        /// The number asked for.
        asked: u32,
        /// How many there are.
        present: u32,
    },

    /// A call of the GPU's driver failed.
    #[error("{operation}: the driver answered {name} ({code}): {description}; {hint}")]
    Driver {
        /// What was tried.
        operation: String,
        /// The driver's number for it.
        code: u32,
        /// Its name for it.
        name: String,
        /// Its words for it.
        description: String,
        /// What to do.
        hint: String,
    },

    /// A call of the operating system failed.
    #[error("{operation} failed: {source}")]
    System {
        /// What was tried.
        operation: String,
        /// Why it failed.
        source: io::Error,
    },

    /// A device has not that much memory left.
    #[error("{device} has no room for {bytes} bytes{detail}: free buffers, or ask for less")]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// How many were asked for.
        bytes: u64,
        /// What is known of the room there is; begins with its own separator, or is empty.
        detail: String,
    },

    /// Memory of a kind that the device, or the call, does not give.
    #[error("{device} gives no {memory} here: {remedy}")]
    NoSuchMemory {
        /// The device's name.
        device: String,
        /// What memory was asked for.
        memory: &'static str,
        /// What to do.
        remedy: &'static str,
    },

    /// Memory that several processes or devices reach.
    #[error(transparent)]
    Memory(#[from] MemoryError),

    /// An allocation of no elements.
    #[error("a buffer of 0 elements was asked for: a buffer has at least one")]
    EmptyAllocation,

    /// A length whose bytes no address space holds.
    #[error("{len} elements of {element_bytes} bytes are more than can be addressed")]
    SizeOverflow {
        /// Elements.
        len: usize,
        /// Bytes of each.
        element_bytes: usize,
    },

    /// An access past a buffer's end.
    #[error("cannot {operation} elements {offset} to {offset} + {len}: the buffer has {capacity}")]
    OutOfRange {
        /// What was tried.
        operation: &'static str,
        /// The first element.
        offset: usize,
        /// How many.
        len: usize,
        /// How many the buffer has.
        capacity: usize,
    },

    /// A range that does not lie in its registered memory.
    #[error("{bytes} bytes at offset {offset} lie outside the registered memory, which has {length} bytes")]
    OutsideMemory {
        /// Where the range begins.
        offset: u64,
        /// Its length.
        bytes: u64,
        /// The memory's.
        length: u64,
    },

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
    ModuleLoad {
        /// The module.
        module: String,
        /// Which of its texts, 90 for `sm_90`.
        architecture: u32,
        /// What the driver's compiler said.
        log: String,
        /// The driver's error.
        source: Box<Error>,
    },

    /// A launch without blocks or without threads.
    #[error("{kernel} was launched with {blocks} blocks of {threads} threads: both have to be at least 1")]
    EmptyLaunch {
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

    /// A group of too few or too many ranks.
    #[error("a group of {ranks} ranks was asked for; there have to be {least} to {most}")]
    RankCount {
        /// Ranks asked for.
        ranks: usize,
        /// The fewest there may be.
        least: usize,
        /// The most there may be.
        most: usize,
    },

    /// A rank that the group does not have.
    #[error("rank {} was named; the group's ranks are 0 to {}", rank.0, ranks - 1)]
    NoSuchRank {
        /// The rank named.
        rank: Rank,
        /// Ranks of the group.
        ranks: usize,
    },

    /// A collective on several GPUs of one process.
    #[error(
        "ranks of one process were put on several GPUs, which this version does not map to each other: put them on one GPU"
    )]
    NoPeerAccess,

    /// More elements than the collective was made for, or none.
    #[error(
        "{count} elements were asked for; there may be 1 to {limit}: split the message, or make the collective for more"
    )]
    TooManyElements {
        /// Elements asked for.
        count: usize,
        /// The most there may be.
        limit: usize,
    },

    /// An operand that is not aligned for its elements.
    #[error("the {what} lies at {address:#x}, which is not a multiple of {alignment}")]
    Misaligned {
        /// Which operand.
        what: &'static str,
        /// Where it lies.
        address: u64,
        /// What the address has to be a multiple of.
        alignment: u64,
    },

    /// An input and an output that overlap without being the same.
    #[error(
        "the input at {input:#x} and the output at {output:#x} overlap ({bytes} bytes each): give the same address for an in-place call, or separate buffers"
    )]
    Overlap {
        /// The input's address.
        input: u64,
        /// The output's.
        output: u64,
        /// The length of each.
        bytes: u64,
    },

    /// Something of one device was given to another.
    #[error("a {what} of one device was used on another: make it from the device that the stream belongs to")]
    ForeignObject {
        /// What.
        what: &'static str,
    },

    /// An operation that has no place in a recording.
    #[error("cannot {operation} while the stream is being captured: end the capture first")]
    CaptureActive {
        /// What was tried.
        operation: &'static str,
    },

    /// The end of a recording that was not begun.
    #[error("the stream is not being captured")]
    NotCapturing,

    /// An operation that wants an idle stream.
    #[error("cannot {operation} while work is in flight on the stream: call synchronize first")]
    StreamBusy {
        /// What was tried.
        operation: &'static str,
    },

    /// A rank's round was asked for on one stream while its last one may still be in flight on another.
    #[error(
        "rank {}'s last round is on another stream, which has work in flight: synchronize that stream first, \
         or make a collective for each stream",
        rank.0
    )]
    RankBusy {
        /// The rank.
        rank: Rank,
    },

    /// A kernel's wait ended without what it waited for. The report stays on the stream's board until the stream is reset.
    #[error(
        "rank {} {outcome} waiting for {kind} from rank {} on channel {}: expected {expected}, seen {seen} \
         (block {block}, thread {thread}); reset the stream before its next round",
        rank.0, peer.0, channel.0, outcome = outcome_words(*outcome), kind = kind_words(*kind)
    )]
    WaitFailed {
        /// How it ended.
        outcome: WaitError,
        /// What was waited for.
        kind: WaitKind,
        /// The rank that waited.
        rank: Rank,
        /// The rank that was to answer.
        peer: Rank,
        /// The channel.
        channel: ChannelId,
        /// The block that waited.
        block: u32,
        /// Its thread that waited.
        thread: u32,
        /// The value that would have ended the wait.
        expected: u64,
        /// The value last seen.
        seen: u64,
    },

    /// A stream's board holds no report that can be read: something wrote over it.
    #[error(
        "the stream's wait board holds no readable report (state {state}, error {error}, kind {kind}): a kernel has written over it"
    )]
    CorruptReport {
        /// The board's state word.
        state: u32,
        /// Its error word.
        error: u32,
        /// Its kind word.
        kind: u32,
    },

    /// A kernel's code panicked on the CPU device.
    #[error("{kernel} panicked in block {block}, thread {thread}: {message}")]
    KernelPanicked {
        /// The kernel.
        kernel: String,
        /// The block.
        block: u32,
        /// The thread.
        thread: u32,
        /// What it said.
        message: String,
    },

    /// Ranks did not find each other, or one is gone.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),

    /// A connection to a peer has failed, or did not end in time.
    #[error(transparent)]
    Connection(#[from] ConnectionError),

    /// RDMA.
    #[error(transparent)]
    Verbs(#[from] VerbsError),

    /// A FIFO or a proxy cannot be as asked for, or has failed.
    #[error(transparent)]
    Proxy(#[from] ProxyError),

    /// Set-up between ranks.
    #[error(transparent)]
    Communicator(#[from] CommunicatorError),

    /// Element types that do not go together.
    #[error(transparent)]
    DataType(#[from] DataTypeError),

    /// Some threads of a block wait at a barrier that the others will never come to.
    #[error(
        "{kernel}, block {block}: {waiting} threads wait at a barrier or warp exchange that others never come to \
         ({exited} have ended): every thread of the group has to make the call"
    )]
    BarrierDivergence {
        /// The kernel.
        kernel: String,
        /// The block.
        block: u32,
        /// Threads that wait.
        waiting: u32,
        /// Threads that have ended.
        exited: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_what_was_tried_and_what_to_do() {
        let module = || "m".to_owned();
        let no_code = Error::NoCode {
            module: module(),
            device: "A".to_owned(),
            capability: (7, 5),
            present: vec![80, 90],
        };
        let too_new = Error::PtxTooNew { module: module(), ptx: (8, 6), accepted: (8, 4), driver: (12, 4) };
        let too_many = Error::TooManyStreams { kernel: "k".to_owned(), asked: 12, limit: 8 };
        let expected: [(&Error, ErrorKind, &[&str]); 3] = [
            (
                &no_code,
                ErrorKind::Unsupported,
                &["(compute capability 7.5)", "sm_80, sm_90", "build it for sm_75"],
            ),
            (&too_new, ErrorKind::Unsupported, &["PTX 8.6", "CUDA 12.4", "up to 8.4", "update the driver"]),
            (&too_many, ErrorKind::Limit, &["12", "8", "CUDA_DEVICE_MAX_CONNECTIONS"]),
        ];
        for (error, kind, parts) in expected {
            assert_eq!(error.kind(), kind);
            let text = error.to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }
}
