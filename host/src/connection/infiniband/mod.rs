//! The transport by RDMA: one queue pair a connection, driven by the host.
//!
//! # Modes
//!
//! - `host`: data by RDMA writes, words by atomic additions. A connection is its words' only writer, so it knows what they
//!   hold, and adds the difference; where a value does not rise, its owner has reset the word, and it is written as a whole.
//! - `host-no-atomic`: words by immediate values of 32 bits, from which a thread of the peer's rebuilds 64 and stores them.
//!   Which word is meant, and its value, is told by a message, before the first signal and at each change of the word.
//!   The thread tells how many receives it has posted again, so that none is ever missing.
//!
//! # Ordering
//!
//! A reliable connection's requests take effect in order at the peer. Memory is registered without relaxed ordering. The
//! thread of `host-no-atomic` stores a word after its completion and a flush of what the adapter wrote before.
//!
//! # Failures
//!
//! The first request that ends with an error makes the connection fail, with an error that names the peer and says the
//! status; both directions are stopped, so that the peer's requests fail too. A peer that does not answer counts as lost
//! after [`InfiniBandConfig::timeout`] and its retries. What the adapter says by itself, of the connection's objects or of all
//! that it has, makes it fail as well: heard at once by the thread of `host-no-atomic`, else by whoever waits for a completion.
//! A port that loses its link does not: the connection outlives a link that comes back soon, and names the port if it fails.
//!
//! Layers: `config`, `split`, `token`, `description` < `counts`, `flight`, `inbox`, `scratch`, `gdrcopy` < `words`, `line` <
//! `receiver` < `link` < `endpoint`.

mod config;
#[cfg(feature = "ib")]
mod counts;
#[cfg(feature = "ib")]
mod description;
#[cfg(feature = "ib")]
mod endpoint;
#[cfg(feature = "ib")]
mod flight;
#[cfg(feature = "ib")]
mod gdrcopy;
#[cfg(feature = "ib")]
mod inbox;
#[cfg(feature = "ib")]
mod line;
#[cfg(feature = "ib")]
mod link;
#[cfg(feature = "ib")]
mod receiver;
#[cfg(feature = "ib")]
mod scratch;
#[cfg(feature = "ib")]
mod split;
#[cfg(feature = "ib")]
mod token;
#[cfg(feature = "ib")]
mod words;

pub use config::{InfiniBandConfig, SignalMode};
#[cfg(feature = "ib")]
pub(super) use endpoint::InfiniBandEndpoint;
