//! How a peer names memory that was registered.

use serde::{Deserialize, Serialize};

/// The key of memory on one adapter, for requests that come to that adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemoteKey {
    /// The adapter: its GUID, which no other has.
    pub(crate) adapter: u64,
    /// The key.
    pub(crate) key: u32,
}
