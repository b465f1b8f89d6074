//! Measurements between processes: the ranks of a job, which the benchmark starts, keeps and asks.
//!
//! The benchmark gives the orders (`order`) and measures nothing itself; each rank (`rank`) has the contenders of a task, one
//! end of each (`hop`, `put`, `reduce`), over memory that the ranks have shown each other (`peers`), and NCCL beside them where it can be (`nccl`). All ranks pass a barrier before
//! each repetition, contenders take turns as in one process, and the slowest rank's number counts.

mod fleet;
mod hop;
mod nccl;
mod order;
mod peers;
mod put;
mod rank;
mod reduce;

pub use fleet::Fleet;
pub use order::{By, Format, Task};
pub use rank::BenchRank;
