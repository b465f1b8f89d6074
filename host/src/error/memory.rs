//! What can go wrong where memory is shared.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{Error, ErrorKind, HandleKind};

/// A failed operation on memory that several processes or devices reach.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Memory of a kind that no handle exists for.
    #[error("{memory} at {address:#x} cannot be shared: {remedy}")]
    NotShareable {
        /// What memory it is.
        memory: &'static str,
        /// Where it lies.
        address: u64,
        /// What to do.
        remedy: &'static str,
    },

    /// A range that is not inside one allocation.
    #[error(
        "{bytes} bytes at {address:#x} are not inside one allocation{}: register each allocation by itself",
        behind(*allocation)
    )]
    NotOneAllocation {
        /// Where the range begins.
        address: u64,
        /// Its length.
        bytes: u64,
        /// The allocation at its beginning, as address and length; `None` where there is none.
        allocation: Option<(u64, u64)>,
    },

    /// A kind of handle that was asked for by name and does not work here.
    #[error("{device} makes no {kind} handles: {reason}")]
    HandleUnavailable {
        /// The kind.
        kind: HandleKind,
        /// The device's name.
        device: String,
        /// Why not.
        #[source]
        reason: Arc<Error>,
    },

    /// None of the kinds of handle worked.
    #[error("cannot {operation}; tried {attempts}")]
    NoHandleWorked {
        /// What was tried.
        operation: &'static str,
        /// Each kind tried, and what came of it.
        attempts: Attempts,
    },

    /// A handle of one kind that reaches no process of another host.
    #[error("a {kind} handle reaches processes of its own host ({exporter}) alone, and this is {importer}")]
    OtherHost {
        /// The kind.
        kind: HandleKind,
        /// The host that the handle is from.
        exporter: String,
        /// This host.
        importer: String,
    },

    /// Bytes that are no handle.
    #[error("these {bytes} bytes are not {expected}: {reason}")]
    MalformedHandle {
        /// How many there are.
        bytes: usize,
        /// What they were taken for.
        expected: &'static str,
        /// What is wrong with them.
        reason: String,
    },

    /// Memory that is no whole number of elements.
    #[error(
        "{bytes} bytes are no whole number of elements of {element_bytes} bytes: open the handle as the type that was shared"
    )]
    ElementSize {
        /// The memory's length.
        bytes: u64,
        /// An element's.
        element_bytes: usize,
    },

    /// A handle of another version of the library.
    #[error(
        "the handle is of version {found}, and this library knows version {known}: use one version in all processes"
    )]
    HandleVersion {
        /// The handle's version.
        found: u16,
        /// This library's.
        known: u16,
    },

    /// The owner of a handle's memory has ended, or has dropped the export.
    #[error(
        "the memory's owner no longer shares it ({detail}): import while the owner keeps its `Shareable`"
    )]
    ExporterGone {
        /// How that was seen.
        detail: String,
    },

    /// The owner of a handle's memory did not hand it over.
    #[error("the memory's owner refused to hand it over: {reason}")]
    HandOverRefused {
        /// Why.
        reason: &'static str,
    },

    /// The owner of a handle's memory did not answer.
    #[error("the memory's owner did not answer within {limit:?}: it may be stopped")]
    HandOverTimeout {
        /// How long was waited.
        limit: Duration,
    },

    /// The process has no file descriptor left.
    #[error(
        "{operation} failed: the process has no file descriptor left; raise its limit (ulimit -n), or share less"
    )]
    DescriptorLimit {
        /// What was tried.
        operation: String,
    },

    /// A device without multicast.
    #[error("{device} has no multicast: {reason}")]
    MulticastUnsupported {
        /// The device's name.
        device: String,
        /// How that is known.
        reason: &'static str,
    },

    /// A place in a multicast object that is not on its granularity.
    #[error(
        "the {what} of {value} bytes is not a multiple of the multicast granularity, {granularity} bytes"
    )]
    MulticastUnaligned {
        /// Which number.
        what: &'static str,
        /// The number.
        value: u64,
        /// What it has to be a multiple of.
        granularity: u64,
    },

    /// A place past the end of a multicast object or of the memory to be bound.
    #[error("{bytes} bytes at offset {offset} reach past the end of the {what}, {end} bytes long")]
    MulticastRange {
        /// Of what.
        what: &'static str,
        /// Where the place begins.
        offset: u64,
        /// Its length.
        bytes: u64,
        /// How much there is.
        end: u64,
    },

    /// A multicast object in a state that does not allow the operation.
    #[error("cannot {operation}: {reason}")]
    MulticastState {
        /// What was tried.
        operation: &'static str,
        /// Why it cannot be done.
        reason: String,
    },
}

impl Error {
    /// The error of a system call that failed in `operation`.
    pub(crate) fn system(operation: &str, source: impl Into<io::Error>) -> Self {
        let (operation, source) = (operation.to_owned(), source.into());
        match source.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => MemoryError::DescriptorLimit { operation }.into(),
            _ => Self::System { operation, source },
        }
    }
}

fn behind(allocation: Option<(u64, u64)>) -> String {
    allocation.map_or_else(
        || " (there is none)".to_owned(),
        |(base, bytes)| format!(" (the one there begins at {base:#x} and has {bytes})"),
    )
}

impl MemoryError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::NotOneAllocation { .. }
            | Self::MalformedHandle { .. }
            | Self::ElementSize { .. }
            | Self::MulticastUnaligned { .. }
            | Self::MulticastRange { .. } => ErrorKind::InvalidArgument,
            Self::NotShareable { .. }
            | Self::HandleUnavailable { .. }
            | Self::OtherHost { .. }
            | Self::HandleVersion { .. }
            | Self::MulticastUnsupported { .. } => ErrorKind::Unsupported,
            // What ended the last attempt decides what a caller can do.
            Self::NoHandleWorked { attempts, .. } => attempts.kind(),
            Self::ExporterGone { .. } => ErrorKind::NotFound,
            Self::HandOverRefused { .. } => ErrorKind::Refused,
            Self::HandOverTimeout { .. } => ErrorKind::Timeout,
            Self::DescriptorLimit { .. } => ErrorKind::Limit,
            Self::MulticastState { .. } => ErrorKind::State,
        }
    }
}

/// The kinds of handle that were tried one after the other, each with what came of it.
#[derive(Debug, Default)]
pub struct Attempts(Vec<(HandleKind, Arc<Error>)>);

impl Attempts {
    /// Another one failed.
    pub(crate) fn push(&mut self, kind: HandleKind, error: impl Into<Arc<Error>>) {
        self.0.push((kind, error.into()));
    }

    /// Each kind, in the order tried, with its error.
    pub fn iter(&self) -> impl Iterator<Item = (HandleKind, &Error)> {
        self.0.iter().map(|(kind, error)| (*kind, &**error))
    }

    fn kind(&self) -> ErrorKind {
        self.0.last().map_or(ErrorKind::Unsupported, |(_, error)| error.kind())
    }
}

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no kind of handle, since none is offered");
        }
        for (i, (kind, error)) in self.0.iter().enumerate() {
            write!(f, "{}{kind} ({error})", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}
