//! Words that are set behind data.

use std::sync::atomic::Ordering;

use warpwire::abi::ChannelId;
use warpwire::bootstrap::Tag;
use warpwire::connection::Connection;
use warpwire::device::Buffer;
use warpwire::memory::RegisteredMemory;

use crate::ranks::{LONG, MODES, Rank, noise, run, wait_for, word};

#[test]
fn ten_thousand_puts_arrive_in_order_with_their_signals() {
    run("puts_and_signals", 2);
}

const PUTS: u64 = 10_000;
/// 64-bit words of a put.
const WORDS: u64 = 3;

/// Each rank puts 10,000 times and signals each put, while the other does so too. Whoever sees a signal sees all puts up to
/// it.
pub fn puts_and_signals(rank: &Rank) {
    for (tag, mode) in (1..).zip(MODES) {
        let connection = rank.connect(mode, rank.other(), tag);
        let source = rank.buffer::<u64>((PUTS * WORDS) as usize);
        let values: Vec<u64> =
            (0..PUTS * WORDS).map(|at| noise(at + u64::from(rank.number()) * 77)).collect();
        source.write(&values).unwrap();
        let inbox = rank.buffer::<u64>((PUTS * WORDS) as usize + 1);
        let (own, from) = (rank.register(&inbox), rank.register(&source));
        let to = rank.exchange(&own, rank.other(), 10 + tag);
        let token = PUTS * WORDS;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for put in 0..PUTS {
                    let at = put * WORDS * 8;
                    connection.write(&to, at, &from, at, WORDS * 8).unwrap();
                    connection.update(&to, token * 8, put + 1).unwrap();
                }
                connection.flush(LONG).unwrap();
            });
            let mut checked = 0;
            while checked < PUTS {
                let seen = wait_for(word(&inbox, token), checked + 1);
                assert!(seen <= PUTS, "{seen} signals of {PUTS}");
                for at in checked * WORDS..seen * WORDS {
                    let expected = noise(at + u64::from(rank.other().0) * 77);
                    let got = word(&inbox, at).load(Ordering::Relaxed);
                    assert_eq!(got, expected, "{mode}: word {at} at signal {seen}");
                }
                checked = seen;
            }
        });
        rank.barrier();
    }
}

#[test]
fn one_connection_sets_several_words() {
    run("several_words", 2);
}

pub fn several_words(rank: &Rank) {
    const COUNT: u64 = 5;
    for (tag, mode) in (1..).zip(MODES) {
        let connection = rank.connect(mode, rank.other(), tag);
        // The words lie in two memories, so that they have different keys too.
        let tokens: [Buffer<u64>; 2] = [rank.buffer(COUNT as usize), rank.buffer(COUNT as usize)];
        let own = [rank.register(&tokens[0]), rank.register(&tokens[1])];
        let to: Vec<RegisteredMemory> =
            (0..2).map(|at| rank.exchange(&own[at], rank.other(), 10 * tag + at as u64)).collect();
        for round in 1..=50 {
            for at in 0..COUNT {
                // Every word but the third in the second memory rises.
                let value = if at == 2 { 1 << 40 | (50 - round) } else { round * (at + 1) };
                connection.update(&to[0], at * 8, round * (at + 1)).unwrap();
                connection.update(&to[1], at * 8, value).unwrap();
            }
        }
        connection.flush(LONG).unwrap();
        for at in 0..COUNT {
            wait_for(word(&tokens[0], at), 50 * (at + 1));
        }
        wait_for(word(&tokens[1], COUNT - 1), 50 * COUNT);
        assert_eq!(word(&tokens[1], 2).load(Ordering::Acquire), 1 << 40, "{mode}: a word that falls");
        rank.barrier();
    }
}

#[test]
fn words_rise_across_the_wrap_of_their_low_half() {
    run("words_across_the_wrap", 2);
}

pub fn words_across_the_wrap(rank: &Rank) {
    for (tag, mode) in (1..).zip(MODES) {
        let connection = rank.connect(mode, rank.other(), tag);
        let tokens = rank.buffer::<u64>(2);
        let own = rank.register(&tokens);
        let to = rank.exchange(&own, rank.other(), 10 + tag);
        let begin = (1u64 << 32) - 4;
        // Each is answered before the next, so that none is passed over.
        for value in begin..begin + 8 {
            let set = |connection: &Connection| connection.update(&to, 0, value).unwrap();
            if rank.number() == 0 {
                set(&connection);
                assert_eq!(wait_for(word(&tokens, 0), value), value, "{mode}");
            } else {
                assert_eq!(wait_for(word(&tokens, 0), value), value, "{mode}");
                set(&connection);
            }
        }
        // A jump of more than 32 bits.
        connection.update(&to, 8, 3).unwrap();
        connection.update(&to, 8, u64::MAX - 1).unwrap();
        wait_for(word(&tokens, 1), u64::MAX - 1);
        rank.barrier();
    }
}

#[test]
fn a_kernel_waits_for_the_peers_host() {
    run("semaphores", 2);
}

/// Semaphores over the connection: signals count, also after a reset.
pub fn semaphores(rank: &Rank) {
    for (tag, mode) in (1..).zip(MODES) {
        let connection = rank.connect(mode, rank.other(), tag);
        let mut pending = rank.communicator.build_semaphore(&connection, Tag(10 + tag)).unwrap();
        let semaphore = pending.wait(LONG).unwrap();
        let token = semaphore.inbound(ChannelId(0)).token;
        // SAFETY: the CPU device's addresses are the host's; the slot lives as long as the semaphore.
        let token = unsafe {
            let pointer = std::ptr::with_exposed_provenance_mut::<u64>(token.address() as usize);
            std::sync::atomic::AtomicU64::from_ptr(pointer)
        };
        for round in 0..2 {
            for _ in 0..300 {
                semaphore.signal().unwrap();
            }
            connection.flush(LONG).unwrap();
            assert_eq!(wait_for(token, 300), 300, "{mode}, round {round}");
            rank.barrier();
            semaphore.reset().unwrap();
            assert_eq!(token.load(Ordering::Acquire), 0);
            rank.barrier();
        }
    }
}
