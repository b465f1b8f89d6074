//! Faults: an error on the right rank, nothing hung, nothing else disturbed.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use warpwire::abi;
use warpwire::bootstrap::Tag;
use warpwire::connection::Connection;
use warpwire::connection::infiniband::{InfiniBandConfig, SignalMode};
use warpwire::error::ConnectionError;
use warpwire::memory::RegisteredMemory;
use warpwire::{Error, ErrorKind, Result};

use crate::process::tell_parent;
use crate::ranks::{LONG, MODES, Rank, run, wait_for, word};

/// Writes and signals until that fails, and gives the error.
fn write_until_failure(connection: &Connection, to: &RegisteredMemory, from: &RegisteredMemory) -> Error {
    let begun = Instant::now();
    let mut count = 0;
    let mut once = || -> Result<()> {
        count += 1;
        connection.write(to, 8, from, 8, from.bytes() - 8)?;
        connection.update(to, 0, count)?;
        connection.flush(LONG)
    };
    loop {
        if let Err(error) = once() {
            return error;
        }
        assert!(begun.elapsed() < LONG, "it does not fail");
    }
}

/// It has failed, and names the peer and a reason; and it stays failed.
fn expect_failed(connection: &Connection, error: &Error, peer: abi::Rank, reason: &str) {
    let failed = |error: &Error| matches!(error, Error::Connection(ConnectionError::Failed { peer: p, .. }) if *p == peer);
    assert!(failed(error), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::PeerLost);
    assert!(error.to_string().contains(reason), "{error}");
    assert!(failed(&connection.mark().unwrap_err()));
    assert!(failed(&connection.flush(LONG).unwrap_err()));
}

#[test]
fn a_peer_that_is_killed_is_named_and_others_go_on() {
    run("peer_killed", 3);
}

/// Rank 1 dies in the middle of rank 0's writes; rank 0's connection to rank 2 does not notice.
pub fn peer_killed(rank: &Rank) {
    let memory = rank.buffer::<u64>(1 << 12);
    let own = rank.register(&memory);
    let peers: Vec<u32> = match rank.number() {
        0 => vec![1, 2],
        _ => vec![0],
    };
    let ends: Vec<_> = peers
        .iter()
        .flat_map(|&peer| MODES.map(|mode| (abi::Rank(peer), mode)))
        .map(|(peer, mode)| {
            let tag = u64::from(mode == SignalMode::Host);
            let connection = rank.connect(mode, peer, tag);
            (peer, connection, rank.exchange(&own, peer, 2 + tag))
        })
        .collect();
    rank.barrier();
    match rank.number() {
        0 => {
            for (peer, connection, to) in &ends {
                if *peer == abi::Rank(1) {
                    let error = write_until_failure(connection, to, &own);
                    expect_failed(connection, &error, *peer, "the peer is gone, or the link to it is down");
                } else {
                    for count in 1..=200 {
                        connection.write(to, 8, &own, 8, 4096).unwrap();
                        connection.update(to, 0, count).unwrap();
                    }
                    connection.flush(LONG).unwrap();
                }
            }
            rank.communicator.bootstrap().send(abi::Rank(2), Tag(9), b"done").unwrap();
        }
        1 => {
            wait_for(word(&memory, 0), 2);
            tell_parent("dies");
            std::process::abort();
        }
        _ => {
            rank.communicator.bootstrap().recv(abi::Rank(0), Tag(9)).unwrap();
            wait_for(word(&memory, 0), 200);
        }
    }
}

#[test]
fn memory_that_the_peer_takes_back_is_named() {
    run("key_revoked", 2);
}

/// Rank 1 takes its memory back. Rank 0's next write fails for that reason, rank 1's end fails too, and another connection
/// between them goes on.
pub fn key_revoked(rank: &Rank) {
    for (tag, mode) in (1..).zip(MODES) {
        let (connection, other) =
            (rank.connect(mode, rank.other(), 10 * tag), rank.connect(mode, rank.other(), 10 * tag + 1));
        let (memory, kept) = (rank.buffer::<u64>(512), rank.buffer::<u64>(512));
        let (own, own_kept) = (rank.register(&memory), rank.register(&kept));
        let to = rank.exchange(&own, rank.other(), 10 * tag + 2);
        let to_kept = rank.exchange(&own_kept, rank.other(), 10 * tag + 3);
        if rank.number() == 1 {
            drop(own);
        }
        rank.barrier();
        if rank.number() == 0 {
            let error = write_until_failure(&connection, &to, &own_kept);
            expect_failed(&connection, &error, rank.other(), "no longer registered");
            rank.barrier();
        } else {
            rank.barrier();
            let error = write_until_failure(&connection, &to_kept, &own_kept);
            // Adapters may say so by themselves before a completion does.
            let told = error.to_string().contains(" says: ");
            expect_failed(&connection, &error, rank.other(), if told { " says: " } else { "ended with" });
        }
        other.write(&to_kept, 8, &own_kept, 8, 64).unwrap();
        other.update(&to_kept, 0, 1 << 33).unwrap();
        other.flush(LONG).unwrap();
        wait_for(word(&kept, 0), 1 << 33);
        rank.barrier();
    }
}

#[test]
fn a_peer_that_takes_no_signals_is_named() {
    run("peer_stopped", 2);
}

/// Rank 1's process is stopped, its adapter is not: rank 0's signals use up the receives, and then it does not wait for ever.
pub fn peer_stopped(rank: &Rank) {
    let config =
        InfiniBandConfig { mode: Some(SignalMode::HostNoAtomic), signal_depth: 8, ..Default::default() };
    let connection = rank.connect_with(config, rank.other(), 1).unwrap();
    let token = rank.buffer::<u64>(1);
    let own = rank.register(&token);
    let to = rank.exchange(&own, rank.other(), 2);
    rank.barrier();
    if rank.number() == 1 {
        let script = format!("sleep 1; kill -STOP {0}; sleep 12; kill -CONT {0}", std::process::id());
        let mut shell = Command::new("sh");
        let mut shell =
            shell.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        assert!(shell.wait().unwrap().success());
        // What was signalled before it was stopped, and what waited for it meanwhile, has arrived.
        wait_for(word(&token, 0), 6);
        rank.communicator.bootstrap().recv(rank.other(), Tag(3)).unwrap();
        return;
    }
    std::thread::sleep(Duration::from_secs(3));
    let begun = Instant::now();
    let mut sent = 0;
    let error = loop {
        match connection.update(&to, 0, sent + 1) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(begun.elapsed() < LONG);
    };
    let named =
        matches!(&error, Error::Connection(ConnectionError::Timeout { peer, .. }) if *peer == rank.other());
    assert!(named, "{error:?}");
    assert!(sent < 16, "{sent} signals for 8 receives");
    rank.communicator.bootstrap().send_within(rank.other(), Tag(3), b"done", LONG).unwrap();
}

#[test]
fn a_link_that_goes_down_is_named() {
    run("link_down", 2);
}

/// Rank 0's network interface goes down in the middle of its writes, and up again.
pub fn link_down(rank: &Rank) {
    let Ok(interface) = std::env::var("WARPWIRE_RDMA_TEST_LINK") else {
        println!("no interface that may be taken down");
        return;
    };
    let set = |state: &str| {
        assert!(Command::new("ip").args(["link", "set", &interface, state]).status().unwrap().success());
    };
    let connections = MODES.map(|mode| rank.connect(mode, rank.other(), u64::from(mode == SignalMode::Host)));
    let memory = rank.buffer::<u64>(1 << 16);
    let own = rank.register(&memory);
    let to = rank.exchange(&own, rank.other(), 2);
    rank.barrier();
    if rank.number() == 0 {
        for connection in &connections {
            connection.write(&to, 8, &own, 8, own.bytes() - 8).unwrap();
            connection.update(&to, 0, 1).unwrap();
            connection.flush(LONG).unwrap();
        }
        set("down");
        for connection in &connections {
            let error = write_until_failure(connection, &to, &own);
            expect_failed(connection, &error, rank.other(), "ended with");
            // Which the adapter has said by itself.
            assert!(error.to_string().contains("; port 1 of "), "{error}");
        }
        set("up");
    }
    rank.barrier();
    // A new connection reads the port's addresses anew.
    let connection = rank.connect(SignalMode::Host, rank.other(), 5);
    connection.update(&to, 0, 1 << 40).unwrap();
    connection.flush(LONG).unwrap();
    wait_for(word(&memory, 0), 1 << 40);
    rank.barrier();
}

#[test]
fn a_closed_connection_says_so_and_its_peers_end_fails() {
    run("closed", 2);
}

pub fn closed(rank: &Rank) {
    for (tag, mode) in (1..).zip(MODES) {
        let connection = rank.connect(mode, rank.other(), tag);
        let memory = rank.buffer::<u64>(64);
        let own = rank.register(&memory);
        let to = rank.exchange(&own, rank.other(), 10 + tag);
        if rank.number() == 1 {
            connection.close();
            connection.clone().close();
            let error = connection.update(&to, 0, 1).unwrap_err();
            assert!(
                matches!(error, Error::Connection(ConnectionError::Closed { peer, .. }) if peer == rank.other())
            );
            assert_eq!(error.kind(), ErrorKind::Aborted);
            rank.barrier();
        } else {
            rank.barrier();
            let error = write_until_failure(&connection, &to, &own);
            expect_failed(&connection, &error, rank.other(), "ended with");
        }
        rank.barrier();
    }
}
