//! CUDA's hardware queues, over which a process' streams are spread.
//!
//! `CUDA_DEVICE_MAX_CONNECTIONS` says how many a process has, 1 to 32, before its first call of CUDA; 8 where nobody says
//! (NVIDIA, "CUDA C++ Programming Guide", 13.0, environment variables).

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};

const VARIABLE: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
const MOST: &str = "32";
/// Whether the variable has the value that [`allow_many`] gave it.
static OURS: AtomicBool = AtomicBool::new(false);

/// The queues that processes under one multi-process service are given together: with more a GPU lets them take turns.
const OF_A_SERVICE: usize = 96;

/// Ranks of one process that share a GPU each have a stream, and the streams have to run beside each other. Leaves alone what
/// the user has set. The first thing that the program does.
///
/// # Safety
///
/// No other thread runs that could read the environment meanwhile.
pub unsafe fn allow_many() {
    if env::var_os(VARIABLE).is_none() {
        // SAFETY: the caller's contract.
        unsafe { env::set_var(VARIABLE, MOST) };
        OURS.store(true, Ordering::Relaxed);
    }
}

/// What a rank is told that shares a GPU with others, `ranks` in all: enough queues for its own few streams. Nothing where the
/// user has said something.
pub fn of_a_rank(ranks: usize) -> Option<(&'static str, String)> {
    OURS.load(Ordering::Relaxed).then(|| (VARIABLE, share(ranks).to_string()))
}

fn share(ranks: usize) -> usize {
    (OF_A_SERVICE / ranks.max(1)).clamp(2, 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_the_queues() {
        assert_eq!([1, 2, 8, 16, 32, 64].map(share), [8, 8, 8, 6, 3, 2]);
    }
}
