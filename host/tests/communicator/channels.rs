//! Puts and signals through channels, and what a connection does for the host.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use warpwire::abi::{ChannelId, Global, OutboundHandle, Rank, SemaphoreHandle};
use warpwire::bootstrap::Tag;
use warpwire::channel::BoundMemoryChannel;
use warpwire::communicator::Communicator;
use warpwire::connection::Connection;
use warpwire::device::{Buffer, LaunchConfig, Stream, builtin_module};
use warpwire::error::{CommunicatorError, ConnectionError};
use warpwire::memory::{RegisteredMemory, Transports};
use warpwire::{Error, ErrorKind};
use warpwire_kernels::ping_pong::{PutPingPong, PutPingPongArgs, SemaphorePingPong, SemaphorePingPongArgs};

use crate::jobs::{LONG, channel, connect, cpu, each, failure, other, with_bootstraps};

/// One channel's end, and what its kernel needs.
struct End {
    channel: BoundMemoryChannel,
    stream: Stream,
    wrong: Buffer<u32>,
}

impl End {
    fn new(communicator: &Communicator, connection: &Connection, id: u32, bytes: usize) -> Self {
        let (device, peer, tag) = (communicator.device(), connection.peer(), Tag(1000 + u64::from(id)));
        let register = || {
            let buffer: Buffer<u8> = device.allocate_shareable(bytes).unwrap();
            communicator.register_memory(&buffer, Transports::CUDA_IPC).unwrap()
        };
        let (local, inbox) = (register(), register());
        communicator.send_memory(&inbox, peer, tag).unwrap();
        let remote = communicator.recv_memory(peer, tag).unwrap().wait(LONG).unwrap();
        let channel = channel(communicator, connection, id).bind(&local, &remote, Some(&inbox)).unwrap();
        let stream = communicator.context().stream().unwrap();
        Self { channel, stream, wrong: device.allocate(2).unwrap() }
    }
}

/// Messages of `bytes` bytes go to and fro through `per_peer` channels between any two ranks, all at once, and every word of
/// every message is looked at.
pub fn bounce_with_everybody(communicator: &Communicator, per_peer: u32, bytes: usize, rounds: u32) {
    let (own, device) = (communicator.rank(), communicator.device());
    let function = device.load(builtin_module()).unwrap().function::<PutPingPong>().unwrap();
    let mut ends = Vec::new();
    for peer in (0..communicator.size() as u32).map(Rank).filter(|peer| *peer != own) {
        let connection = connect(communicator, peer);
        ends.extend((0..per_peer).map(|id| End::new(communicator, &connection, id, bytes)));
    }
    let config = LaunchConfig::new(1, 32).concurrent(ends.len() as u32);
    for End { channel, stream, wrong } in &ends {
        let args = PutPingPongArgs {
            ends: [channel.handle(); 2],
            policy: stream.policy(own, LONG),
            bytes: bytes as u64,
            wrong: wrong.address(),
            first_end: u32::from(own > channel.channel().peer()),
            rounds,
        };
        // SAFETY: the memories, the channels, the counts and the streams live until all are synchronized below.
        unsafe { stream.launch(&function, config, args) }.unwrap();
    }
    for End { channel, stream, wrong } in &ends {
        stream.synchronize().unwrap();
        let channel = channel.channel();
        assert_eq!(wrong.read().unwrap(), [0, 0], "{own:?} with {:?}, {:?}", channel.peer(), channel.id());
    }
    communicator.barrier().unwrap();
}

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

/// Rank 0's host signals a kernel of rank 1's, behind what it has written.
pub fn the_host_signals_the_peers_kernel(communicator: &Communicator) {
    const SIGNALS: u32 = 20;
    let (device, peer) = (communicator.device(), other(communicator));
    let connection = connect(communicator, peer);
    let semaphore = communicator.build_semaphore(&connection, Tag(1)).unwrap().wait(LONG).unwrap();
    if communicator.rank() == Rank(0) {
        (0..SIGNALS).for_each(|_| semaphore.signal().unwrap());
        connection.flush(LONG).unwrap();
    } else {
        let stream = communicator.context().stream().unwrap();
        let function = device.load(builtin_module()).unwrap().function::<SemaphorePingPong>().unwrap();
        let answers = device.allocate::<u64>(1).unwrap();
        let end = SemaphoreHandle {
            inbound: semaphore.host_handle(ChannelId(4)).inbound,
            outbound: OutboundHandle { token: answers.address() },
        };
        let args = SemaphorePingPongArgs {
            ends: [end; 2],
            policy: stream.policy(Rank(1), LONG),
            first_end: 1,
            rounds: SIGNALS,
            relaxed: 0,
            reserved: 0,
        };
        // SAFETY: semaphore, answers and stream live until it is synchronized.
        unsafe { stream.launch(&function, LaunchConfig::new(1, 1).concurrent(1), args) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(answers.read().unwrap(), [u64::from(SIGNALS)]);
        assert_eq!(word(semaphore.inbound(ChannelId(4)).token).load(Ordering::Acquire), u64::from(SIGNALS));
    }
    communicator.barrier().unwrap();
}

/// Each rank writes into the other's memory, at odd offsets, and sets a word behind each piece.
pub fn written_pieces_arrive_in_order(communicator: &Communicator) {
    const BYTES: usize = 100_003;
    let (device, peer, own) = (communicator.device(), other(communicator), communicator.rank().0 as u8);
    let connection = connect(communicator, peer);
    let (source, inbox) =
        (device.allocate_shareable::<u8>(BYTES).unwrap(), device.allocate_shareable::<u8>(BYTES).unwrap());
    let done = device.allocate_shareable::<u64>(1).unwrap();
    let pattern = |rank: u8| -> Vec<u8> { (0..BYTES).map(|i| (i % 241) as u8 ^ rank).collect() };
    source.write(&pattern(own)).unwrap();
    let register = |buffer| communicator.register_memory(buffer, Transports::CUDA_IPC).unwrap();
    let (source, mine) = (register(&source), register(&inbox));
    let my_word = communicator.register_memory(&done, Transports::CUDA_IPC).unwrap();
    communicator.send_memory(&mine, peer, Tag(1)).unwrap();
    communicator.send_memory(&my_word, peer, Tag(2)).unwrap();
    let receive = |tag| communicator.recv_memory(peer, Tag(tag)).unwrap().wait(LONG).unwrap();
    let (theirs, their_word) = (receive(1), receive(2));
    let (mut at, mut pieces) = (0, 0);
    for length in [1, 2, 3, 1000, 4097, 65_537, 7].into_iter().chain([29_356]) {
        connection.write(&theirs, at, &source, at, length).unwrap();
        at += length;
        pieces += 1;
        connection.update(&their_word, 0, at).unwrap();
    }
    assert_eq!((at, pieces), (BYTES as u64, 8));
    let mark = connection.mark().unwrap();
    // What the peer has said to be there is there, long before all of it is.
    let expected = pattern(1 - own);
    let seen_word = word(done.address());
    let (mut seen, mut bytes) = (0, vec![0; BYTES]);
    while seen < BYTES as u64 {
        wait_for(seen_word, seen + 1);
        seen = seen_word.load(Ordering::Acquire);
        let piece = &mut bytes[..seen as usize];
        inbox.read_at(0, piece).unwrap();
        assert!(*piece == expected[..seen as usize], "of the first {seen}");
    }
    connection.flush(LONG).unwrap();
    assert!(connection.is_complete(mark).unwrap());
    communicator.barrier().unwrap();
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
            let error = wait_in_a_kernel(
                &communicator,
                &channel.base_handle().semaphore,
                std::time::Duration::from_millis(30),
            );
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

/// What a kernel's wait for a signal ends with, where it fails.
pub fn wait_in_a_kernel(
    communicator: &Communicator,
    end: &SemaphoreHandle,
    timeout: std::time::Duration,
) -> Error {
    let stream = communicator.context().stream().unwrap();
    launch_wait(communicator, &stream, end, timeout);
    stream.synchronize().unwrap_err()
}

/// Queues a kernel that waits for one signal.
pub fn launch_wait(
    communicator: &Communicator,
    stream: &Stream,
    end: &SemaphoreHandle,
    timeout: std::time::Duration,
) {
    let module = communicator.device().load(builtin_module()).unwrap();
    let function = module.function::<SemaphorePingPong>().unwrap();
    let args = SemaphorePingPongArgs {
        ends: [*end; 2],
        policy: stream.policy(communicator.rank(), timeout),
        first_end: 1,
        rounds: 1,
        relaxed: 0,
        reserved: 0,
    };
    // SAFETY: the callers keep the semaphore until the stream is synchronized.
    unsafe { stream.launch(&function, LaunchConfig::new(1, 1).concurrent(1), args) }.unwrap();
}

/// C29: groups that overlap: a signal between two ranks of one ends no wait of the other's.
#[test]
fn signals_of_overlapping_groups_do_not_meet() {
    with_bootstraps(&["here"; 3], |bootstrap| {
        use warpwire::bootstrap::{Bootstrap, Colour};
        let bootstrap: std::sync::Arc<dyn Bootstrap> = bootstrap;
        let device = cpu();
        let all = Communicator::new(std::sync::Arc::clone(&bootstrap), &device).unwrap();
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
                    let error = wait_in_a_kernel(
                        &all,
                        &channel.base_handle().semaphore,
                        std::time::Duration::from_millis(30),
                    );
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
