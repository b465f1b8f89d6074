//! What an InfiniBand connection is asked for with.

use std::fmt;

/// How words are set at the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalMode {
    /// By the adapters alone: an atomic addition.
    Host,
    /// By an immediate value, which a thread of the peer's stores: for adapters without atomics, or whose atomics the peer's
    /// device does not see.
    HostNoAtomic,
}

impl SignalMode {
    /// Its name, as in `WARPWIRE_IBV_MODE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::HostNoAtomic => "host-no-atomic",
        }
    }
}

impl fmt::Display for SignalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An InfiniBand connection: one queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InfiniBandConfig {
    /// How words are set; `None`: as `WARPWIRE_IBV_MODE` says, or else by atomics where the adapter has them.
    pub mode: Option<SignalMode>,
    /// The adapter's port, from 1; `None`: the first that is up.
    pub port: Option<u8>,
    /// The row of the port's table of GIDs; `None`: as `WARPWIRE_IB_GID_INDEX` says, or else RoCE version 2 over IPv4 where
    /// the port has that, then over IPv6, then version 1.
    pub gid_index: Option<u32>,
    /// Requests in flight, at least 4: whoever asks for more waits for room.
    pub queue_depth: u32,
    /// Signals that may wait for the peer's thread, at least 4: with [`SignalMode::HostNoAtomic`] alone.
    pub signal_depth: u32,
    /// The time that the peer's adapter has to answer, as the verbs' code: 4.096 µs times 2 to this.
    pub timeout: u8,
    /// How often a request is sent again before the peer counts as lost: 0 to 6. By the verbs there is a 7 too, but soft-RoCE
    /// takes it for ever.
    pub retries: u8,
}

impl Default for InfiniBandConfig {
    /// A peer that does not answer counts as lost after about two seconds: seven times 0.27 s.
    fn default() -> Self {
        Self {
            mode: None,
            port: None,
            gid_index: None,
            queue_depth: 1024,
            signal_depth: 1024,
            timeout: 16,
            retries: 6,
        }
    }
}
