//! The host side of warpwire: devices, memory, launches and the collectives built on them.
//!
//! # Layers
//!
//! Each module imports only from those before it: [`error`], `monitor` < `env` < [`data_type`], [`device`], `hip`, `net`, [`verbs`] < [`memory`],
//! [`convert`] < [`connection`] < [`semaphore`], [`fifo`] < [`proxy`] < [`channel`] < [`communicator`] < [`collective`]. Of the
//! device crate the host names only [`abi`], its half of the FIFO's protocol, the element
//! types, the kernels' table, and the CPU half that runs them.
//!
//! # Two devices
//!
//! A [`device::Device`] is a GPU (feature `cuda`) or the CPU device, which runs the same kernels from the same source:
//! blocks as threads, GPU threads as coroutines. The API is the same, and so are its limits and errors.

pub mod data_type;
pub mod device;
pub mod error;
#[cfg(feature = "hip")]
pub mod hip;
pub mod verbs;

pub mod bootstrap;

pub mod memory;

pub mod connection;

pub mod channel;
pub mod convert;
pub mod semaphore;

pub mod fifo;

pub mod proxy;

pub mod communicator;

pub mod collective;

mod env;
mod monitor;
mod net;

pub use error::{Error, ErrorKind, MemoryError, Result};
pub use warpwire_device::{abi, kernel, types};
