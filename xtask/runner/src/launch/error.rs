//! How a job can fail.

use std::fmt::{self, Write};
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use thiserror::Error;

/// Why a job did not come to its end.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The system's, before any rank runs.
    #[error("{what}")]
    System {
        /// What was tried.
        what: String,
        /// What it answered.
        source: io::Error,
    },
    /// A program that does not start.
    #[error("rank {rank} cannot be started: {program}")]
    Start {
        /// Which.
        rank: usize,
        /// What was to be run.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// NVIDIA's multi-process service is there and does not start.
    #[error("{program} does not start the multi-process service: {reason}")]
    Mps {
        /// The program that starts it.
        program: String,
        /// What it said.
        reason: String,
    },
    /// A rank that failed.
    #[error("{0}")]
    Failed(Box<Failure>),
    /// The deadline passed.
    #[error("the ranks had {limit:?}, and {} not come to the end by then", are(waited_for))]
    Late {
        /// What they had.
        limit: Duration,
        /// The ranks that were waited for.
        waited_for: Vec<usize>,
    },
    /// SIGINT or its like.
    #[error("ended by signal {signal}")]
    Interrupted {
        /// Which.
        signal: i32,
    },
    /// A rank whose message is not what the launcher expects.
    #[error("rank {rank} said {said:?}")]
    Message {
        /// Which.
        rank: usize,
        /// What.
        said: String,
        /// Why it cannot be.
        source: serde_json::Error,
    },
}

/// The rank that failed first, and what became of the others.
#[derive(Debug)]
pub struct Failure {
    /// It.
    pub rank: usize,
    /// Of how many.
    pub ranks: usize,
    /// How it ended.
    pub status: ExitStatus,
    /// The last lines of its standard error.
    pub tail: Vec<String>,
    /// Others that failed after it, by themselves.
    pub followed: Vec<usize>,
    /// Others that had to be killed.
    pub killed: Vec<usize>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, ranks, status, tail, followed, killed } = self;
        if status.success() {
            write!(f, "rank {rank} of {ranks} ended before it had said what was asked of it")?;
        } else {
            write!(f, "rank {rank} of {ranks} failed: {status}")?;
        }
        if !followed.is_empty() {
            write!(f, "; {} failed after it", list(followed))?;
        }
        if !killed.is_empty() {
            write!(f, "; {} had to be killed", list(killed))?;
        }
        if tail.is_empty() {
            return write!(f, "; it printed nothing on its standard error");
        }
        write!(f, "; its last lines:")?;
        tail.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// `rank 1`, or `ranks 1, 2`.
fn list(ranks: &[usize]) -> String {
    let mut text = if ranks.len() == 1 { "rank".to_owned() } else { "ranks".to_owned() };
    for (i, rank) in ranks.iter().enumerate() {
        // Writing to a text cannot fail.
        let _ = write!(text, "{} {rank}", if i == 0 { "" } else { "," });
    }
    text
}

/// `rank 1 has`, or `ranks 1, 2 have`.
fn are(ranks: &[usize]) -> String {
    format!("{} {}", list(ranks), if ranks.len() == 1 { "has" } else { "have" })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_failure_names_its_rank_first() {
        let failure = Failure {
            rank: 2,
            ranks: 4,
            status: ExitStatus::from_raw(9),
            tail: vec!["the last".to_owned()],
            followed: vec![0, 1],
            killed: vec![3],
        };
        let text = failure.to_string();
        assert!(text.starts_with("rank 2 of 4 failed: signal: 9 (SIGKILL)"), "{text}");
        assert!(text.contains("; ranks 0, 1 failed after it; rank 3 had to be killed;"), "{text}");
        assert!(text.ends_with("its last lines:\n  the last"), "{text}");
    }
}
