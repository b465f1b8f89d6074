//! What ranks tell each other: order, waiting, and what they must not say.

use std::fs;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use warpwire::abi::Rank;
use warpwire::bootstrap::{Colour, Tag};
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::LaunchConfig;
use warpwire::error::{CommunicatorError, ConnectionError};
use warpwire::memory::{RegisteredMemory, Transports};
use warpwire::{Error, ErrorKind, MemoryError};

use crate::jobs::{
    LONG, cause, connect, connection_failure, cpu, each, failure, on_hosts, other, with_bootstraps,
};

/// Memory of `words` 8-byte words that each hold `value`.
fn memory(communicator: &Communicator, words: usize, value: u64) -> RegisteredMemory {
    let buffer = communicator.device().allocate_shareable(words).unwrap();
    buffer.write(&vec![value; words]).unwrap();
    communicator.register_memory(&buffer, Transports::CUDA_IPC).unwrap()
}

/// Runs a future in this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// C70: r1 and r2 are asked for in the other order, and one that is dropped gives nothing to the next.
#[test]
fn results_come_in_the_order_of_the_calls() {
    each(2, |communicator| {
        let peer = other(&communicator);
        if communicator.rank() == Rank(0) {
            let receive = || communicator.recv_memory(peer, Tag(5)).unwrap();
            let (mut first, mut second, dropped, mut fourth) = (receive(), receive(), receive(), receive());
            let mut elsewhere = communicator.recv_memory(peer, Tag(6)).unwrap();
            assert!(!first.is_ready() && !fourth.is_ready());
            drop(dropped);
            communicator.barrier().unwrap();
            let last = elsewhere.wait(LONG).unwrap();
            assert_eq!(last.bytes(), 8 * 100);
            assert!(fourth.is_ready() && fourth.is_ready());
            let lengths =
                [&mut fourth, &mut second, &mut first].map(|pending| pending.wait(LONG).unwrap().bytes());
            assert_eq!(lengths, [8 * 4, 8 * 2, 8]);
            // A result is given once.
            assert!(matches!(
                failure(first.wait(LONG)),
                CommunicatorError::Taken { peer: Rank(1), tag: 5, .. }
            ));
            assert!(!first.is_ready());
        } else {
            communicator.barrier().unwrap();
            let kept: Vec<_> = [1, 2, 3, 4].map(|words| memory(&communicator, words, 0)).into();
            kept.iter().for_each(|memory| communicator.send_memory(memory, peer, Tag(5)).unwrap());
            communicator.send_memory(&memory(&communicator, 100, 0), peer, Tag(6)).unwrap();
            communicator.barrier().unwrap();
            return;
        }
        communicator.barrier().unwrap();
    });
}

#[test]
fn results_can_be_awaited() {
    each(2, |communicator| {
        let peer = other(&communicator);
        let connecting = communicator.connect(EndpointConfig::CudaIpc, peer, Tag(1)).unwrap();
        let receiving = communicator.recv_memory(peer, Tag(2)).unwrap();
        let own = memory(&communicator, 3, 7);
        communicator.send_memory(&own, peer, Tag(2)).unwrap();
        let (connection, memory) = block_on(async { (connecting.await.unwrap(), receiving.await.unwrap()) });
        assert_eq!((connection.peer(), memory.bytes()), (peer, 24));
        let building = communicator.build_semaphore(&connection, Tag(3)).unwrap();
        assert_eq!(block_on(building).unwrap().peer(), peer);
        communicator.barrier().unwrap();
    });
}

/// Memory, in KiB, that this process has.
fn resident_kib() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4
}

/// 100,000 receives on one tag: in order, and nothing is kept.
#[test]
fn many_receives_on_one_tag_leave_nothing_behind() {
    const RECEIVES: u64 = 100_000;
    const AT_ONCE: u64 = 50;
    each(2, |communicator| {
        let peer = other(&communicator);
        if communicator.rank() == Rank(0) {
            // A memory of its own for every remainder, so that an order that is wrong shows.
            let own: Vec<_> = (1..=7).map(|words| memory(&communicator, words, 0)).collect();
            for at in 0..RECEIVES {
                communicator.send_memory(&own[(at % 7) as usize], peer, Tag(1)).unwrap();
                if at % AT_ONCE == AT_ONCE - 1 {
                    communicator.recv_memory(peer, Tag(2)).unwrap().wait(LONG).unwrap();
                }
            }
            communicator.barrier().unwrap();
            return;
        }
        let own = memory(&communicator, 1, 0);
        let mut before = 0;
        for round in 0..RECEIVES / AT_ONCE {
            let pending: Vec<_> =
                (0..AT_ONCE).map(|_| communicator.recv_memory(peer, Tag(1)).unwrap()).collect();
            // Asked for from behind.
            for (at, mut pending) in pending.into_iter().enumerate().rev() {
                let bytes = pending.wait(LONG).unwrap().bytes();
                assert_eq!(bytes, 8 * ((round * AT_ONCE + at as u64) % 7 + 1));
            }
            communicator.send_memory(&own, peer, Tag(2)).unwrap();
            if round == 200 {
                before = resident_kib();
            }
        }
        let grown = resident_kib().saturating_sub(before);
        // 90,000 receives later: a few bytes kept for each would be more.
        assert!(grown < 8 << 10, "{grown} KiB more than after the first tenth");
        communicator.barrier().unwrap();
    });
}

#[test]
fn a_tag_used_for_two_things_is_an_error_on_both_ranks() {
    each(2, |communicator| {
        let peer = other(&communicator);
        let outcome = if communicator.rank() == Rank(0) {
            communicator.send_memory(&memory(&communicator, 1, 0), peer, Tag(4)).unwrap();
            cause(communicator.recv_memory(peer, Tag(4)).unwrap().wait(LONG))
        } else {
            cause(communicator.connect(EndpointConfig::CudaIpc, peer, Tag(4)).unwrap().wait(LONG))
        };
        let text = outcome.to_string();
        assert!(matches!(outcome, Error::Communicator(CommunicatorError::TagMisused { .. })), "{text}");
        assert!(text.contains("an end of a connection") && text.contains("registered memory"), "{text}");
        assert!(text.contains(&format!("rank {} sent", peer.0)), "{text}");
        communicator.barrier().unwrap();
    });
}

/// The user's messages on the bootstrap and those of two communicators over it never meet, whatever the tags.
#[test]
fn tags_are_the_users_own() {
    with_bootstraps(&["here"; 2], |bootstrap| {
        let device = cpu();
        let [a, b] = [(); 2].map(|()| Communicator::new(Arc::clone(&bootstrap), &device).unwrap());
        let peer = other(&a);
        bootstrap.send(peer, Tag(0), b"mine").unwrap();
        a.send_memory(&memory(&a, 1, 0), peer, Tag(0)).unwrap();
        let kept = memory(&b, 2, 0);
        b.send_memory(&kept, peer, Tag(0)).unwrap();
        b.send_memory(&kept, peer, Tag(u64::MAX)).unwrap();
        assert_eq!(b.recv_memory(peer, Tag(0)).unwrap().wait(LONG).unwrap().bytes(), 16);
        assert_eq!(bootstrap.recv(peer, Tag(0)).unwrap(), b"mine");
        assert_eq!(b.recv_memory(peer, Tag(u64::MAX)).unwrap().wait(LONG).unwrap().bytes(), 16);
        b.barrier().unwrap();
    });
}

#[test]
fn a_rank_that_does_not_come_is_named_and_the_request_stands() {
    each(2, |communicator| {
        let peer = other(&communicator);
        if communicator.rank() == Rank(0) {
            let mut pending = communicator.recv_memory(peer, Tag(9)).unwrap();
            let begun = Instant::now();
            let error = failure(pending.wait(Duration::from_millis(50)));
            assert!(begun.elapsed() >= Duration::from_millis(50));
            let text = error.to_string();
            assert!(matches!(error, CommunicatorError::Timeout { peer: Rank(1), tag: 9, .. }), "{text}");
            assert!(text.contains("receiving memory with rank 1 on tag 9"), "{text}");
            communicator.barrier().unwrap();
            assert_eq!(pending.wait(LONG).unwrap().bytes(), 8);
        } else {
            communicator.barrier().unwrap();
            let kept = memory(&communicator, 1, 0);
            communicator.send_memory(&kept, peer, Tag(9)).unwrap();
            communicator.barrier().unwrap();
            return;
        }
        communicator.barrier().unwrap();
    });
}

#[test]
fn ranks_on_other_hosts_are_refused_by_name() {
    on_hosts(&["a", "b"], |communicator| {
        let peer = other(&communicator);
        let error = connection_failure(
            communicator.connect(EndpointConfig::CudaIpc, peer, Tag(1)).unwrap().wait(LONG),
        );
        let text = error.to_string();
        assert!(matches!(error, ConnectionError::Unreachable { .. }), "{text}");
        assert!(text.contains("choose Ethernet or InfiniBand"), "{text}");
        let hosts = [0, 1].map(|rank| communicator.site(Rank(rank)).unwrap().host);
        assert!(hosts.iter().all(|host| text.contains(&host.to_string())), "{text}");
        communicator.barrier().unwrap();
    });
}

/// C58: every rank gets the same typed error, with both values, before any kernel.
#[test]
fn values_that_differ_are_named_on_every_rank() {
    each(3, |communicator| {
        communicator.agree("the offset", 256).unwrap();
        let offset = if communicator.rank() == Rank(2) { 256 } else { 0 };
        let error = failure(communicator.agree("the offset", offset));
        let expected = "the offset has to be the same on all ranks: rank 0 gave 0 and rank 2 gave 256";
        assert_eq!(error.to_string(), expected);

        let words = if communicator.rank() == Rank(1) { 30 } else { 31 };
        let error =
            failure(communicator.all_gather_memory(&memory(&communicator, words, 0)).map(drop)).to_string();
        assert!(error.contains("rank 0 gave 248 and rank 1 gave 240"), "{error}");

        // And the group is none the worse for it.
        let own = memory(&communicator, 4, u64::from(communicator.rank().0));
        let all = communicator.all_gather_memory(&own).unwrap();
        assert_eq!(all.iter().map(RegisteredMemory::bytes).collect::<Vec<_>>(), [32; 3]);
        communicator.barrier().unwrap();
    });
}

/// C76: a rank of another version is named on every rank, with both numbers; also to the one that has it.
#[test]
fn ranks_of_two_versions_do_not_start() {
    let errors = with_bootstraps(&["here"; 3], |bootstrap| {
        if bootstrap.rank() != Rank(1) {
            return Some(failure(Communicator::new(bootstrap, &cpu())).to_string());
        }
        // What a rank of version 2 does as well: it greets in a group of its own.
        let group = bootstrap.split(Some(Colour(0)), 0).unwrap().unwrap();
        let _messages = group.split(Some(Colour(0)), 0).unwrap().unwrap();
        let all = group.all_gather(b"WWCX\x02\x00\x01\x00and something else").unwrap();
        assert_eq!(all[0][..8], *b"WWCX\x01\x00\x01\x00");
        None
    });
    for error in errors.into_iter().flatten() {
        assert!(
            error.contains("rank 1 speaks version 2") && error.contains("this rank version 1"),
            "{error}"
        );
    }
}

/// C57: what no rank has to do with another happens without the other.
#[test]
fn one_rank_alone_registers_memory() {
    each(2, |communicator| {
        if communicator.rank() == Rank(0) {
            let kept: Vec<_> = (1..50).map(|words| memory(&communicator, words, 1)).collect();
            assert_eq!(kept.len(), 49);
            communicator.context().stream().unwrap().synchronize().unwrap();
        }
        communicator.barrier().unwrap();
    });
}

#[test]
fn what_is_not_the_communicators_is_refused() {
    each(2, |communicator| {
        let nobody = Rank(2);
        for error in [
            communicator.recv_memory(nobody, Tag(0)).map(drop),
            communicator.connect(EndpointConfig::CudaIpc, nobody, Tag(0)).map(drop),
            communicator.send_memory(&memory(&communicator, 1, 0), nobody, Tag(0)),
        ] {
            let error = cause(error);
            assert!(matches!(error, Error::NoSuchRank { rank: Rank(2), ranks: 2 }), "{error}");
        }
        let foreign = cpu().allocate_shareable::<u8>(1).unwrap();
        let error = communicator.register_memory(&foreign, Transports::CUDA_IPC).unwrap_err();
        assert!(matches!(error, Error::ForeignObject { what: "buffer" }), "{error}");
        let private = communicator.device().allocate::<u8>(1).unwrap();
        let error = communicator.register_memory(&private, Transports::CUDA_IPC).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::NotShareable { .. })), "{error}");
        communicator.barrier().unwrap();
    });
}

/// C59: those who share a device are counted, and the launches of the other processes take none of this one's queues.
#[test]
fn ranks_that_share_a_device_are_counted() {
    let shared = cpu();
    let of_rank = |rank: Rank| if rank.0 < 3 { shared.clone() } else { cpu() };
    let counts = with_bootstraps(&["here"; 4], |bootstrap| {
        let device = of_rank(bootstrap.rank());
        let communicator = Communicator::new(bootstrap, &device).unwrap();
        let config = communicator.concurrent(LaunchConfig::new(2, 64));
        communicator.barrier().unwrap();
        (communicator.ranks_on_device(), config.concurrent, config.elsewhere)
    });
    assert_eq!(counts, [(3, 3, 0), (3, 3, 0), (3, 3, 0), (1, 1, 0)]);
    let sites = each(2, |communicator| {
        assert_eq!(communicator.ranks_on_device(), 1);
        communicator.site(Rank(0)).unwrap().clone()
    });
    assert_eq!(sites[0], sites[1]);
    assert_ne!(sites[0].device, shared.properties().uuid);
}

/// A job of one rank talks to itself.
#[test]
fn one_rank_is_a_group() {
    each(1, |communicator| {
        let connection = connect(&communicator, Rank(0));
        let [from, to] = [5u8, 6].map(|value| {
            let buffer = communicator.device().allocate_shareable(100).unwrap();
            buffer.write(&[value; 100]).unwrap();
            buffer
        });
        let [source, target] =
            [&from, &to].map(|buffer| communicator.register_memory(buffer, Transports::CUDA_IPC).unwrap());
        connection.write(&target, 1, &source, 0, 98).unwrap();
        connection.flush(LONG).unwrap();
        let seen = to.read().unwrap();
        assert!(seen[0] == 6 && seen[99] == 6 && seen[1..99].iter().all(|&byte| byte == 5));
        assert_eq!(communicator.ranks_on_device(), 1);
    });
}

/// A death ends what waits for it, and says whose it was.
#[test]
fn a_rank_that_leaves_ends_what_waits_for_it() {
    each(2, |communicator| {
        let peer = other(&communicator);
        communicator.barrier().unwrap();
        if communicator.rank() == Rank(1) {
            return;
        }
        let outcomes = [
            communicator.recv_memory(peer, Tag(1)).and_then(|mut pending| pending.wait(LONG)).map(drop),
            communicator
                .connect(EndpointConfig::CudaIpc, peer, Tag(2))
                .and_then(|mut p| p.wait(LONG))
                .map(drop),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PeerLost, "{error}");
            assert!(
                error.to_string().contains("with rank 1 on tag")
                    && error.to_string().contains("rank 1 has left"),
                "{error}"
            );
        }
        let error = communicator.barrier().unwrap_err();
        assert!(error.to_string().contains("rank 1"), "{error}");
    });
}
