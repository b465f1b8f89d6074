//! What ranks do with each other in the tests, on whatever device and in whatever processes they are.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use warpwire::Error;
use warpwire::abi::{ChannelId, OutboundHandle, Rank, SemaphoreHandle};
use warpwire::bootstrap::Tag;
use warpwire::channel::BoundMemoryChannel;
use warpwire::collective::{AllReduce, Operands};
use warpwire::communicator::Communicator;
use warpwire::connection::Connection;
use warpwire::device::{Buffer, LaunchConfig, Stream, builtin_module};
use warpwire::memory::{RegisteredMemory, Transports};
use warpwire_kernels::ping_pong::{PutPingPong, PutPingPongArgs, SemaphorePingPong, SemaphorePingPongArgs};

use crate::jobs::{LONG, channel, connect, other};

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
    let (mut seen, mut bytes, begun) = (0, vec![0; BYTES], Instant::now());
    while seen < BYTES as u64 {
        let now = done.read().unwrap()[0];
        assert!(begun.elapsed() < LONG, "no more than {seen} came");
        if now == seen {
            thread::yield_now();
            continue;
        }
        seen = now;
        let piece = &mut bytes[..seen as usize];
        inbox.read_at(0, piece).unwrap();
        assert!(*piece == expected[..seen as usize], "of the first {seen}");
    }
    connection.flush(LONG).unwrap();
    assert!(connection.is_complete(mark).unwrap());
    communicator.barrier().unwrap();
}

/// What a kernel's wait for a signal ends with, where it fails.
pub fn wait_in_a_kernel(communicator: &Communicator, end: &SemaphoreHandle, timeout: Duration) -> Error {
    let stream = communicator.context().stream().unwrap();
    launch_wait(communicator, &stream, end, timeout);
    stream.synchronize().unwrap_err()
}

/// Queues a kernel that waits for one signal.
pub fn launch_wait(communicator: &Communicator, stream: &Stream, end: &SemaphoreHandle, timeout: Duration) {
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

/// Memory of `words` 8-byte words that each hold `value`.
pub fn memory(communicator: &Communicator, words: usize, value: u64) -> RegisteredMemory {
    let buffer = communicator.device().allocate_shareable(words).unwrap();
    buffer.write(&vec![value; words]).unwrap();
    communicator.register_memory(&buffer, Transports::CUDA_IPC).unwrap()
}

/// Memory, in KiB, that this process has.
fn resident_kib() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4
}

/// 100,000 receives on one tag, between two processes: in order, and nothing is kept.
pub fn many_receives_leave_nothing_behind(communicator: &Communicator) {
    const RECEIVES: u64 = 100_000;
    const AT_ONCE: u64 = 50;
    let peer = other(communicator);
    let own: Vec<_> = (1..=7).map(|words| memory(communicator, words, 0)).collect();
    if communicator.rank() == Rank(0) {
        for at in 0..RECEIVES {
            // A length of its own for every remainder, so that an order that is wrong shows.
            communicator.send_memory(&own[(at % 7) as usize], peer, Tag(1)).unwrap();
            if at % AT_ONCE == AT_ONCE - 1 {
                communicator.recv_memory(peer, Tag(2)).unwrap().wait(LONG).unwrap();
            }
        }
        return communicator.barrier().unwrap();
    }
    let mut before = 0;
    for round in 0..RECEIVES / AT_ONCE {
        let pending: Vec<_> = (0..AT_ONCE).map(|_| communicator.recv_memory(peer, Tag(1)).unwrap()).collect();
        // Asked for from behind.
        for (at, mut pending) in pending.into_iter().enumerate().rev() {
            let bytes = pending.wait(LONG).unwrap().bytes();
            assert_eq!(bytes, 8 * ((round * AT_ONCE + at as u64) % 7 + 1));
        }
        communicator.send_memory(&own[0], peer, Tag(2)).unwrap();
        if round == 200 {
            before = resident_kib();
        }
    }
    let grown = resident_kib().saturating_sub(before);
    // 90,000 receives later: 100 bytes kept for each would be more.
    assert!(grown < 8 << 10, "{grown} KiB more than after the first tenth");
    communicator.barrier().unwrap();
}

/// Integers that a sum over any number of ranks holds exactly.
fn element(rank: usize, i: usize, round: usize) -> f32 {
    ((i * 7 + rank * 31 + round * 13) % 1021) as f32 - 300.0
}

/// What stands behind both buffers.
const GUARD: f32 = -12345.0;

/// One round of `count` elements on a stream of its own; every element is looked at.
pub fn round(communicator: &Communicator, group: &AllReduce, count: usize, round: usize, in_place: bool) {
    let (own, device) = (communicator.rank(), communicator.device());
    let buffer = || device.allocate::<f32>(count + 3).unwrap();
    let (input, output) = (buffer(), buffer());
    let mut values: Vec<f32> = (0..count).map(|i| element(own.0 as usize, i, round)).collect();
    values.extend([GUARD; 3]);
    input.write(&values).unwrap();
    output.write(&vec![GUARD; count + 3]).unwrap();
    let stream = communicator.context().stream().unwrap();
    let result = if in_place { &input } else { &output };
    let operands = Operands { input: input.address(), output: result.address(), count };
    // SAFETY: the buffers live until the stream is synchronized below, the group longer.
    unsafe { group.enqueue(own, &stream, operands, LONG) }.unwrap();
    stream.synchronize().unwrap();
    let seen = result.read().unwrap();
    for (i, seen) in seen[..count].iter().enumerate() {
        let expected: f32 = (0..communicator.size()).map(|rank| element(rank, i, round)).sum();
        assert_eq!(*seen, expected, "element {i} of {count} on {own:?} in round {round}");
    }
    assert_eq!(seen[count..], [GUARD; 3], "written behind the end");
    if !in_place {
        assert_eq!(input.read().unwrap(), values, "the input was written to");
    }
}

/// Rounds of many sizes, in and out of place.
pub fn every_element_is_the_sum(communicator: &Communicator) {
    let group = AllReduce::across(communicator, 5003).unwrap();
    assert_eq!(group.ranks(), communicator.size());
    for (at, count) in [1, 2, 3, 5, 257, 1024, 5003, 4, 1].into_iter().enumerate() {
        round(communicator, &group, count, at, at % 3 == 2);
    }
    communicator.barrier().unwrap();
}
