//! Data of all lengths.

use std::sync::atomic::Ordering;
use std::thread;

use warpwire::bootstrap::Tag;
use warpwire::connection::infiniband::{InfiniBandConfig, SignalMode};

use crate::ranks::{LONG, MODES, Rank, noise, run, wait_for, word};

#[test]
fn every_length_arrives_whole() {
    run("sizes", 2);
}

/// The software adapter's longest message is 8 MiB; adapters of hardware take 1 or 2 GiB.
const LENGTHS: [usize; 12] =
    [1, 2, 3, 7, 8, 4095, 4096, 4097, (1 << 20) + 1, 8 << 20, (8 << 20) + 1, (20 << 20) + 3];

/// Rank 0 puts each length at an odd offset and signals it; rank 1 looks at the moment of the signal, also at the bytes beside.
pub fn sizes(rank: &Rank) {
    const LONGEST: usize = (20 << 20) + 3;
    const ROOM: usize = LONGEST + 64;
    for (tag, mode) in (1..).zip(MODES) {
        let connection = rank.connect(mode, rank.other(), tag);
        let bytes = rank.buffer::<u8>(ROOM);
        let token = rank.buffer::<u64>(1);
        let (own, own_token) = (rank.register(&bytes), rank.register(&token));
        let to = rank.exchange(&own, rank.other(), 10 + tag);
        let to_token = rank.exchange(&own_token, rank.other(), 20 + tag);
        let pattern: Vec<u8> =
            (0..ROOM as u64 / 8 + 1).flat_map(|at| noise(at + tag).to_le_bytes()).collect();
        if rank.number() == 0 {
            bytes.write(&pattern[..ROOM]).unwrap();
        }
        for (round, length) in (1..).zip(LENGTHS) {
            let (from, at) = (round as usize % 5 + 1, round as usize % 7 + 3);
            if rank.number() == 1 {
                bytes.fill_bytes(0xa5).unwrap();
            }
            rank.barrier();
            if rank.number() == 0 {
                connection.write(&to, at as u64, &own, from as u64, length as u64).unwrap();
                connection.update(&to_token, 0, round).unwrap();
            } else {
                wait_for(word(&token, 0), round);
                let got = bytes.read().unwrap();
                assert!(got[at..at + length] == pattern[from..from + length], "{mode}: {length} bytes");
                assert!(
                    got[..at].iter().chain(&got[at + length..]).all(|byte| *byte == 0xa5),
                    "beside {length}"
                );
            }
            rank.barrier();
        }
    }
}

#[test]
fn what_was_flushed_is_there() {
    run("flush", 2);
}

/// No signal: the flush alone says that the data is in the peer's memory.
pub fn flush(rank: &Rank) {
    let connection = rank.connect(SignalMode::Host, rank.other(), 1);
    let memory = rank.buffer::<u64>(1 << 16);
    let own = rank.register(&memory);
    let to = rank.exchange(&own, rank.other(), 2);
    for round in 0..20u64 {
        if rank.number() == 0 {
            let values: Vec<u64> = (0..1 << 16).map(|at| noise(at ^ round << 20)).collect();
            memory.write(&values).unwrap();
            let before = connection.mark().unwrap();
            connection.write(&to, 0, &own, 0, own.bytes()).unwrap();
            let after = connection.mark().unwrap();
            assert!(after > before);
            connection.flush(LONG).unwrap();
            assert!(connection.is_complete(after).unwrap());
            // The source may be written again.
            memory.fill_bytes(0xff).unwrap();
            rank.communicator.bootstrap().send(rank.other(), Tag(3), b"look").unwrap();
            rank.barrier();
        } else {
            rank.communicator.bootstrap().recv(rank.other(), Tag(3)).unwrap();
            for at in 0..1 << 16 {
                assert_eq!(
                    word(&memory, at).load(Ordering::Relaxed),
                    noise(at ^ round << 20),
                    "round {round}"
                );
            }
            rank.barrier();
        }
    }
}

#[test]
fn a_shallow_queue_takes_any_number_of_requests() {
    run("shallow_queue", 2);
}

/// Far more requests than the queue holds, and signals than the peer has receives: whoever asks waits for room, and nothing
/// is lost.
pub fn shallow_queue(rank: &Rank) {
    const COUNT: u64 = 1_000;
    for (tag, mode) in (1..).zip(MODES) {
        let config =
            InfiniBandConfig { mode: Some(mode), queue_depth: 4, signal_depth: 4, ..Default::default() };
        let connection = rank.connect_with(config, rank.other(), tag).unwrap();
        let memory = rank.buffer::<u64>(COUNT as usize + 1);
        let source = rank.buffer::<u64>(COUNT as usize);
        source.write(&(0..COUNT).map(noise).collect::<Vec<_>>()).unwrap();
        let (own, from) = (rank.register(&memory), rank.register(&source));
        let to = rank.exchange(&own, rank.other(), 10 + tag);
        for at in 0..COUNT {
            connection.write(&to, at * 8, &from, at * 8, 8).unwrap();
            connection.update(&to, COUNT * 8, at + 1).unwrap();
        }
        connection.flush(LONG).unwrap();
        wait_for(word(&memory, COUNT), COUNT);
        for at in 0..COUNT {
            assert_eq!(word(&memory, at).load(Ordering::Relaxed), noise(at), "{mode}: word {at}");
        }
        rank.barrier();
        // More pieces than the queue holds, and than the peer has receives, of which they take none.
        let large = rank.buffer::<u8>((33 << 20) + 5);
        let own = rank.register(&large);
        let to_large = rank.exchange(&own, rank.other(), 20 + tag);
        if rank.number() == 0 {
            large.fill_bytes(0x5c).unwrap();
            connection.write(&to_large, 0, &own, 0, own.bytes()).unwrap();
            connection.update(&to, COUNT * 8, COUNT + 1).unwrap();
            connection.flush(LONG).unwrap();
        } else {
            wait_for(word(&memory, COUNT), COUNT + 1);
            assert!(large.read().unwrap().iter().all(|byte| *byte == 0x5c), "{mode}: a long write");
        }
        rank.barrier();
    }
}

#[test]
fn channels_at_once_do_not_disturb_each_other() {
    run("channels_at_once", 2);
}

/// Eight connections, each with a queue pair, a thread and memory of its own.
pub fn channels_at_once(rank: &Rank) {
    const COUNT: u64 = 200;
    for (tag, mode) in (1..).zip(MODES) {
        let channels: Vec<_> = (0..8)
            .map(|channel| {
                let connection = rank.connect(mode, rank.other(), 100 * tag + channel);
                let memory = rank.buffer::<u64>(COUNT as usize + 1);
                let source = rank.buffer::<u64>(COUNT as usize);
                source.write(&(0..COUNT).map(|at| noise(at + (channel << 32))).collect::<Vec<_>>()).unwrap();
                let (own, from) = (rank.register(&memory), rank.register(&source));
                let to = rank.exchange(&own, rank.other(), 100 * tag + 50 + channel);
                (channel, connection, memory, own, from, to)
            })
            .collect();
        thread::scope(|scope| {
            for (channel, connection, memory, _, from, to) in &channels {
                scope.spawn(move || {
                    for at in 0..COUNT {
                        connection.write(to, at * 8, from, at * 8, 8).unwrap();
                        connection.update(to, COUNT * 8, at + 1).unwrap();
                    }
                    wait_for(word(memory, COUNT), COUNT);
                    for at in 0..COUNT {
                        let got = word(memory, at).load(Ordering::Relaxed);
                        assert_eq!(got, noise(at + (channel << 32)), "{mode}: channel {channel}, word {at}");
                    }
                    connection.flush(LONG).unwrap();
                });
            }
        });
        rank.barrier();
    }
}
