//! Memory that other processes and devices reach.
//!
//! # Sharing
//!
//! [`Shareable`] is the owner of shared memory, [`SharedHandle`] what another process opens. [`RegisteredMemory`] is what ranks tell
//! each other of, [`TokenPool`] has the slots of their semaphores, [`Multicast`] binds the memory of several devices to one
//! address range. How a handle gets across, and what is tried, is in [`HandleChoice`] and [`HandleKind`]; what
//! memory can be shared, in [`MemoryKind`](crate::device::MemoryKind).
//!
//! # How it works
//!
//! The first export starts one thread, which serves an abstract Unix socket with a random name (`service`). An importer
//! proves its user and the export's token there. It gets the descriptor that the memory is mapped by; or, where the driver's
//! own handle keeps nothing (CUDA IPC, fabric), it keeps the connection, and the thread keeps the memory, until the importer
//! unmaps it, or dies. Abstract names belong to a network namespace: containers that share none reach each other's memory
//! by fabric handles alone; give them different `WARPWIRE_HOST_ID`s.
//!
//! Layers: `identity`, `wire`, `message`, `socket` < `handle`, `export`, `service`, `claim` < `mapping` < `import` <
//! `shareable`, `region`, `rdma` < `registered`, `multicast` < `token_pool`.

mod claim;
mod export;
mod handle;
mod identity;
mod import;
mod mapping;
mod message;
mod multicast;
mod peer_access;
mod query;
mod rdma;
mod region;
mod registered;
mod service;
mod shareable;
mod socket;
mod token_pool;
mod wire;

#[cfg(test)]
mod tests;

pub use crate::error::HandleKind;
pub use export::HandleChoice;
pub use handle::SharedHandle;
pub use identity::ProcessId;
pub(crate) use identity::process as process_id;
pub use multicast::{Multicast, MulticastBinding, MulticastMapping, SharedMulticast};
pub use peer_access::PeerAccess;
pub use query::{allocation_of, gpu_memset, gpu_memset_async, is_cu_mem_map_allocated, is_nvls_supported};
#[cfg(feature = "ib")]
pub(crate) use rdma::Owned;
pub(crate) use region::Region;
#[cfg(feature = "ib")]
pub(crate) use registered::MemoryIdentity;
pub use registered::{RegisteredMemory, Transports};
pub use shareable::Shareable;
pub use token_pool::{Token, TokenPool};
