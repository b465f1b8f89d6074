//! The CPU device's instructions: the names of `arch::nvptx` on core atomics, and the lane that the calling code runs as.
//!
//! A scope has no counterpart here: every ordered access is visible to every thread of the process and, in shared
//! mappings, of the others.

mod bulk;
mod cvt;
mod fence;
mod lane;
mod ldst;
mod multimem;
mod ordering;
mod param;
mod simd;
mod sreg;
mod sync;

pub use bulk::*;
pub use cvt::*;
pub use fence::*;
pub use lane::{Lane, LaneRuntime, set_lane};
pub use ldst::*;
pub use multimem::*;
pub(crate) use param::*;
pub use simd::*;
pub use sreg::*;
pub use sync::*;
