//! RDMA adapters: InfiniBand and RoCE, through libibverbs.
//!
//! With the feature `ib` the types come from the crate `ibverbs`, and the library itself is looked for when it is first
//! needed; a machine without it has no adapters. Without the feature [`Adapter`] cannot be opened, and says so.
//!
//! # Threads and drops
//!
//! Any thread may call anything. What was made of something holds it by `Arc`: queue pair > completion queues, domain;
//! region > domain, memory; domain, completion queue > context. So they go in the right order, however they are dropped.
//!
//! # Layers
//!
//! `gid`, `plan`, `fault` (which call no verb), `library` < `context` < `completion`, `domain`, `mlx5` < `region`, `queue_pair` (by way of
//! `state`, `address`, `work`) < `adapter`.

#[cfg(any(feature = "ib", test))]
mod gid;
mod key;
#[cfg(any(feature = "ib", test))]
mod plan;

#[cfg(feature = "ib")]
mod adapter;
#[cfg(feature = "ib")]
mod address;
#[cfg(feature = "ib")]
mod completion;
#[cfg(feature = "ib")]
mod context;
#[cfg(feature = "ib")]
mod domain;
#[cfg(feature = "ib")]
mod fault;
#[cfg(feature = "ib")]
mod library;
#[cfg(feature = "ib")]
mod mlx5;
#[cfg(feature = "ib")]
mod queue_pair;
#[cfg(feature = "ib")]
mod region;
#[cfg(feature = "ib")]
mod state;
#[cfg(feature = "ib")]
mod work;

#[cfg(all(test, feature = "ib"))]
mod tests;

#[cfg(not(feature = "ib"))]
mod absent;

#[cfg(not(feature = "ib"))]
pub use absent::Adapter;
#[cfg(feature = "ib")]
pub use adapter::Adapter;

pub(crate) use key::RemoteKey;
#[cfg(feature = "ib")]
pub(crate) use {
    address::{Address, Route},
    completion::{Completion, CompletionQueue, Outcome},
    domain::Domain,
    plan::Placement,
    queue_pair::{Depths, Patience, QueuePair},
    region::{Region, Source},
    work::{Local, Remote, Request, Work},
};
