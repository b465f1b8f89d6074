//! Compiles a kernel crate, written with `warpwire-device`, to PTX; checks the PTX; and describes it in a manifest.
//!
//! The way: find a compiler ([`toolchain`]), compile for each [`Arch`], put the launch bounds into each entry, refuse what
//! device code must not do ([`Fault`]), assemble with ptxas where there is one ([`cuda`]), write the files and a
//! [`Manifest`].
//!
//! # In a build script
//!
//! ```no_run
//! // build.rs, for a kernel crate in the folder `kernels` beside it
//! use warpwire_build::{Arch, Builder};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     Builder::new("kernels")
//!         .architectures([Arch::SM_80, Arch::SM_90])
//!         .or_cpu_only() // without a compiler for PTX the program is still built
//!         .build()?
//!         .emit_cargo()
//!         .embed(std::env::var("OUT_DIR")?)?;
//!     Ok(())
//! }
//! ```
//!
//! and in the crate itself:
//!
//! ```text
//! include!(concat!(env!("OUT_DIR"), "/kernels_ptx.rs")); // defines PTX: &[(u32, &str)]
//! ```
//!
//! # Layers
//!
//! [`ptx`] < `symbols`, `description`, `lint`, `split` (text to text) < `process`, `sources`, [`manifest`], [`debian`], [`toolchain`], [`cuda`],
//! `codegen`, `compile` (files and programs) < `pipeline` (one architecture) < `builder`, `output`.
//!
//! # Features
//!
//! `compile` (on by default) is everything that runs a compiler. Without it only [`ptx`] is left, which needs no other
//! crate.
#![cfg_attr(not(feature = "compile"), allow(rustdoc::broken_intra_doc_links))]
#![forbid(unsafe_code)]

pub mod ptx;

#[cfg(feature = "compile")]
mod arch;
#[cfg(feature = "compile")]
mod builder;
#[cfg(feature = "compile")]
mod codegen;
#[cfg(feature = "compile")]
mod compile;
#[cfg(feature = "compile")]
pub mod cuda;
#[cfg(feature = "compile")]
pub mod debian;
#[cfg(feature = "compile")]
mod description;
#[cfg(feature = "compile")]
pub mod environment;
#[cfg(feature = "compile")]
mod error;
#[cfg(feature = "compile")]
mod lint;
#[cfg(feature = "compile")]
pub mod manifest;
#[cfg(feature = "compile")]
mod output;
#[cfg(feature = "compile")]
mod pipeline;
#[cfg(feature = "compile")]
mod process;
#[cfg(feature = "compile")]
mod progress;
#[cfg(feature = "compile")]
mod sources;
#[cfg(feature = "compile")]
mod split;
#[cfg(feature = "compile")]
mod symbols;
#[cfg(feature = "compile")]
pub mod toolchain;

#[cfg(feature = "compile")]
pub use {
    arch::{Arch, UnknownArch},
    builder::Builder,
    codegen::{Codegen, NvvmUnavailable},
    error::Error,
    lint::{Fault, FaultKind},
    manifest::Manifest,
    output::Output,
    progress::{Progress, Silent},
    sources::{Sources, sha256},
};
