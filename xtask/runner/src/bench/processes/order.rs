//! What the benchmark asks of a rank. The answers: who takes part, in order; a number in the case's unit. `None` is the answer
//! of a rank that has nothing to do.

use serde::{Deserialize, Serialize};

use crate::bench::case::Who;

/// An order. Every rank gets the same ones.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Set the contenders of a task up, and check what each computes. Those of the task before go.
    Prepare(Task),
    /// Measure one repetition of a contender.
    Measure(Who),
}

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Signals to and fro between ranks 0 and 1, one thread each.
    Semaphore {
        /// Without order.
        relaxed: bool,
    },
    /// Packets to and fro between ranks 0 and 1, one a thread.
    Packets {
        /// Which kind.
        format: Format,
        /// Threads of each block.
        threads: u32,
    },
    /// Puts into a peer's memory: of rank 0 into rank 1's, and where both put, of rank 1 into rank 0's.
    Put {
        /// By what.
        by: By,
        /// Of each message.
        bytes: usize,
        /// Whether both put, at the same time.
        both: bool,
    },
    /// An all-reduce among all ranks.
    AllReduce {
        /// Of each rank's message.
        bytes: usize,
    },
}

/// The packet formats.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Format {
    /// 4 bytes and a flag.
    Ll8,
    /// 8 bytes and two flags.
    Ll16,
}

/// What moves the bytes of a put.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum By {
    /// Loads and stores of threads.
    Threads,
    /// Bulk asynchronous copies, one thread a block.
    Bulk,
}
