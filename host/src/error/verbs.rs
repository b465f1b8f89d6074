//! What can go wrong with RDMA.

use std::fmt;
use std::io;

use super::ErrorKind;

/// A failed operation on an InfiniBand or RoCE adapter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerbsError {
    /// InfiniBand was asked of a build that has none.
    #[error("this build has no InfiniBand: build with `--features ib`, or use another transport")]
    Disabled,

    /// The verbs library could not be loaded.
    #[error(
        "libibverbs cannot be loaded ({}): install it (Debian: libibverbs1), or name it in WARPWIRE_IBV_SO",
        listed(tried)
    )]
    NoLibrary {
        /// Each name tried, with what the loader said.
        tried: Vec<(String, String)>,
    },

    /// The library is not one that this can work with.
    #[error("{library} has no function {symbol}: it is no libibverbs, or one older than rdma-core 33")]
    NoSymbol {
        /// The library.
        library: String,
        /// What it lacks.
        symbol: &'static str,
    },

    /// There is no adapter.
    #[error("this machine has no RDMA adapter: `cargo xtask doctor` says what it looks for")]
    NoAdapter,

    /// An adapter that is not there was asked for.
    #[error("there is no RDMA adapter {asked}: this machine has {}", names(present))]
    NoSuchAdapter {
        /// What was asked for.
        asked: String,
        /// The names of those that are there.
        present: Vec<String>,
    },

    /// No port of the adapter can be used.
    #[error(
        "the adapter {adapter} has no port that is up ({}): check its cable, its link, or the subnet manager",
        listed(ports)
    )]
    NoActivePort {
        /// The adapter.
        adapter: String,
        /// Its ports, each with its state.
        ports: Vec<(String, String)>,
    },

    /// A port that the adapter has not.
    #[error("the adapter {adapter} has no port {asked}: its ports are 1 to {ports}")]
    NoSuchPort {
        /// The adapter.
        adapter: String,
        /// The port asked for.
        asked: u8,
        /// How many it has.
        ports: u8,
    },

    /// A GID index beyond the port's table, or of an empty row.
    #[error(
        "GID {asked} of {adapter} cannot be used: {reason}; unset WARPWIRE_IB_GID_INDEX to have one chosen, or give one of {usable:?}"
    )]
    GidIndex {
        /// The adapter.
        adapter: String,
        /// The index asked for.
        asked: u32,
        /// What is wrong with it.
        reason: &'static str,
        /// Those that could be used.
        usable: Vec<u32>,
    },

    /// A RoCE port without an address.
    #[error("{adapter} has no usable GID: its network interface needs an IP address")]
    NoGid {
        /// The adapter.
        adapter: String,
    },

    /// A verb failed.
    #[error("{operation} on {adapter} failed: {source}{hint}")]
    Call {
        /// What was tried.
        operation: &'static str,
        /// The adapter.
        adapter: String,
        /// Why it failed.
        source: io::Error,
        /// What to do; begins with its own separator, or is empty.
        hint: &'static str,
    },

    /// A queue pair did not change its state.
    #[error("the queue pair {number} of {adapter} did not go from {from} to {to}: {source}{detail}")]
    Transition {
        /// The adapter.
        adapter: String,
        /// The queue pair.
        number: u32,
        /// The state it is in.
        from: &'static str,
        /// The state that was asked for.
        to: &'static str,
        /// Why it failed.
        source: io::Error,
        /// The attributes that may be at fault; begins with its own separator, or is empty.
        detail: String,
    },

    /// Memory could not be registered by any way that there is for its kind.
    #[error(
        "{bytes} bytes of {memory} at {address:#x} cannot be registered with {adapter}: {}",
        listed(attempts)
    )]
    Registration {
        /// The adapter.
        adapter: String,
        /// What memory it is.
        memory: &'static str,
        /// Where it lies.
        address: u64,
        /// How much.
        bytes: u64,
        /// Each way tried, and how it failed.
        attempts: Vec<(String, String)>,
    },

    /// Memory that was not registered with the adapter that a connection is made with.
    #[error(
        "{what} is not registered with the adapter {adapter} that this connection uses: register it with that one"
    )]
    NotRegistered {
        /// Which memory.
        what: &'static str,
        /// The adapter, by its name or its GUID.
        adapter: String,
    },

    /// What a peer said of its end cannot be used.
    #[error(
        "what the peer said of its end of an InfiniBand connection ({bytes} bytes) cannot be used: {reason}"
    )]
    Endpoint {
        /// How much it said.
        bytes: usize,
        /// What is wrong with it.
        reason: String,
    },

    /// The two ends of a connection are not set up alike.
    #[error(
        "the two ends of an InfiniBand connection differ in {what}: {here} here and {there} at the peer's"
    )]
    Mismatch {
        /// In what.
        what: &'static str,
        /// This end's.
        here: String,
        /// The other's.
        there: String,
    },

    /// An adapter that cannot do what a connection needs.
    #[error("{adapter} {lack}")]
    Incapable {
        /// The adapter.
        adapter: String,
        /// What it cannot do, and what to do.
        lack: String,
    },
}

impl VerbsError {
    /// See [`Error::kind`](super::Error::kind).
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Disabled
            | Self::NoLibrary { .. }
            | Self::NoSymbol { .. }
            | Self::NoAdapter
            | Self::NoActivePort { .. }
            | Self::NoGid { .. } => ErrorKind::Unavailable,
            Self::NoSuchAdapter { .. } | Self::NoSuchPort { .. } => ErrorKind::NotFound,
            Self::GidIndex { .. } | Self::NotRegistered { .. } => ErrorKind::InvalidArgument,
            Self::Call { .. } | Self::Transition { .. } => ErrorKind::Driver,
            Self::Registration { .. } | Self::Incapable { .. } => ErrorKind::Unsupported,
            Self::Endpoint { .. } | Self::Mismatch { .. } => ErrorKind::Refused,
        }
    }
}

fn listed(pairs: &[(String, String)]) -> impl fmt::Display {
    pairs.iter().map(|(name, outcome)| format!("{name}: {outcome}")).collect::<Vec<_>>().join("; ")
}

fn names(present: &[String]) -> String {
    if present.is_empty() { "none".to_owned() } else { present.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_was_tried() {
        let tried = vec![("libibverbs.so.1".to_owned(), "no such file".to_owned())];
        let error = VerbsError::NoLibrary { tried };
        assert!(error.to_string().contains("libibverbs.so.1: no such file"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let none = VerbsError::NoSuchAdapter { asked: "mlx5_9".to_owned(), present: vec![] };
        assert!(none.to_string().ends_with("has none"), "{none}");
        assert!(VerbsError::Disabled.to_string().contains("--features ib"));
    }
}
