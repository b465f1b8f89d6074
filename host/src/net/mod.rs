//! TCP between ranks: what the bootstrap and the Ethernet transport build on.
//!
//! Who connects has to prove that it knows a secret, before anything else is said (`handshake`); what is said comes in
//! frames of one form (`frame`). The secret keeps strangers out. It does not hide what ranks say to each other: that takes a
//! network of one's own.
//!
//! # Layers
//!
//! Each module imports only from those before it: `deadline`, `frame`, `secret`, `interface`, `listen`, `poller` < `payload` <
//! `handshake` < `dial`.

pub(crate) mod deadline;
pub(crate) mod dial;
pub(crate) mod frame;
pub(crate) mod handshake;
pub(crate) mod interface;
mod listen;
pub(crate) mod payload;
pub(crate) mod poller;
pub(crate) mod secret;

pub(crate) use deadline::Deadline;
pub(crate) use listen::listen;
pub(crate) use payload::Endpoint;
