//! Semaphores.

use loom::thread;

use warpwire_device::abi::{ChannelId, Rank, WaitError, WaitKind, WaitSite};
use warpwire_device::semaphore::{Inbound, Outbound, Semaphore};

use super::memory::{Endless, Looks, PREEMPTIONS, Payload, Token, check, check_counting};

/// The count before the one that carries into the upper half.
const CARRY: u64 = u32::MAX as u64;

const SITE: WaitSite = WaitSite { kind: WaitKind::Semaphore, peer: Rank(1), channel: ChannelId(0) };

/// The two sides of a semaphore whose words stand at `start`.
fn semaphore(start: u64) -> (Outbound<Token>, Inbound<Token>, [Token; 2]) {
    let (token, expected) = (Token::new(start), Token::new(start));
    (Outbound::over(token), Inbound::over(token, expected, SITE), [token, expected])
}

#[test]
fn a_signal_publishes_what_was_written_before() {
    check(|| {
        let (outbound, inbound, _) = semaphore(0);
        let payload = Payload::new();
        let signaller = thread::spawn(move || {
            payload.write(7);
            outbound.signal();
        });
        inbound.wait(Endless).unwrap();
        assert_eq!(payload.read(), 7);
        signaller.join().unwrap();
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_signal_does_not() {
    check(|| {
        let (outbound, inbound, _) = semaphore(0);
        let payload = Payload::new();
        thread::spawn(move || {
            payload.write(7);
            outbound.signal_relaxed();
        });
        inbound.wait(Endless).unwrap();
        payload.read();
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_wait_does_not_see() {
    check(|| {
        let (outbound, inbound, _) = semaphore(0);
        let payload = Payload::new();
        thread::spawn(move || {
            payload.write(7);
            outbound.signal();
        });
        inbound.wait_relaxed(Endless).unwrap();
        payload.read();
    });
}

#[test]
fn the_relaxed_forms_count() {
    check(|| {
        let (outbound, inbound, [token, expected]) = semaphore(0);
        let signaller = thread::spawn(move || {
            outbound.signal_relaxed();
            outbound.signal_relaxed();
        });
        inbound.wait_relaxed(Endless).unwrap();
        inbound.wait_relaxed(Endless).unwrap();
        assert_eq!((token.last(), expected.last()), (2, 2));
        signaller.join().unwrap();
    });
}

#[test]
fn counters_carry_into_the_upper_half() {
    check(|| {
        let (outbound, inbound, [token, expected]) = semaphore(CARRY);
        let payload = Payload::new();
        let signaller = thread::spawn(move || {
            outbound.signal();
            payload.write(7);
            outbound.signal();
        });
        inbound.wait(Endless).unwrap();
        inbound.wait(Endless).unwrap();
        assert_eq!(payload.read(), 7);
        assert_eq!((token.last(), expected.last()), (CARRY + 2, CARRY + 2));
        signaller.join().unwrap();
    });
}

/// Neither at a carry nor where a signed number would be negative does a wait end that has no signal.
#[test]
fn a_high_counter_does_not_end_a_wait_too_early() {
    for start in [CARRY, i64::MAX as u64, u64::MAX - 1] {
        check(move || {
            let (outbound, inbound, [_, expected]) = semaphore(start);
            assert_eq!(inbound.wait(Looks(1)), Err(WaitError::Timeout));
            assert_eq!(expected.last(), start);
            outbound.signal();
            assert_eq!(inbound.wait(Looks(1)), Ok(()));
            assert_eq!(inbound.wait(Looks(1)), Err(WaitError::Timeout));
            assert_eq!(expected.last(), start + 1);
        });
    }
}

#[test]
fn two_signallers_and_one_waiter() {
    check(|| {
        let (outbound, inbound, _) = semaphore(0);
        let payloads = [Payload::new(), Payload::new()];
        let signallers = [0, 1].map(|i| {
            thread::spawn(move || {
                payloads[i].write(i as u64 + 10);
                outbound.signal();
            })
        });
        // Each signal publishes its own writer's payload; after as many waits as signals, all are visible.
        inbound.wait(Endless).unwrap();
        inbound.wait(Endless).unwrap();
        assert_eq!([payloads[0].read(), payloads[1].read()], [10, 11]);
        for signaller in signallers {
            signaller.join().unwrap();
        }
    });
}

#[test]
fn two_waiters_each_take_one_signal() {
    let complete = check_counting(PREEMPTIONS, || {
        let (outbound, inbound, [_, expected]) = semaphore(0);
        let payload = Payload::new();
        let waiters = [0, 1].map(|_| {
            thread::spawn(move || {
                let waited = inbound.wait_shared(Looks(3));
                if waited.is_ok() {
                    assert_eq!(payload.read(), 7);
                }
                u64::from(waited.is_ok())
            })
        });
        payload.write(7);
        outbound.signal();
        outbound.signal();
        let taken: u64 = waiters.into_iter().map(|waiter| waiter.join().unwrap()).sum();
        assert_eq!(expected.last(), taken);
        for _ in taken..2 {
            assert_eq!(inbound.wait_shared(Looks(1)), Ok(()), "a signal was lost");
        }
        assert_eq!(inbound.wait_shared(Looks(1)), Err(WaitError::Timeout), "a third signal from nowhere");
        taken == 2
    });
    assert!(complete > 0);
}

/// The peer comes up only when this side has given up once, or before, or in between: nothing is lost.
#[test]
fn a_late_peer_is_still_heard() {
    check(|| {
        let (outbound, inbound, [token, expected]) = semaphore(0);
        let payload = Payload::new();
        let peer = thread::spawn(move || {
            payload.write(7);
            outbound.signal();
        });
        // A failed wait has consumed nothing: the next one waits for the same signal.
        if inbound.wait(Looks(1)).is_err() {
            assert_eq!(expected.last(), 0);
            inbound.wait(Endless).unwrap();
        }
        assert_eq!(payload.read(), 7);
        peer.join().unwrap();
        assert_eq!((token.last(), expected.last()), (1, 1));
    });
}

/// One waiter gives up while another waits: the signal goes to the one that stays.
#[test]
fn a_waiter_that_gives_up_leaves_the_signal_to_the_others() {
    check(|| {
        let (outbound, inbound, [_, expected]) = semaphore(0);
        let hasty = thread::spawn(move || inbound.wait_shared(Looks(1)).is_ok());
        outbound.signal();
        let took = hasty.join().unwrap();
        if !took {
            inbound.wait_shared(Endless).unwrap();
        }
        assert_eq!(expected.last(), 1);
    });
}

#[test]
fn poll_takes_a_signal_once_and_publishes() {
    check(|| {
        let (outbound, inbound, [_, expected]) = semaphore(CARRY);
        let payload = Payload::new();
        let signaller = thread::spawn(move || {
            payload.write(7);
            outbound.signal();
        });
        while !inbound.poll() {
            assert_eq!(expected.last(), CARRY, "a vain poll consumed something");
            thread::yield_now();
        }
        assert_eq!(payload.read(), 7);
        assert!(!inbound.poll(), "one signal was taken twice");
        assert_eq!(expected.last(), CARRY + 1);
        signaller.join().unwrap();
    });
}

#[test]
fn ping_pong() {
    check(|| {
        let (to_b, at_b, _) = semaphore(CARRY);
        let (to_a, at_a, _) = semaphore(0);
        let (a, b) = (Semaphore::over(at_a, to_b), Semaphore::over(at_b, to_a));
        let payload = Payload::new();
        let end = thread::spawn(move || {
            for _ in 0..2 {
                b.wait(Endless).unwrap();
                payload.write(payload.read() + 1);
                b.signal();
            }
        });
        for round in 0..2 {
            payload.write(10 * round);
            a.signal();
            a.wait(Endless).unwrap();
            assert_eq!(payload.read(), 10 * round + 1);
        }
        end.join().unwrap();
    });
}
