//! What a kernel may call: the device half of warpwire.
//!
//! One source runs in three places: as PTX on a GPU, on the CPU device (blocks as threads, GPU threads as coroutines),
//! and, for the protocols, under a model checker. Only [`arch`] knows which.
//!
//! # Layers
//!
//! Each module imports only from those before it:
//!
//! 0. [`abi`]: types that device and host share, every layout asserted.
//! 1. [`half`], then [`fp8`]: the floating-point types that the language does not have, in integer arithmetic.
//! 2. [`arch`]: the instructions. The only `asm!` of the crate; `arch::nvptx` and `arch::cpu` have the same names.
//! 3. [`mem`]: words that both sides of a protocol touch; [`coop`]: the group of threads that calls a primitive; [`types`]:
//!    the element types in vectors.
//! 4. [`spin`]: waits that end.
//! 5. The protocols: [`semaphore`], [`fifo`], [`packet`], [`copy`], `bulk` (sm_90 and newer), [`barrier`], [`reduce`].
//! 6. The channels, which compose them and add no protocol of their own: [`memory_channel`] over a peer's mapped memory,
//!    [`port_channel`] through the host's proxy.
//!
//! [`mod@kernel`], which declares what is launched, needs `abi` and `arch` alone.
//!
//! # Who calls
//!
//! Each function says which group of threads calls it. A *group* call takes a [`coop::Group`] and must be made by all of
//! its threads, convergently; the arguments are the same in each of them unless the function says otherwise.
//!
//! # Failure
//!
//! There is no panic and no endless spin in this crate's device code. Whatever waits takes a [`spin::Policy`], returns
//! `Result<_, WaitError>`, and leaves a report on the host's [`abi::WaitBoard`]; a kernel passes the error up with `?` and
//! ends.
#![no_std]
#![allow(
    clippy::needless_range_loop,
    reason = "an index unrolls, and the array stays in registers; an iterator may not"
)]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx),
    allow(internal_features)
)]

#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

pub mod abi;

pub mod half;

pub mod fp8;

pub mod arch;

pub mod coop;
pub mod mem;
pub mod types;

pub mod spin;

pub mod barrier;
#[cfg(any(warpwire_sm90, not(target_arch = "nvptx64")))]
pub mod bulk;
pub mod copy;
pub mod fifo;
pub mod packet;
pub mod reduce;
pub mod semaphore;

pub mod memory_channel;
pub mod port_channel;

pub mod kernel;
