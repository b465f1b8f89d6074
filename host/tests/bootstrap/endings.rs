//! Ranks that go before they should.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use warpwire::ErrorKind;
use warpwire::abi::Rank;
use warpwire::bootstrap::{Group, HostId, LocalBootstrap, Tag};
use warpwire::error::{BootstrapError, Departure};

use crate::jobs::{LONG, blamed, both, each, failure, options, tcp_with};

/// Both kinds of job, with that time for each call.
fn both_within(size: usize, timeout: Duration) -> [Vec<Group>; 2] {
    let local = LocalBootstrap::on_hosts(&vec![HostId::named("here"); size]).unwrap().timeout(timeout);
    [local.start(), tcp_with(size, |_| options().timeout(timeout))]
}

#[test]
fn one_that_leaves_too_early_is_named_everywhere() {
    for job in both(6) {
        let errors = each(job, |rank| (rank.rank().0 != 5).then(|| failure(rank.barrier())));
        for error in errors.iter().flatten() {
            assert_eq!(blamed(error), Some(5), "{error}");
            assert_eq!(warpwire::Error::from(blank(error)).kind(), ErrorKind::PeerLost);
        }
    }
}

/// The same failure again, since errors are not copied.
fn blank(error: &BootstrapError) -> BootstrapError {
    let BootstrapError::PeerLost { rank, world, departure, .. } = error else { panic!("{error}") };
    BootstrapError::PeerLost {
        operation: "barrier",
        rank: *rank,
        world: *world,
        departure: *departure,
        detail: String::new(),
    }
}

#[test]
fn one_that_leaves_after_its_part_disturbs_nobody() {
    for job in both(8) {
        each(job, |rank| {
            // The root of the broadcast is gone long before the last has come.
            thread::sleep(Duration::from_millis(u64::from(rank.rank().0) * 150));
            assert_eq!(rank.broadcast(Rank(0), b"word").unwrap(), b"word");
        });
    }
}

/// It waits for its last messages to be read, not for the others to leave too.
#[test]
fn one_that_leaves_need_not_wait_for_those_who_stay() {
    for job in both(3) {
        let gone = AtomicUsize::new(0);
        each(job, |rank| {
            let own = rank.rank();
            rank.barrier().unwrap();
            let begun = Instant::now();
            if own == Rank(1) {
                drop(rank);
                // Where it waits for those who stay it gives up after 10 seconds.
                assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
                gone.fetch_add(1, Ordering::SeqCst);
                return;
            }
            while gone.load(Ordering::SeqCst) == 0 && begun.elapsed() < LONG {
                thread::sleep(Duration::from_millis(10));
            }
        });
    }
}

#[test]
fn a_rank_that_panics_counts_as_aborted() {
    for job in both(3) {
        let errors = each(job, |rank| {
            if rank.rank() == Rank(1) {
                let own = AssertUnwindSafe(rank);
                let _ = catch_unwind(move || {
                    let _own = own;
                    panic!("a test's");
                });
                return None;
            }
            Some([failure(rank.recv(Rank(1), Tag(0))), failure(rank.barrier())])
        });
        for error in errors.iter().flatten().flatten() {
            let aborted = matches!(
                error,
                BootstrapError::PeerLost { world: Rank(1), departure: Departure::Aborted, .. }
            );
            assert!(aborted, "{error}");
        }
    }
}

#[test]
fn abort_ends_everybodys_calls() {
    for job in both(4) {
        let start = Instant::now();
        let errors = each(job, |rank| {
            if rank.rank() != Rank(2) {
                return failure(rank.barrier());
            }
            let waiting = Arc::clone(&rank);
            thread::scope(|scope| {
                let pending = scope.spawn(move || waiting.recv(Rank(0), Tag(0)));
                thread::sleep(Duration::from_millis(50));
                rank.abort();
                rank.abort();
                let error = failure(pending.join().unwrap());
                assert!(matches!(failure(rank.barrier()), BootstrapError::Aborted { .. }));
                assert!(matches!(failure(rank.send(Rank(0), Tag(0), b"")), BootstrapError::Aborted { .. }));
                error
            })
        });
        for (rank, error) in errors.iter().enumerate() {
            match rank {
                2 => assert!(matches!(error, BootstrapError::Aborted { .. }), "{error}"),
                _ => assert_eq!(blamed(error), Some(2), "{error}"),
            }
        }
        assert!(start.elapsed() < LONG, "long before the deadline");
    }
}

#[test]
fn a_call_ends_by_its_deadline() {
    // Long enough for the job to start.
    let timeout = Duration::from_secs(3);
    for job in both_within(3, timeout) {
        let done = AtomicUsize::new(0);
        let errors = each(job, |rank| {
            if rank.rank() == Rank(1) {
                // Neither there nor gone, until the others have seen it.
                let begun = Instant::now();
                while done.load(Ordering::SeqCst) < 2 && begun.elapsed() < LONG {
                    thread::sleep(Duration::from_millis(10));
                }
                return None;
            }
            let start = Instant::now();
            let errors = [failure(rank.recv(Rank(1), Tag(0))), failure(rank.barrier())];
            assert!(start.elapsed() >= timeout);
            done.fetch_add(1, Ordering::SeqCst);
            Some(errors)
        });
        for error in errors.iter().flatten().flatten() {
            assert!(matches!(error, BootstrapError::Timeout { world: Rank(1), .. }), "{error}");
        }
    }
}

#[test]
fn a_receiver_that_receives_nothing_holds_up_its_sender_alone() {
    let job = tcp_with(3, |_| options());
    each(job, |rank| {
        if rank.rank() == Rank(0) {
            let message = vec![0; 1 << 20];
            let mut sent = 0;
            let error = loop {
                match rank.send_within(Rank(1), Tag(0), &message, Duration::from_secs(5)) {
                    Ok(()) => sent += 1,
                    outcome => break failure(outcome),
                }
                assert!(sent < 200, "there is no end to it");
            };
            assert!(matches!(error, BootstrapError::Timeout { rank: Rank(1), .. }), "{error}");
            assert!(sent >= 16, "{sent} MiB have room");
            // Others are reached as before.
            rank.send(Rank(2), Tag(0), b"hello").unwrap();
            rank.send(Rank(2), Tag(0), &[sent as u8]).unwrap();
            rank.recv(Rank(1), Tag(1)).unwrap();
        } else if rank.rank() == Rank(2) {
            assert_eq!(rank.recv(Rank(0), Tag(0)).unwrap(), b"hello");
            let sent = rank.recv(Rank(0), Tag(0)).unwrap();
            rank.send(Rank(1), Tag(0), &sent).unwrap();
        } else {
            let sent = rank.recv(Rank(2), Tag(0)).unwrap()[0];
            for _ in 0..sent {
                assert_eq!(rank.recv(Rank(0), Tag(0)).unwrap().len(), 1 << 20);
            }
            rank.send(Rank(0), Tag(1), b"all").unwrap();
        }
    });
}

#[test]
fn what_is_waited_for_is_found_behind_what_nobody_asks_for() {
    let job = tcp_with(2, |_| options());
    each(job, |rank| {
        if rank.rank() == Rank(0) {
            for _ in 0..40 {
                rank.send(Rank(1), Tag(0), &vec![0; 1 << 20]).unwrap();
            }
            rank.send(Rank(1), Tag(1), b"wanted").unwrap();
            rank.recv(Rank(1), Tag(2)).unwrap();
        } else {
            assert_eq!(rank.recv(Rank(0), Tag(1)).unwrap(), b"wanted");
            rank.send(Rank(0), Tag(2), b"found").unwrap();
        }
    });
}
