//! The grid barrier's word.

use loom::sync::atomic::AtomicU32;
use loom::thread;

use warpwire_device::abi::{Rank, WaitError};
use warpwire_device::barrier::PhaseWord;

use super::memory::{Looks, LoomWord, PREEMPTIONS, Payload, check, check_counting};

/// `blocks` blocks pass the barrier `rounds` times, its word standing at `start`; each reads, behind every barrier, what
/// its neighbour wrote before it.
fn barrier_rounds(blocks: u32, rounds: usize, start: u32) {
    let complete = check_counting(PREEMPTIONS, move || {
        let word = LoomWord::<AtomicU32>::new(start);
        let payloads = [(); 2].map(|()| [Payload::new(), Payload::new(), Payload::new()]);
        let run = move |block: u32| {
            let mut barrier = PhaseWord::new(word);
            for payloads in &payloads[..rounds] {
                payloads[block as usize].write(u64::from(block) + 10);
                barrier.arrive(block, blocks);
                if barrier.wait(Rank(block), Looks(2)).is_err() {
                    return false;
                }
                let neighbour = (block + 1) % blocks;
                assert_eq!(payloads[neighbour as usize].read(), u64::from(neighbour) + 10);
            }
            true
        };
        let others: Vec<_> = (1..blocks).map(|block| thread::spawn(move || run(block))).collect();
        let mut all = run(0);
        for other in others {
            all &= other.join().unwrap();
        }
        if all && rounds == 2 {
            assert_eq!(word.last(), start, "two rounds bring the word back");
        }
        all
    });
    assert!(complete > 0);
}

#[test]
fn barrier_of_one_block() {
    barrier_rounds(1, 2, 0);
}

#[test]
fn barrier_of_two_blocks() {
    barrier_rounds(2, 2, 0);
}

#[test]
fn barrier_of_three_blocks() {
    barrier_rounds(3, 2, 0);
}

/// From the other phase on, where the first round carries the word past 2^32.
#[test]
fn barrier_phase_wraps() {
    barrier_rounds(2, 2, 1 << 31);
    barrier_rounds(3, 1, 1 << 31);
}

/// A block whose neighbour never comes gives up instead of waiting for ever.
#[test]
fn barrier_without_a_block_fails() {
    check(|| {
        let word = LoomWord::<AtomicU32>::new(0);
        let mut barrier = PhaseWord::new(word);
        barrier.arrive(0, 2);
        assert_eq!(barrier.wait(Rank(0), Looks(1)), Err(WaitError::Timeout));
    });
}
