//! How ends meet, or do not.

use std::fs;
use std::time::Duration;

use warpwire::Error;
use warpwire::bootstrap::Tag;
use warpwire::connection::EndpointConfig;
use warpwire::connection::infiniband::{InfiniBandConfig, SignalMode};
use warpwire::memory::{RegisteredMemory, Transports};

use crate::ranks::{LONG, MODES, Rank, is_spread, run, wait_for, word};

#[test]
fn an_end_may_come_late() {
    run("late", 2);
}

/// Longer than an adapter tries to reach a peer that does not answer: whichever end is late, the first request arrives.
pub fn late(rank: &Rank) {
    let token = rank.buffer::<u64>(4);
    let own = rank.register(&token);
    let to = rank.exchange(&own, rank.other(), 1);
    for round in 0..4u64 {
        let config = InfiniBandConfig {
            mode: Some(MODES[round as usize % 2]),
            timeout: 12,
            retries: 2,
            ..Default::default()
        };
        let config = EndpointConfig::InfiniBand(config);
        let mut pending = rank.communicator.connect(config, rank.other(), Tag(10 + round)).unwrap();
        if u64::from(rank.number()) == round / 2 {
            std::thread::sleep(Duration::from_millis(1500));
        }
        let connection = pending.wait(LONG).unwrap();
        connection.update(&to, round * 8, round + 1).unwrap();
        connection.flush(LONG).unwrap();
        wait_for(word(&token, round), round + 1);
        rank.barrier();
    }
}

#[test]
fn connections_that_come_and_go_leave_nothing_behind() {
    run("many_connections", 2);
}

pub fn many_connections(rank: &Rank) {
    let tokens = rank.buffer::<u64>(200);
    let own = rank.register(&tokens);
    let to = rank.exchange(&own, rank.other(), 1);
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    let mut before = None;
    // Fewer between two machines, whose network makes each last longer.
    let count = if is_spread() { 50 } else { 200 };
    for round in 0..count {
        let connection = rank.connect(MODES[round as usize % 2], rank.other(), 2);
        // A word of its own: a connection takes its words for 0 in the beginning.
        connection.update(&to, round * 8, round + 1).unwrap();
        connection.flush(LONG).unwrap();
        wait_for(word(&tokens, round), round + 1);
        // Neither end may go while the other's signal is under way.
        rank.barrier();
        drop(connection);
        if round == 1 {
            before = Some(descriptors());
        }
    }
    assert!(descriptors() <= before.unwrap() + 2, "{} descriptors after {before:?}", descriptors());
}

#[test]
fn ends_that_differ_are_refused_on_both_sides() {
    run("differences", 2);
}

pub fn differences(rank: &Rank) {
    let mode = MODES[rank.number() as usize];
    let config = InfiniBandConfig { mode: Some(mode), ..Default::default() };
    let error = rank.connect_with(config, rank.other(), 1).unwrap_err().to_string();
    let (here, there) = (mode.name(), MODES[rank.other().0 as usize].name());
    assert!(error.contains(&format!("the mode {here} here and {there} there")), "{error}");

    let config = EndpointConfig::InfiniBand(InfiniBandConfig { gid_index: Some(200), ..Default::default() });
    let error = rank.communicator.connect(config, rank.other(), Tag(2)).map(drop).unwrap_err().to_string();
    assert!(error.contains("GID 200") && error.contains("give one of ["), "{error}");

    let config = EndpointConfig::InfiniBand(InfiniBandConfig { port: Some(9), ..Default::default() });
    let error = rank.communicator.connect(config, rank.other(), Tag(3)).map(drop).unwrap_err().to_string();
    assert!(error.contains("no port 9"), "{error}");
    rank.barrier();
}

#[test]
fn memory_that_is_not_registered_is_refused() {
    run("unregistered", 2);
}

/// By this rank, before anything is sent: the connection goes on.
pub fn unregistered(rank: &Rank) {
    let connection = rank.connect(SignalMode::Host, rank.other(), 1);
    let (token, plain) = (rank.buffer::<u64>(1), rank.buffer::<u64>(1));
    let own = rank.register(&token);
    let to = rank.exchange(&own, rank.other(), 2);
    let plain = RegisteredMemory::of(&plain, Transports::ETHERNET).unwrap();
    let to_plain = rank.exchange(&plain, rank.other(), 3);
    for outcome in [
        connection.write(&to, 0, &plain, 0, 8),
        connection.write(&to_plain, 0, &own, 0, 8),
        connection.update(&to_plain, 0, 1),
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Verbs(_)), "{error}");
        assert!(error.to_string().contains("is not registered with the adapter"), "{error}");
    }
    assert!(matches!(connection.update(&to, 1, 1), Err(Error::OutsideMemory { .. })));
    connection.update(&to, 0, 7).unwrap();
    connection.flush(LONG).unwrap();
    wait_for(word(&token, 0), 7);
    rank.barrier();
}
