use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

const PEER: Rank = Rank(1);
const OTHER: Rank = Rank(2);
const HERE: Address = Address { lane: Lane::Direct, context: 0, tag: 5 };
const LONG: Duration = Duration::from_secs(60);

fn mailbox() -> Mailbox {
    Mailbox::new(3, Limits::default(), Box::new(|_| ()))
}

fn claim(mailbox: &Mailbox) -> Arc<Slot> {
    mailbox.claim(PEER, HERE, &Arc::from([]))
}

fn soon(slot: &Slot) -> Option<Outcome> {
    slot.wait(Instant::now())
}

fn bytes(slot: &Slot) -> Vec<u8> {
    soon(slot).expect("an outcome").expect("a message")
}

fn streams(mailbox: &Mailbox) -> usize {
    mailbox.state.with(|state| state.streams.len())
}

fn loss(rank: Rank, departure: Departure) -> Loss {
    Loss { rank, departure, detail: "a test".to_owned() }
}

#[test]
fn claims_are_served_in_order_whichever_is_asked_first() {
    let mailbox = mailbox();
    let (first, second) = (claim(&mailbox), claim(&mailbox));
    mailbox.deliver(PEER, HERE, b"X".to_vec());
    mailbox.deliver(PEER, HERE, b"Y".to_vec());
    assert_eq!(bytes(&second), b"Y");
    assert_eq!(bytes(&first), b"X");
    assert_eq!(streams(&mailbox), 0, "nothing is kept");
}

#[test]
fn an_abandoned_claim_takes_its_message_with_it() {
    let mailbox = mailbox();
    let (first, second) = (claim(&mailbox), claim(&mailbox));
    first.abandon();
    mailbox.deliver(PEER, HERE, b"X".to_vec());
    assert!(soon(&second).is_none());
    mailbox.deliver(PEER, HERE, b"Y".to_vec());
    assert_eq!(bytes(&second), b"Y");
    assert_eq!(streams(&mailbox), 0);
}

#[test]
fn a_withdrawn_claim_was_never_made() {
    let mailbox = mailbox();
    let (first, second) = (claim(&mailbox), claim(&mailbox));
    assert!(mailbox.withdraw(HERE, &first));
    assert!(!mailbox.withdraw(HERE, &first));
    mailbox.deliver(PEER, HERE, b"X".to_vec());
    assert_eq!(bytes(&second), b"X");
    assert!(!mailbox.withdraw(HERE, &second), "it was served");
}

#[test]
fn senders_tags_contexts_and_lanes_are_told_apart() {
    let mailbox = mailbox();
    let addresses = [
        HERE,
        Address { tag: 6, ..HERE },
        Address { context: 1, ..HERE },
        Address { lane: Lane::Collective, ..HERE },
    ];
    let none = Arc::from([]);
    let mut sent = 0u8..;
    for from in [PEER, OTHER] {
        for address in addresses {
            mailbox.deliver(from, address, vec![sent.next().unwrap()]);
        }
    }
    let mut expected = 0u8..;
    for from in [PEER, OTHER] {
        for address in addresses {
            assert_eq!(bytes(&mailbox.claim(from, address, &none)), [expected.next().unwrap()]);
        }
    }
}

#[test]
fn what_was_sent_before_a_departure_can_be_received() {
    let mailbox = mailbox();
    mailbox.deliver(PEER, HERE, b"last words".to_vec());
    mailbox.depart(&loss(PEER, Departure::Left));
    assert_eq!(bytes(&claim(&mailbox)), b"last words");
    let outcome = soon(&claim(&mailbox)).unwrap();
    assert!(matches!(outcome, Err(Failure::Lost(Loss { rank: PEER, departure: Departure::Left, .. }))));
    assert_eq!(streams(&mailbox), 0);
}

#[test]
fn a_departure_ends_the_claims_on_that_rank_alone() {
    let mailbox = mailbox();
    let on_peer = claim(&mailbox);
    let on_other = mailbox.claim(OTHER, HERE, &Arc::from([]));
    mailbox.depart(&loss(PEER, Departure::Lost));
    assert!(matches!(soon(&on_peer), Some(Err(Failure::Lost(_)))));
    assert!(soon(&on_other).is_none());
}

#[test]
fn the_loss_of_a_watched_rank_ends_a_claim_on_another() {
    let mailbox = mailbox();
    let watched: Arc<[Rank]> = Arc::from([PEER, OTHER]);
    let before = mailbox.claim(OTHER, HERE, &watched);
    mailbox.depart(&loss(PEER, Departure::Lost));
    let after = mailbox.claim(OTHER, Address { tag: 9, ..HERE }, &watched);
    for slot in [before, after] {
        let outcome = slot.wait(Instant::now() + LONG).expect("long before the deadline");
        assert!(matches!(outcome, Err(Failure::Lost(Loss { rank: PEER, .. }))));
    }
}

#[test]
fn one_that_left_in_order_dooms_nobody() {
    let mailbox = mailbox();
    let slot = mailbox.claim(OTHER, HERE, &Arc::from([PEER, OTHER]));
    mailbox.depart(&loss(PEER, Departure::Left));
    assert!(slot.wait(Instant::now() + Duration::from_millis(1500)).is_none());
    mailbox.deliver(OTHER, HERE, b"late".to_vec());
    assert_eq!(bytes(&slot), b"late");
}

#[test]
fn abort_ends_everything() {
    let mailbox = mailbox();
    let pending = claim(&mailbox);
    mailbox.deliver(OTHER, HERE, vec![0; 100]);
    mailbox.abort();
    assert!(matches!(soon(&pending), Some(Err(Failure::Aborted))));
    assert!(matches!(soon(&claim(&mailbox)), Some(Err(Failure::Aborted))));
    assert_eq!(streams(&mailbox), 0);
}

#[test]
fn room_ends_at_the_limit_and_comes_back() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    let limits = Limits { idle_bytes: 1000, waiting_bytes: 2000 };
    let told = |rank| {
        assert_eq!(rank, PEER);
        TOLD.fetch_add(1, Ordering::Relaxed);
    };
    let mailbox = Mailbox::new(3, limits, Box::new(told));
    let message = || vec![0; 500 - OVERHEAD_BYTES];
    assert!(mailbox.deliver(PEER, HERE, message()));
    assert!(!mailbox.deliver(PEER, HERE, message()), "the limit is reached");
    assert!(mailbox.deliver(OTHER, HERE, message()), "another rank has room of its own");

    // Somebody waits for another tag: what it waits for may come behind.
    let waiting = mailbox.claim(PEER, Address { tag: 9, ..HERE }, &Arc::from([]));
    assert_eq!(TOLD.load(Ordering::Relaxed), 1);
    assert!(mailbox.deliver(PEER, HERE, message()));
    assert!(!mailbox.deliver(PEER, HERE, message()), "that has a limit too");
    bytes(&claim(&mailbox));
    assert_eq!(TOLD.load(Ordering::Relaxed), 2);
    assert!(soon(&waiting).is_none());
}

#[test]
fn a_sender_of_this_process_waits_for_room() {
    let limits = Limits { idle_bytes: 100, waiting_bytes: 200 };
    let mailbox = Mailbox::new(3, limits, Box::new(|_| ()));
    let send = |given| mailbox.deliver_within(PEER, HERE, &[0; 60], Deadline::after(given));
    assert!(send(LONG).is_some());
    assert!(send(Duration::from_millis(20)).is_none(), "there is no room");
    thread::scope(|scope| {
        let sender = scope.spawn(|| send(LONG));
        bytes(&claim(&mailbox));
        assert!(sender.join().unwrap().is_some());
    });
}
