//! What ranks tell each other: order, waiting, and what they must not say.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use warpwire::abi::{ChannelId, Global, InboundHandle, OutboundHandle, Rank, SemaphoreHandle};
use warpwire::bootstrap::Tag;
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::{LaunchConfig, builtin_module};
use warpwire::error::{CommunicatorError, LaunchError};
use warpwire::memory::Transports;
use warpwire::{Error, ErrorKind};
use warpwire_kernels::ping_pong::{SemaphorePingPong, SemaphorePingPongArgs};

use crate::exercises::memory;
use crate::jobs::{LONG, connect, device, each, failure, other, with_bootstraps};

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
            let last = memory(&communicator, 100, 0);
            communicator.send_memory(&last, peer, Tag(6)).unwrap();
            // All are registered until their receiver has them.
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

/// The user's messages on the bootstrap and those of two communicators over it never meet, whatever the tags.
#[test]
fn tags_are_the_users_own() {
    with_bootstraps(&["here"; 2], |bootstrap| {
        let own = device();
        let [a, b] = [(); 2].map(|()| Communicator::new(Arc::clone(&bootstrap), &own).unwrap());
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

/// C59: those who share a device are counted, and the launches of the other processes take none of this one's queues.
#[test]
fn ranks_that_share_a_device_are_counted() {
    let shared = device();
    let of_rank = |rank: Rank| if rank.0 < 3 { shared.clone() } else { device() };
    let counts = with_bootstraps(&["here"; 4], |bootstrap| {
        let device = of_rank(bootstrap.rank());
        let communicator = Communicator::new(bootstrap, &device).unwrap();
        let config = communicator.concurrent(LaunchConfig::new(2, 64));
        communicator.barrier().unwrap();
        (communicator.ranks_on_device(), config.concurrent, config.elsewhere)
    });
    assert_eq!(counts, [(3, 3, 0), (3, 3, 0), (3, 3, 0), (1, 1, 0)]);
    // More than the device holds with all ranks: refused, and nothing was launched.
    with_bootstraps(&["here"; 3], |bootstrap| {
        let communicator = Communicator::new(bootstrap, &shared).unwrap();
        let stream = communicator.context().stream().unwrap();
        let module = shared.load(builtin_module()).unwrap();
        let function = module.function::<SemaphorePingPong>().unwrap();
        let held = function.resident_blocks(1, 0).unwrap();
        let config = communicator.concurrent(LaunchConfig::new(held / 3 + 1, 1));
        let end = SemaphoreHandle {
            inbound: InboundHandle {
                token: Global::default(),
                expected: Global::default(),
                peer: Rank(0),
                channel: ChannelId(0),
            },
            outbound: OutboundHandle { token: Global::default() },
        };
        let policy = stream.policy(communicator.rank(), LONG);
        let args = SemaphorePingPongArgs {
            ends: [end; 2],
            policy,
            first_end: 0,
            rounds: 0,
            relaxed: 0,
            reserved: 0,
        };
        // SAFETY: it is refused.
        let error = unsafe { stream.launch(&function, config, args) }.unwrap_err();
        assert!(
            matches!(error, Error::Launch(LaunchError::TooManyBlocks { concurrent: 3, limit, .. }) if limit == held),
            "{error}"
        );
        communicator.barrier().unwrap();
    });
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
