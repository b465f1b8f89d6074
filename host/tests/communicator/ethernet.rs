//! Ranks connected by TCP, in processes that come and go, with whatever device this program tests.

use std::thread;
use std::time::{Duration, Instant};

use warpwire::abi::Rank;
use warpwire::bootstrap::Tag;
use warpwire::communicator::Communicator;
use warpwire::connection::{Connection, EndpointConfig};
use warpwire::device::Buffer;
use warpwire::memory::{RegisteredMemory, Transports};

use crate::exercises::{the_host_signals_the_peers_kernel, written_pieces_arrive_in_order};
use crate::jobs::{LONG, connect_by, other};
use crate::process::{Child, hear_parent, tell_parent};
use crate::processes::start;

pub const ETHERNET: EndpointConfig = EndpointConfig::Ethernet;

/// What a child of this file does.
pub fn play(what: &str, communicator: &Communicator) {
    match what {
        "ethernet signal and write" => {
            the_host_signals_the_peers_kernel(communicator, ETHERNET);
            written_pieces_arrive_in_order(communicator, ETHERNET);
        }
        "ethernet exchange" => exchange(communicator, (64 << 20) + 13),
        "ethernet ring" => ring(communicator),
        "ethernet lose a peer" => lose_a_peer(communicator),
        "ethernet die before meeting" => die_before_meeting(communicator),
        "ethernet stand still" => stand_still(communicator),
        other => panic!("no child does {other:?}"),
    }
}

/// Bytes that repeat at no length that a transfer could be off by.
fn pattern(bytes: usize, rank: u32) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15 ^ u64::from(rank + 1);
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(step).collect()
}

/// A buffer that peers write, what it is filled with at first, and how the peer knows it.
pub struct Inbox {
    buffer: Buffer<u8>,
    _registered: RegisteredMemory,
    pub theirs: RegisteredMemory,
}

impl Inbox {
    /// An inbox of this rank's, and the peer's, which has to make one too.
    pub fn new(communicator: &Communicator, peer: Rank, bytes: usize, tag: u64) -> Self {
        let buffer = communicator.device().allocate::<u8>(bytes).unwrap();
        buffer.fill_bytes(0xEE).unwrap();
        let registered = communicator.register_memory(&buffer, Transports::ETHERNET).unwrap();
        communicator.send_memory(&registered, peer, Tag(tag)).unwrap();
        let theirs = communicator.recv_memory(peer, Tag(tag)).unwrap().wait(LONG).unwrap();
        assert!(theirs.address().is_none(), "nothing is mapped");
        Self { buffer, _registered: registered, theirs }
    }
}

fn source(communicator: &Communicator, content: &[u8]) -> RegisteredMemory {
    let buffer = communicator.device().allocate::<u8>(content.len()).unwrap();
    buffer.write(content).unwrap();
    communicator.register_memory(&buffer, Transports::ETHERNET).unwrap()
}

/// Both ranks send each other `bytes` bytes, in pieces of odd lengths over three connections at once.
pub fn exchange(communicator: &Communicator, bytes: usize) {
    const BEFORE: usize = 5;
    let (own, peer) = (communicator.rank().0, other(communicator));
    let inbox = Inbox::new(communicator, peer, BEFORE + bytes + 7, 1);
    let source = source(communicator, &pattern(bytes, own));
    let mut pending: Vec<_> =
        (0..3).map(|number| communicator.connect(ETHERNET, peer, Tag(number)).unwrap()).collect();
    // In another order on each rank.
    let order = if own == 0 { [0, 1, 2] } else { [2, 0, 1] };
    let connections = order.map(|number: usize| (number, pending[number].wait(LONG).unwrap()));
    let cuts = [0, bytes / 3 - 1, bytes / 2 + 11, bytes].map(|cut| cut as u64);
    thread::scope(|scope| {
        for (number, connection) in &connections {
            let (source, theirs) = (&source, &inbox.theirs);
            let (from, to) = (cuts[*number], cuts[number + 1]);
            scope.spawn(move || {
                connection.write(theirs, BEFORE as u64 + from, source, from, to - from).unwrap();
                connection.flush(LONG).unwrap();
            });
        }
    });
    communicator.barrier().unwrap();
    let mut expected = vec![0xEE; BEFORE + bytes + 7];
    expected[BEFORE..BEFORE + bytes].copy_from_slice(&pattern(bytes, peer.0));
    assert!(inbox.buffer.read().unwrap() == expected, "rank {own}");
    communicator.barrier().unwrap();
}

/// Each rank waits for the connection to the next one first, then for that to the one before: no rank's wait may need
/// another's.
fn ring(communicator: &Communicator) {
    let (own, size) = (communicator.rank().0, communicator.size() as u32);
    let (next, before) = (Rank((own + 1) % size), Rank((own + size - 1) % size));
    let ask = |peer, tag| communicator.connect(ETHERNET, peer, Tag(tag)).unwrap();
    let (mut to_next, mut to_before) = (ask(next, 7), ask(before, 7));
    let (to_next, to_before) = (to_next.wait(LONG).unwrap(), to_before.wait(LONG).unwrap());
    let inbox = communicator.device().allocate::<u64>(2).unwrap();
    let mine = communicator.register_memory(&inbox, Transports::ETHERNET).unwrap();
    for peer in [next, before] {
        communicator.send_memory(&mine, peer, Tag(8)).unwrap();
    }
    for (connection, place) in [(&to_next, 0), (&to_before, 8)] {
        let theirs = communicator.recv_memory(connection.peer(), Tag(8)).unwrap().wait(LONG).unwrap();
        connection.update(&theirs, place, u64::from(100 + own)).unwrap();
        connection.flush(LONG).unwrap();
    }
    communicator.barrier().unwrap();
    assert_eq!(inbox.read().unwrap(), [u64::from(100 + before.0), u64::from(100 + next.0)]);
    communicator.barrier().unwrap();
}

/// Writes one buffer over and over until that fails.
fn write_until_it_fails(
    connection: &Connection,
    theirs: &RegisteredMemory,
    source: &RegisteredMemory,
) -> String {
    let begun = Instant::now();
    loop {
        let written =
            connection.write(theirs, 0, source, 0, source.bytes()).and_then(|()| connection.flush(LONG));
        if let Err(error) = written {
            return error.to_string();
        }
        assert!(begun.elapsed() < 2 * LONG, "it goes on for ever");
    }
}

/// Rank 1 is killed while rank 0 writes to it, and to rank 2 besides.
fn lose_a_peer(communicator: &Communicator) {
    const BYTES: usize = (4 << 20) + 3;
    let own = communicator.rank();
    let peers: Vec<Rank> = if own == Rank(0) { vec![Rank(1), Rank(2)] } else { vec![Rank(0)] };
    let ends: Vec<_> = peers
        .iter()
        .map(|peer| (connect_by(communicator, ETHERNET, *peer), Inbox::new(communicator, *peer, BYTES, 2)))
        .collect();
    if own != Rank(0) {
        tell_parent("ready");
        // Rank 2 says what it has got, once rank 0 is done.
        if hear_parent().is_some() {
            let got = ends[0].1.buffer.read().unwrap() == pattern(BYTES, 0);
            tell_parent(if got { "right" } else { "wrong" });
            hear_parent();
        }
        return;
    }
    let source = source(communicator, &pattern(BYTES, 0));
    thread::scope(|scope| {
        let lost = scope.spawn(|| write_until_it_fails(&ends[0].0, &ends[0].1.theirs, &source));
        tell_parent("ready");
        let error = lost.join().unwrap();
        tell_parent(&error);
        tell_parent(&ends[0].0.mark().unwrap_err().to_string());
        ends[1].0.write(&ends[1].1.theirs, 0, &source, 0, BYTES as u64).unwrap();
        ends[1].0.flush(LONG).unwrap();
        tell_parent("written to the other");
    });
    hear_parent();
}

/// Rank 1 asks for connections, and is killed before it has waited for one: rank 0's ends, of which some wait for it to call and
/// some call it, all fail.
fn die_before_meeting(communicator: &Communicator) {
    let peer = other(communicator);
    let ask = |tag| communicator.connect(ETHERNET, peer, Tag(tag)).unwrap();
    let mut pending: Vec<_> = (0..8).map(ask).collect();
    if communicator.rank() == Rank(1) {
        tell_parent("asked");
        hear_parent();
        return;
    }
    let connections: Vec<_> = pending.iter_mut().map(|pending| pending.wait(LONG).unwrap()).collect();
    tell_parent("waiting");
    hear_parent();
    for connection in connections {
        let begun = Instant::now();
        let error = loop {
            match connection.mark() {
                Err(error) => break error.to_string(),
                Ok(_) => assert!(begun.elapsed() < 2 * LONG, "it never ends"),
            }
            thread::yield_now();
        };
        tell_parent(&error);
    }
}

/// Rank 1 is stopped and goes on later: rank 0's flush ends by its deadline, and the next one well.
fn stand_still(communicator: &Communicator) {
    const BYTES: usize = (32 << 20) + 1;
    let peer = other(communicator);
    let connection = connect_by(communicator, ETHERNET, peer);
    let inbox = Inbox::new(communicator, peer, BYTES, 2);
    let source = source(communicator, &pattern(BYTES, communicator.rank().0));
    tell_parent("ready");
    hear_parent();
    if communicator.rank() == Rank(0) {
        connection.write(&inbox.theirs, 0, &source, 0, BYTES as u64).unwrap();
        tell_parent(&connection.flush(Duration::from_millis(500)).unwrap_err().to_string());
        connection.flush(LONG).unwrap();
        tell_parent("flushed");
        hear_parent();
    } else {
        assert!(inbox.buffer.read().unwrap() == pattern(BYTES, 0));
    }
}

#[test]
fn processes_exchange_sixty_four_mib() {
    start("ethernet exchange", 2).into_iter().flatten().for_each(Child::end);
}

#[test]
fn kernels_wait_for_signals_that_came_by_tcp() {
    start("ethernet signal and write", 2).into_iter().flatten().for_each(Child::end);
}

#[test]
fn a_ring_connects_whatever_each_rank_waits_for_first() {
    start("ethernet ring", 4).into_iter().flatten().for_each(Child::end);
}

#[test]
fn a_killed_peer_is_named_and_the_others_go_on() {
    let Some(mut job) = start("ethernet lose a peer", 3) else { return };
    job.iter_mut().for_each(|child| assert_eq!(child.hear(), "ready"));
    job.remove(1).kill();
    for line in [job[0].hear(), job[0].hear()] {
        assert!(line.starts_with("the Ethernet connection to rank 1 has failed: "), "{line}");
    }
    assert_eq!(job[0].hear(), "written to the other");
    assert_eq!(job[1].ask("what came?"), "right");
    job.into_iter().for_each(Child::end);
}

/// By its death, not by the time that it had.
#[test]
fn a_peer_that_is_killed_before_it_comes_is_named() {
    let Some(mut job) = start("ethernet die before meeting", 2) else { return };
    assert_eq!((job[0].hear().as_str(), job[1].hear().as_str()), ("waiting", "asked"));
    job.remove(1).kill();
    job[0].tell("look");
    for _ in 0..8 {
        let line = job[0].hear();
        assert!(line.starts_with("the Ethernet connection to rank 1 has failed: "), "{line}");
        assert!(!line.contains(" within "), "{line}");
    }
    job.into_iter().for_each(Child::end);
}

#[test]
fn a_peer_that_stands_still_is_named_by_the_deadline() {
    let Some(mut job) = start("ethernet stand still", 2) else { return };
    job.iter_mut().for_each(|child| assert_eq!(child.hear(), "ready"));
    let signal = |child: &Child, signal: &str| {
        let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal(&job[1], "-STOP");
    let line = job[0].ask("write");
    assert!(
        line.contains("the Ethernet connection to rank 1 had not completed what was asked for after 500ms"),
        "{line}"
    );
    signal(&job[1], "-CONT");
    assert_eq!(job[0].hear(), "flushed");
    job[1].tell("look");
    job.into_iter().for_each(Child::end);
}
