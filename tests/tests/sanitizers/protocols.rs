//! Semaphores and the barrier.

use warpwire_device::abi::{ChannelId, InboundHandle, OutboundHandle, Rank, SemaphoreHandle};
use warpwire_device::barrier::PhaseWord;
use warpwire_device::copy::copy;
use warpwire_device::mem::{Element, Mapped};
use warpwire_device::semaphore::Semaphore;
use warpwire_tests::board::LocalBoard;
use warpwire_tests::bytes::{bytes, word};
use warpwire_tests::group::Shape;
use warpwire_tests::region::Region;

use super::threads::{ROUNDS, Words, load, store, together};

#[test]
fn a_semaphore_publishes_plain_stores_both_ways() {
    let (words, board) = (Words::new(5), LocalBoard::generous(Rank(0)));
    let ((to_b, at_b), (to_a, at_a)) = (words.semaphore(0), words.semaphore(2));
    let payload = words.at(4);
    let answer = || {
        for round in 0..ROUNDS {
            at_b.wait(board.policy().patience()).unwrap();
            assert_eq!(load(payload), word(1, round));
            store(payload, word(2, round));
            to_a.signal();
        }
    };
    together([answer], || {
        for round in 0..ROUNDS {
            store(payload, word(1, round));
            to_b.signal();
            at_a.wait(board.policy().patience()).unwrap();
            assert_eq!(load(payload), word(2, round));
        }
    });
}

#[test]
fn two_signallers_publish_to_one_waiter() {
    let (words, board) = (Words::new(8), LocalBoard::generous(Rank(0)));
    let (outbound, inbound) = words.semaphore(0);
    let acknowledged = [words.semaphore(2), words.semaphore(4)];
    let payloads = [words.at(6), words.at(7)];
    let signallers = [0, 1].map(|i| {
        let (payload, (_, acknowledged), board) = (payloads[i], acknowledged[i], &board);
        move || {
            for round in 0..ROUNDS {
                store(payload, word(i as u64, round));
                outbound.signal();
                acknowledged.wait(board.policy().patience()).unwrap();
            }
        }
    });
    together(signallers, || {
        for round in 0..ROUNDS {
            inbound.wait(board.policy().patience()).unwrap();
            inbound.wait(board.policy().patience()).unwrap();
            assert_eq!(payloads.map(load), [word(0, round), word(1, round)]);
            acknowledged.iter().for_each(|(acknowledge, _)| acknowledge.signal());
        }
    });
}

#[test]
fn two_waiters_share_the_signals() {
    let (words, board) = (Words::new(2), LocalBoard::generous(Rank(0)));
    let (outbound, inbound) = words.semaphore(0);
    let waiter = || (0..ROUNDS).for_each(|_| inbound.wait_shared(board.policy().patience()).unwrap());
    together([waiter; 2], || (0..2 * ROUNDS).for_each(|_| outbound.signal()));
    assert_eq!((load(words.at(0)), load(words.at(1))), (2 * ROUNDS, 2 * ROUNDS));
    assert!(!inbound.poll());
}

#[test]
fn a_barrier_publishes_to_every_thread() {
    const BLOCKS: u32 = 4;
    let (words, board) = (Words::new(1 + BLOCKS as usize), LocalBoard::generous(Rank(0)));
    let run = |block: u32| {
        // SAFETY: a zeroed word that outlives the threads, touched by the barrier alone.
        let mut barrier = PhaseWord::new(unsafe { Mapped::new(words.at::<u32>(0)) });
        let mut sync = || {
            barrier.arrive(block, BLOCKS);
            barrier.wait(Rank(0), board.policy().patience()).unwrap();
        };
        for round in 0..ROUNDS / 4 {
            store(words.at(1 + u64::from(block)), word(u64::from(block), round));
            sync();
            for other in 0..u64::from(BLOCKS) {
                assert_eq!(load(words.at(1 + other)), word(other, round));
            }
            sync();
        }
    };
    let run = &run;
    together((1..BLOCKS).map(|block| move || run(block)), || run(0));
}

/// The whole turn of a memory channel: copy, signal, wait, copy back, on odd offsets.
#[test]
fn puts_and_their_signals() {
    let (words, board) = (Words::new(4), LocalBoard::generous(Rank(0)));
    let len = 333;
    let (there, here) = (Region::poisoned(3, len), Region::poisoned(7, len));
    let end = |end: u64| {
        let inbound = InboundHandle {
            token: words.at(end),
            expected: words.at(2 + end),
            peer: Rank(1),
            channel: ChannelId(0),
        };
        let outbound = OutboundHandle { token: words.at(1 - end) };
        // SAFETY: zeroed words that outlive the threads.
        unsafe { Semaphore::new(SemaphoreHandle { inbound, outbound }) }
    };
    let (near, far) = (end(0), end(1));
    let reader = || {
        for round in 0..ROUNDS / 4 {
            far.wait(board.policy().patience()).unwrap();
            assert_eq!(there.bytes(), bytes(round, len), "round {round}");
            far.signal();
        }
    };
    together([reader], || {
        for round in 0..ROUNDS / 4 {
            let payload = bytes(round, len);
            for (i, &byte) in payload.iter().enumerate() {
                // SAFETY: inside the region, which only this thread touches.
                unsafe { u8::store_weak(here.address().byte_add(i as u64), byte) };
            }
            for member in Shape::flat(5).members() {
                // SAFETY: two live regions; the peer reads `there` only between its wait and its signal.
                unsafe { copy(member, there.address(), here.address(), len as u64) };
            }
            near.signal();
            near.wait(board.policy().patience()).unwrap();
        }
    });
    assert!(there.is_intact() && here.is_intact());
}
