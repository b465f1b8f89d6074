//! Slots of semaphores: given out again when both ends are gone, and not before.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use warpwire::abi::{ChannelId, Global, Rank};
use warpwire::bootstrap::Tag;
use warpwire::communicator::Communicator;
use warpwire::connection::Connection;
use warpwire::semaphore::Semaphore;

use crate::jobs::{LONG, connect, each, other};

fn semaphore(communicator: &Communicator, connection: &Connection, tag: u64) -> Semaphore {
    communicator.build_semaphore(connection, Tag(tag)).unwrap().wait(LONG).unwrap()
}

fn token(semaphore: &Semaphore) -> Global<u64> {
    semaphore.inbound(ChannelId(0)).token
}

fn value(address: Global<u64>) -> u64 {
    // SAFETY: a slot of a pool that lives, touched by atomics alone.
    unsafe { AtomicU64::from_ptr(address.address() as *mut u64) }.load(Ordering::Acquire)
}

#[test]
fn a_slot_comes_back_when_both_ends_are_dropped() {
    each(2, |communicator| {
        let connection = connect(&communicator, other(&communicator));
        let mut seen = Vec::new();
        for round in 0..100 {
            let semaphore = semaphore(&communicator, &connection, 1);
            seen.push(token(&semaphore));
            // Now one rank is first, now the other.
            if round % 2 == communicator.rank().0 {
                drop(semaphore);
                communicator.barrier().unwrap();
            } else {
                communicator.barrier().unwrap();
                semaphore.signal().unwrap();
                connection.flush(LONG).unwrap();
                drop(semaphore);
            }
            communicator.barrier().unwrap();
            assert_eq!(communicator.lent_slots(), 0, "round {round}");
        }
        assert!(seen.iter().all(|token| *token == seen[0]), "the same slot each time: {seen:?}");
        assert_eq!(value(seen[0]), 0);
    });
}

/// C01 across processes: a signal of a peer that has not let go yet does not count for the slot's next owner.
#[test]
fn a_late_signal_reaches_nobody_else() {
    each(2, |communicator| {
        let connection = connect(&communicator, other(&communicator));
        let first = semaphore(&communicator, &connection, 1);
        let slot = token(&first);
        if communicator.rank() == Rank(0) {
            drop(first);
            assert_eq!(communicator.lent_slots(), 1);
            let second = semaphore(&communicator, &connection, 2);
            assert_ne!(token(&second), slot);
            communicator.barrier().unwrap();
            communicator.barrier().unwrap();
            assert_eq!(value(token(&second)), 0);
            assert_eq!(communicator.lent_slots(), 1, "the second's");
            let third = semaphore(&communicator, &connection, 3);
            assert_eq!((token(&third), value(slot)), (slot, 0), "the first's, zeroed");
        } else {
            let _second = semaphore(&communicator, &connection, 2);
            communicator.barrier().unwrap();
            first.signal().unwrap();
            connection.flush(LONG).unwrap();
            drop(first);
            communicator.barrier().unwrap();
            let _third = semaphore(&communicator, &connection, 3);
            communicator.barrier().unwrap();
            return;
        }
        communicator.barrier().unwrap();
    });
}

#[test]
fn a_peer_that_leaves_lets_go_of_everything() {
    each(2, |communicator| {
        let kept: Vec<Semaphore> = {
            let connection = connect(&communicator, other(&communicator));
            (0..3).map(|tag| semaphore(&communicator, &connection, tag)).collect()
        };
        let slot = token(&kept[0]);
        communicator.barrier().unwrap();
        if communicator.rank() == Rank(1) {
            return;
        }
        drop(kept);
        let begun = Instant::now();
        while communicator.lent_slots() > 0 {
            assert!(begun.elapsed() < LONG, "{} slots are out", communicator.lent_slots());
            thread::yield_now();
        }
        assert_eq!(communicator.context().tokens().take().unwrap().address(), slot);
    });
}

/// Its kernels may still run: the slots that it signals are given up.
#[test]
fn the_slots_of_a_peer_that_aborts_are_not_given_out_again() {
    each(2, |communicator| {
        let connection = connect(&communicator, other(&communicator));
        let semaphore = semaphore(&communicator, &connection, 1);
        let slot = token(&semaphore);
        communicator.barrier().unwrap();
        if communicator.rank() == Rank(1) {
            communicator.abort();
            return;
        }
        while communicator.barrier().is_ok() {}
        drop(semaphore);
        assert_eq!(communicator.lent_slots(), 0);
        let taken: Vec<_> = (0..10).map(|_| communicator.context().tokens().take().unwrap()).collect();
        assert!(taken.iter().all(|token| token.address() != slot));
    });
}

#[test]
fn a_request_that_is_dropped_leaves_its_slot_to_the_peer() {
    each(2, |communicator| {
        let connection = connect(&communicator, other(&communicator));
        if communicator.rank() == Rank(0) {
            drop(communicator.build_semaphore(&connection, Tag(1)).unwrap());
            assert_eq!(communicator.lent_slots(), 1);
            communicator.barrier().unwrap();
            communicator.barrier().unwrap();
            assert_eq!(communicator.lent_slots(), 0);
        } else {
            communicator.barrier().unwrap();
            drop(semaphore(&communicator, &connection, 1));
            communicator.barrier().unwrap();
        }
    });
}
