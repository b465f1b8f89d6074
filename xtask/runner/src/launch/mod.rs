//! Starts the ranks of a job as processes on this machine, and sees all of them to their end.
//!
//! # What a rank gets
//!
//! - Its place, by the variables that [`warpwire::bootstrap::from_env`] reads. The port that rank 0 listens on is held for
//!   the job until it ends, so no other program can take it meanwhile.
//! - Its standard input is one end of a socket pair: a line of JSON each way, apart from whatever is printed. [`Control`] is
//!   the rank's side of it. A program that reads nothing and tells nothing is fine too.
//! - What it prints goes to the launcher's standard error, line by line, with the rank before it; its standard output also to
//!   the launcher's, where that is asked for.
//! - A process group of its own, which the terminal's Ctrl-C does not reach, and the kernel's promise that it is killed
//!   when the launcher dies, however that may be.
//!
//! # Endings
//!
//! One deadline holds for all ranks. When a rank fails, the others have a moment to see it and say so; then they are killed,
//! and the error names the rank that failed first, with its last lines. SIGINT, SIGTERM and SIGHUP end the ranks, and what
//! was started for them, before they end the launcher as they always do. So the program's exit code is 0 where every rank did
//! what it should, 1 where something failed, and a signal's where one came.
//!
//! # GPUs
//!
//! [`Placement`] deals the GPUs out by turns. Processes that share a GPU take turns on it, some 2 ms each, unless NVIDIA's
//! multi-process service runs; [`Launch::placed`] runs one for the job. No setting of a GPU is touched.
//!
//! Layers: `error`, `lines`, `interrupt`, `meeting`, `mps`, `placement` < `member` < `job`; `control` stands alone.

mod control;
mod error;
mod interrupt;
mod job;
mod lines;
mod meeting;
mod member;
mod mps;
mod placement;

pub use control::Control;
pub use job::{Job, Launch};
pub use placement::{Devices, Placement};
