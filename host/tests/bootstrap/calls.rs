//! Every call, where all goes well.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};
use std::thread;
use std::time::Duration;

use warpwire::Error;
use warpwire::abi::Rank;
use warpwire::bootstrap::{Bootstrap, Colour, DomainId, HostId, LocalBootstrap, Tag};
use warpwire::error::BootstrapError;

use crate::jobs::{LONG, both, each, failure, local, options, tcp, tcp_with};

#[test]
fn everybody_gathers_everybodys_bytes() {
    for size in [1, 2, 3, 5, 8] {
        for job in both(size) {
            // Lengths differ, one is empty.
            let bytes = |rank: usize| vec![rank as u8; rank * 7];
            let expected: Vec<Vec<u8>> = (0..size).map(bytes).collect();
            for gathered in each(job, |rank| rank.all_gather(&bytes(rank.rank().0 as usize)).unwrap()) {
                assert_eq!(gathered, expected, "of {size}");
            }
        }
    }
}

#[test]
fn any_rank_can_broadcast() {
    for job in both(5) {
        each(job, |rank| {
            for root in 0..5 {
                let own = [rank.rank().0 as u8; 3];
                assert_eq!(rank.broadcast(Rank(root), &own).unwrap(), [root as u8; 3]);
            }
        });
    }
}

#[test]
fn a_barrier_holds_until_everybody_is_there() {
    for job in both(5) {
        let arrived = AtomicUsize::new(0);
        each(job, |rank| {
            for round in 1..=20 {
                arrived.fetch_add(1, Ordering::SeqCst);
                rank.barrier().unwrap();
                assert!(arrived.load(Ordering::SeqCst) >= 5 * round);
                rank.barrier().unwrap();
            }
        });
    }
}

#[test]
fn groups_that_overlap_do_not_meet() {
    for job in both(3) {
        each(job, |rank| {
            let own = rank.rank();
            let pair = [Rank(2), Rank(0)];
            if own == Rank(1) {
                // It comes to the barrier of all only once the pair has passed its own.
                rank.recv(Rank(0), Tag(1)).unwrap();
                rank.recv(Rank(2), Tag(1)).unwrap();
                rank.barrier().unwrap();
                return;
            }
            thread::scope(|scope| {
                let all = scope.spawn(|| rank.barrier());
                rank.group_barrier(&pair).unwrap();
                assert!(!all.is_finished(), "rank 1 has not come");
                rank.send(Rank(1), Tag(1), b"passed").unwrap();
                all.join().unwrap().unwrap();
            });
        });
    }
}

#[test]
fn lists_that_are_no_group_are_refused() {
    let [first, _second]: [_; 2] = local(2).try_into().unwrap();
    for (ranks, part) in [(&[1][..], "not in it"), (&[0, 1, 0], "twice"), (&[], "not in it")] {
        let ranks: Vec<Rank> = ranks.iter().copied().map(Rank).collect();
        let error = failure(first.group_barrier(&ranks)).to_string();
        assert!(error.contains(part), "{error}");
    }
    let outside = first.group_barrier(&[Rank(0), Rank(2)]);
    assert!(matches!(outside, Err(Error::NoSuchRank { rank: Rank(2), ranks: 2 })));
    assert!(matches!(first.send(Rank(9), Tag(0), b""), Err(Error::NoSuchRank { .. })));
    assert!(matches!(first.recv(Rank(9), Tag(0)), Err(Error::NoSuchRank { .. })));
    assert!(matches!(first.broadcast(Rank(9), b""), Err(Error::NoSuchRank { .. })));
}

#[test]
fn messages_are_matched_by_peer_and_tag_in_order() {
    for job in both(3) {
        each(job, |rank| {
            let (own, size) = (rank.rank().0, rank.size() as u32);
            // To itself too.
            for peer in (0..size).map(Rank) {
                for round in 0..10u8 {
                    for tag in 0..4 {
                        rank.send(peer, Tag(tag), &[own as u8, tag as u8, round]).unwrap();
                    }
                }
            }
            for tag in (0..4).rev() {
                for peer in (0..size).rev() {
                    for round in 0..10 {
                        let expected = [peer as u8, tag as u8, round];
                        assert_eq!(rank.recv(Rank(peer), Tag(tag)).unwrap(), expected);
                    }
                }
            }
        });
    }
}

#[test]
fn threads_of_a_rank_do_not_disturb_each_other() {
    const THREADS: u64 = 8;
    for job in both(2) {
        each(job, |rank| {
            let peer = Rank(1 - rank.rank().0);
            let rank = &rank;
            thread::scope(|scope| {
                for tag in (0..THREADS).map(Tag) {
                    scope.spawn(move || {
                        for round in 0..200u64 {
                            rank.send(peer, tag, &(round * THREADS + tag.0).to_le_bytes()).unwrap();
                            let bytes = rank.recv(peer, tag).unwrap();
                            assert_eq!(bytes, (round * THREADS + tag.0).to_le_bytes());
                        }
                    });
                }
            });
        });
    }
}

#[test]
fn long_messages_arrive_whole() {
    for job in both(2) {
        each(job, |rank| {
            let message: Vec<u8> = (0..9_000_001u32).map(|index| (index % 251) as u8).collect();
            let peer = Rank(1 - rank.rank().0);
            if rank.rank() == Rank(0) {
                rank.send(peer, Tag(0), &message).unwrap();
                rank.send(peer, Tag(0), b"short").unwrap();
            } else {
                assert!(rank.recv(peer, Tag(0)).unwrap() == message);
                assert_eq!(rank.recv(peer, Tag(0)).unwrap(), b"short");
            }
        });
    }
    let [rank]: [_; 1] = local(1).try_into().unwrap();
    let too_long = vec![0; warpwire::bootstrap::MAX_MESSAGE_BYTES + 1];
    for outcome in [rank.send(Rank(0), Tag(0), &too_long), rank.all_gather(&too_long).map(drop)] {
        assert!(matches!(failure(outcome), BootstrapError::MessageTooLong { .. }));
    }
}

#[test]
fn a_message_that_comes_after_the_time_goes_to_the_next_call() {
    for job in both(2) {
        each(job, |rank| {
            if rank.rank() == Rank(0) {
                let error = failure(rank.recv_within(Rank(1), Tag(5), Duration::from_millis(50)));
                assert!(matches!(error, BootstrapError::Timeout { rank: Rank(1), .. }), "{error}");
                rank.send(Rank(1), Tag(0), b"now").unwrap();
                assert_eq!(rank.recv(Rank(1), Tag(5)).unwrap(), b"late");
            } else {
                rank.recv(Rank(0), Tag(0)).unwrap();
                rank.send(Rank(0), Tag(5), b"late").unwrap();
            }
        });
    }
}

#[test]
fn claims_are_served_in_order() {
    for job in both(2) {
        each(job, |rank| {
            if rank.rank() == Rank(0) {
                let claim = || rank.post_recv(Rank(1), Tag(3)).unwrap();
                let (mut first, dropped, mut third) = (claim(), claim(), claim());
                assert_eq!(third.wait(Duration::from_millis(10)).unwrap(), None, "nothing was sent");
                drop(dropped);
                rank.send(Rank(1), Tag(0), b"go").unwrap();
                assert_eq!(third.wait(LONG).unwrap().as_deref(), Some(&b"Z"[..]));
                assert_eq!(first.wait(LONG).unwrap().as_deref(), Some(&b"X"[..]));
                assert_eq!(first.wait(LONG).unwrap(), None, "it was served");
                assert_eq!(rank.recv(Rank(1), Tag(3)).unwrap(), b"after");
            } else {
                rank.recv(Rank(0), Tag(0)).unwrap();
                for message in [&b"X"[..], b"Y", b"Z", b"after"] {
                    rank.send(Rank(0), Tag(3), message).unwrap();
                }
            }
        });
    }
}

/// Unparks the thread that waits.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn claims_are_futures() {
    for job in both(2) {
        each(job, |rank| {
            let peer = Rank(1 - rank.rank().0);
            let mut pending = pin!(rank.post_recv(peer, Tag(8)).unwrap());
            let waker = Arc::new(Unpark(thread::current())).into();
            let mut context = Context::from_waker(&waker);
            // Rank 1 answers: until rank 0 has sent, nothing can have come.
            let begins = rank.rank() == Rank(0);
            if begins {
                assert!(pending.as_mut().poll(&mut context).is_pending());
                rank.send(peer, Tag(8), b"polled").unwrap();
            }
            loop {
                match pending.as_mut().poll(&mut context) {
                    Poll::Ready(bytes) => break assert_eq!(bytes.unwrap(), b"polled"),
                    Poll::Pending => thread::park(),
                }
            }
            if !begins {
                rank.send(peer, Tag(8), b"polled").unwrap();
            }
        });
    }
}

#[test]
fn splitting_makes_groups_of_their_own() {
    for job in both(7) {
        each(job, |rank| {
            let own = rank.rank().0;
            // Rank 6 has no colour; keys reverse the order.
            let colour = (own != 6).then_some(Colour(own % 2));
            let part = rank.split(colour, -i64::from(own)).unwrap();
            let Some(part) = part else { return assert_eq!(own, 6) };
            assert_eq!(part.size(), 3);
            assert_eq!(part.rank().0, (4 + own % 2 - own) / 2);
            let gathered = part.all_gather(&[own as u8]).unwrap();
            let expected: Vec<Vec<u8>> = [4, 2, 0].map(|rank| vec![rank + own as u8 % 2]).to_vec();
            assert_eq!(gathered, expected);

            // A message of the part is none of the whole, nor of another part.
            let next = Rank((part.rank().0 + 1) % 3);
            let before = Rank((part.rank().0 + 2) % 3);
            let next_in_whole = Rank(u32::from(gathered[next.0 as usize][0]));
            rank.send(next_in_whole, Tag(1), b"whole").unwrap();
            part.send(next, Tag(1), b"part").unwrap();
            let twin = part.split(Some(Colour(0)), 0).unwrap().unwrap();
            twin.send(next, Tag(1), b"twin").unwrap();
            assert_eq!(twin.recv(before, Tag(1)).unwrap(), b"twin");
            assert_eq!(part.recv(before, Tag(1)).unwrap(), b"part");
            let before_in_whole = Rank(u32::from(gathered[before.0 as usize][0]));
            assert_eq!(rank.recv(before_in_whole, Tag(1)).unwrap(), b"whole");

            let alone = part.split(Some(Colour(part.rank().0)), 0).unwrap().unwrap();
            assert_eq!((alone.size(), alone.rank()), (1, Rank(0)));
            alone.barrier().unwrap();
            part.barrier().unwrap();
        });
    }
}

#[test]
fn ranks_in_different_calls_find_out() {
    for job in both(3) {
        let errors = each(job, |rank| match rank.rank().0 {
            0 => failure(rank.barrier()),
            _ => failure(rank.all_gather(b"x")),
        });
        for error in &errors {
            let text = error.to_string();
            assert!(matches!(error, BootstrapError::Mismatch { .. }), "{text}");
            assert!(text.contains("barrier") && text.contains("all_gather"), "{text}");
        }
    }
}

#[test]
fn a_group_is_broken_after_a_failed_call() {
    for job in both(2) {
        each(job, |rank| {
            let first = match rank.rank().0 {
                0 => failure(rank.barrier()),
                _ => failure(rank.all_gather(b"")),
            };
            let second = failure(rank.barrier());
            assert!(matches!(second, BootstrapError::Broken { .. }), "{first}, then {second}");
            // Messages still go.
            let peer = Rank(1 - rank.rank().0);
            rank.send(peer, Tag(0), b"still").unwrap();
            assert_eq!(rank.recv(peer, Tag(0)).unwrap(), b"still");
        });
    }
}

#[test]
fn all_ranks_agree_on_who_shares_a_host() {
    let hosts = ["A", "B", "A", "B", "A"].map(HostId::named);
    let jobs = [
        LocalBootstrap::on_hosts(&hosts).unwrap().start(),
        tcp_with(5, |rank| options().host_id(hosts[rank])),
    ];
    for job in jobs {
        let locals = each(job, |rank| {
            let topology = rank.topology();
            assert_eq!(topology.nodes(), [[0, 2, 4].map(Rank).to_vec(), [1, 3].map(Rank).to_vec()]);
            assert_eq!(topology.uniform(), None);
            assert_eq!(rank.host_id(), hosts[rank.rank().0 as usize]);
            // In a part, hosts are those of its own ranks.
            let part = rank.split(Some(Colour(rank.rank().0 / 3)), 0).unwrap().unwrap();
            let expected = if rank.rank().0 < 3 { [2, 1, 2][rank.rank().0 as usize] } else { 1 };
            assert_eq!(part.ranks_per_node(), expected);
            (rank.local_rank(), rank.ranks_per_node(), rank.ranks_per_ipc_domain())
        });
        assert_eq!(locals, [(0, 3, 3), (0, 2, 2), (1, 3, 3), (1, 2, 2), (2, 3, 3)]);
    }
    let fabric = DomainId::of_fabric([7; 16], 0).unwrap();
    let job = tcp_with(3, |rank| options().host_id(hosts[rank]).ipc_domain(fabric));
    let domains = each(job, |rank| (rank.ranks_per_node(), rank.ranks_per_ipc_domain()));
    assert_eq!(domains, [(2, 3), (1, 3), (2, 3)]);
}

#[test]
fn what_was_sent_arrives_though_the_sender_has_left() {
    let [first, second]: [_; 2] = tcp(2).try_into().unwrap();
    // It has something unreceived itself, which must not cost the other anything.
    second.send(Rank(0), Tag(9), &vec![1; 100_000]).unwrap();
    for round in 0..1000u32 {
        first.send(Rank(1), Tag(0), &round.to_le_bytes()).unwrap();
    }
    drop(first);
    for round in 0..1000u32 {
        assert_eq!(second.recv(Rank(0), Tag(0)).unwrap(), round.to_le_bytes());
    }
    let error = failure(second.recv(Rank(0), Tag(0)));
    assert!(error.to_string().contains("rank 0 has left the job"), "{error}");
}
