//! Many ranks, and many messages.

use std::fs;

use warpwire::abi::Rank;
use warpwire::bootstrap::Tag;

use crate::jobs::{each, tcp};

#[test]
fn sixty_four_ranks_pass_a_thousand_barriers() {
    each(tcp(64), |rank| {
        let gathered = rank.all_gather(&rank.rank().0.to_le_bytes()).unwrap();
        for (number, bytes) in (0u32..).zip(&gathered) {
            assert_eq!(*bytes, number.to_le_bytes());
        }
        for _ in 0..1000 {
            rank.barrier().unwrap();
        }
    });
}

/// Bytes of this process that lie in memory.
fn resident_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// A hundred thousand messages on one tag, and as many on a tag each: in order, and nothing is kept of either.
pub fn many_messages() {
    const MESSAGES: u32 = 100_000;
    /// Far less than the messages together, 400 MB.
    const GROWTH_BYTES: usize = 128 << 20;
    let before = resident_bytes();
    each(tcp(2), |rank| {
        if rank.rank() == Rank(0) {
            let mut message = vec![0; 4096];
            for round in 0..MESSAGES {
                message[..4].copy_from_slice(&round.to_le_bytes());
                rank.send(Rank(1), Tag(0), &message).unwrap();
            }
            // A tag each: nothing is kept of a tag either.
            for round in 0..MESSAGES {
                rank.send(Rank(1), Tag(1 + u64::from(round)), &round.to_le_bytes()).unwrap();
            }
        } else {
            for round in 0..MESSAGES {
                let message = rank.recv(Rank(0), Tag(0)).unwrap();
                assert_eq!(message[..4], round.to_le_bytes());
            }
            for round in 0..MESSAGES {
                let message = rank.recv(Rank(0), Tag(1 + u64::from(round))).unwrap();
                assert_eq!(message, round.to_le_bytes());
            }
        }
        assert!(resident_bytes() < before + GROWTH_BYTES);
    });
}
