//! Port channels of the CPU device's kernels over connections within the process.

mod failures;
mod link;
mod requests;
mod rig;
mod room;
