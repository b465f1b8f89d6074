//! Puts and signals through channels, and what a connection does for the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use warpwire::abi::{ChannelId, Global, Rank};
use warpwire::bootstrap::{Colour, Tag};
use warpwire::communicator::Communicator;
use warpwire::error::{CommunicatorError, ConnectionError};
use warpwire::memory::{RegisteredMemory, Transports};
use warpwire::{Error, ErrorKind};

use crate::exercises::{
    bounce_with_everybody, the_host_signals_the_peers_kernel, wait_in_a_kernel,
    written_pieces_arrive_in_order,
};
use crate::jobs::{LONG, channel, connect, device, each, failure, other, with_bootstraps};

/// The word at an address of this process.
fn word(address: Global<u64>) -> &'static AtomicU64 {
    // SAFETY: the callers' words are aligned, live as long as they look at them, and touched by atomics alone.
    unsafe { AtomicU64::from_ptr(address.address() as *mut u64) }
}

fn wait_for(word: &AtomicU64, value: u64) {
    let begun = Instant::now();
    while word.load(Ordering::Acquire) < value {
        assert!(begun.elapsed() < LONG, "{value} never came");
        thread::yield_now();
    }
}

#[test]
fn many_channels_to_one_peer() {
    each(2, |communicator| bounce_with_everybody(&communicator, 12, 4 * 251, 40));
}

#[test]
fn channels_among_five_ranks() {
    each(5, |communicator| bounce_with_everybody(&communicator, 1, 4 * 1000 + 4, 20));
}

#[test]
fn hosts_signal_kernels() {
    each(2, |communicator| the_host_signals_the_peers_kernel(&communicator));
}

#[test]
fn hosts_write_to_their_peers() {
    each(2, |communicator| written_pieces_arrive_in_order(&communicator));
}

#[test]
fn memories_of_different_lengths_make_no_channel() {
    each(2, |communicator| {
        let (own, peer) = (communicator.rank().0, other(&communicator));
        let buffer = communicator.device().allocate_shareable::<u8>(100 + 50 * own as usize).unwrap();
        let local = communicator.register_memory(&buffer, Transports::CUDA_IPC).unwrap();
        communicator.send_memory(&local, peer, Tag(5)).unwrap();
        let remote = communicator.recv_memory(peer, Tag(5)).unwrap().wait(LONG).unwrap();
        let channel = channel(&communicator, &connect(&communicator, peer), 8);
        let error = failure(channel.bind(&local, &remote, None));
        let (ours, theirs) = if own == 0 { (100, 150) } else { (150, 100) };
        assert!(
            matches!(error, CommunicatorError::UnequalMemories { channel: ChannelId(8), local, remote, .. }
                if (local, remote) == (ours, theirs)),
            "{error}"
        );
        assert!(error.to_string().contains(&format!("rank {}", peer.0)), "{error}");
        assert!(channel.bind(&remote, &remote, Some(&local)).is_ok());
        communicator.barrier().unwrap();
    });
}

#[test]
fn memory_that_is_not_mapped_makes_no_channel() {
    each(2, |communicator| {
        let peer = other(&communicator);
        let buffer = communicator.device().allocate_shareable::<u8>(64).unwrap();
        let local = communicator.register_memory(&buffer, Transports::ETHERNET).unwrap();
        communicator.send_memory(&local, peer, Tag(5)).unwrap();
        let remote = communicator.recv_memory(peer, Tag(5)).unwrap().wait(LONG).unwrap();
        assert_eq!((remote.address(), remote.bytes()), (None, 64));
        let channel = channel(&communicator, &connect(&communicator, peer), 8);
        let error = channel.bind(&local, &remote, None).unwrap_err();
        assert!(matches!(error, Error::Connection(ConnectionError::NotMapped { .. })), "{error}");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        communicator.barrier().unwrap();
    });
}

/// A wait for a signal that does not come says whom it waited for, on which channel.
#[test]
fn a_silent_peer_is_named_with_its_channel() {
    each(2, |communicator| {
        let peer = other(&communicator);
        let channel = channel(&communicator, &connect(&communicator, peer), 77);
        if communicator.rank() == Rank(0) {
            let error =
                wait_in_a_kernel(&communicator, &channel.base_handle().semaphore, Duration::from_millis(30));
            let text = error.to_string();
            assert!(
                matches!(
                    error,
                    Error::WaitFailed { rank: Rank(0), peer: Rank(1), channel: ChannelId(77), .. }
                ),
                "{text}"
            );
            assert_eq!(error.kind(), ErrorKind::Timeout, "{text}");
        }
        communicator.barrier().unwrap();
        // A failed wait has consumed nothing: after it the channel is as it was.
        assert_eq!(word(channel.base_handle().semaphore.inbound.token).load(Ordering::Acquire), 0);
        communicator.barrier().unwrap();
    });
}

/// C29: groups that overlap: a signal between two ranks of one ends no wait of the other's.
#[test]
fn signals_of_overlapping_groups_do_not_meet() {
    with_bootstraps(&["here"; 3], |bootstrap| {
        let device = device();
        let all = Communicator::new(Arc::clone(&bootstrap), &device).unwrap();
        let colour = (bootstrap.rank() != Rank(1)).then_some(Colour(3));
        // Ranks 0 and 2 of all are 0 and 1 of the pair.
        let pair =
            bootstrap.split(colour, 0).unwrap().map(|group| Communicator::new(group, &device).unwrap());
        let mut channels: Vec<_> = (0..3).map(Rank).filter(|peer| *peer != all.rank()).collect();
        channels.sort_unstable();
        let of_all: Vec<_> =
            channels.into_iter().map(|peer| channel(&all, &connect(&all, peer), 1)).collect();
        if let Some(pair) = &pair {
            let channel = channel(pair, &connect(pair, other(pair)), 1);
            let token = channel.base_handle().semaphore;
            if pair.rank() == Rank(0) {
                word(token.outbound.token).fetch_add(1, Ordering::Release);
            } else {
                wait_for(word(token.inbound.token), 1);
                // Rank 2 of all waits in vain for rank 1, whose number is that of rank 2 in the pair, and for rank 0.
                for channel in &of_all {
                    let error =
                        wait_in_a_kernel(&all, &channel.base_handle().semaphore, Duration::from_millis(30));
                    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
                }
            }
            pair.barrier().unwrap();
        }
        all.barrier().unwrap();
    });
}

/// Registered memory that is sent is the peer's as long as the peer has it, whatever its owner does.
#[test]
fn the_owner_may_drop_what_its_peer_has() {
    each(2, |communicator| {
        let peer = other(&communicator);
        if communicator.rank() == Rank(0) {
            let buffer = communicator.device().allocate_shareable::<u64>(100).unwrap();
            buffer.write(&[42; 100]).unwrap();
            let memory = communicator.register_memory(&buffer, Transports::CUDA_IPC).unwrap();
            communicator.send_memory(&memory, peer, Tag(1)).unwrap();
            communicator.barrier().unwrap();
            drop((memory, buffer));
            communicator.barrier().unwrap();
        } else {
            let memory: RegisteredMemory =
                communicator.recv_memory(peer, Tag(1)).unwrap().wait(LONG).unwrap();
            communicator.barrier().unwrap();
            communicator.barrier().unwrap();
            let address = memory.address().unwrap().cast::<u64>();
            assert!((0..100).all(|i| word(address.add(i)).load(Ordering::Relaxed) == 42));
        }
    });
}
