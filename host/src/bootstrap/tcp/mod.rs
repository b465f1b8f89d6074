//! Ranks that are processes, over TCP.
//!
//! Rank 0, the root, listens where the others know it to be; they check in, each with the address that it listens on itself,
//! and get everybody's in return. The connection to the root stays; those between others are made when there is first
//! something to send. Who connects has to prove that it knows the job's secret, and is else turned away.
//!
//! The secret keeps strangers out. It does not hide what ranks say to each other: that takes a network of one's own.
//!
//! # Layers
//!
//! Each module imports only from those before it: `outbox`, `message`, `payload`, `address`, `unique_id`, `options` < `commands`
//! < `shared` < `service` < `transport` < `join`. How connections are made, and by whom, is in `net`.

mod address;
mod commands;
mod join;
mod message;
mod options;
mod outbox;
mod payload;
mod service;
mod shared;
mod transport;
mod unique_id;

pub use address::RootAddress;
pub use join::{TcpBootstrap, TcpRoot};
pub use options::TcpOptions;
pub use unique_id::UniqueId;

/// The most ranks of a job.
pub const MAX_WORLD: usize = 16_384;
