//! Connections of those who are no ranks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use warpwire::abi::Rank;
use warpwire::bootstrap::{Tag, TcpBootstrap, TcpRoot};

use crate::jobs::{address_of, each, options};

/// Some bytes of no meaning, the same in every run.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// A frame that begins as one of ours.
fn frame(version: u16, kind: u16, claimed: u32, payload: &[u8]) -> Vec<u8> {
    let (version, kind, claimed) = (version.to_le_bytes(), kind.to_le_bytes(), claimed.to_le_bytes());
    [&b"WWBS"[..], &version, &kind, &claimed, payload].concat()
}

/// 200 connections of every bad sort. Those that are kept stay open until they are dropped.
fn strangers(address: SocketAddr) -> Vec<TcpStream> {
    let noise = noise(1 << 20);
    (0..200)
        .filter_map(|number| {
            let mut stream = TcpStream::connect(address).unwrap();
            // The other end may close at any time, which is its right.
            let mut say = |bytes: &[u8]| drop(stream.write_all(bytes));
            match number % 8 {
                0 => return None,
                1 => say(&noise[..3]),
                2 => say(&noise),
                3 => {}
                4 => say(&frame(1, 1, u32::MAX, &[])),
                5 => say(&frame(9, 1, 32, &[7; 32])),
                6 => say(&[frame(1, 1, 32, &[7; 32]), frame(1, 3, 40, &[7; 40])].concat()),
                _ => say(&frame(1, 16, 16, &[0; 16])),
            }
            Some(stream)
        })
        .collect()
}

#[test]
fn a_job_starts_and_runs_amid_strangers() {
    let root = TcpRoot::bind(options()).unwrap();
    let id = root.id().unwrap();
    let address = address_of(&id);
    thread::scope(|scope| {
        let root = scope.spawn(|| root.join(4));
        let before = strangers(address);
        let others: Vec<_> = (1..4)
            .map(|rank| scope.spawn(move || TcpBootstrap::connect(&id, Rank(rank), 4, options())))
            .collect();
        let amid = strangers(address);
        let job = [root].into_iter().chain(others).map(|rank| rank.join().unwrap().unwrap()).collect();
        each(job, |rank| {
            if rank.rank() == Rank(1) {
                drop(strangers(address));
            }
            for _ in 0..20 {
                rank.barrier().unwrap();
            }
            let peer = Rank(3 - rank.rank().0);
            rank.send(peer, Tag(0), b"hello").unwrap();
            assert_eq!(rank.recv(peer, Tag(0)).unwrap(), b"hello");
        });
        drop((before, amid));
    });
}

#[test]
fn strangers_do_not_keep_a_rank_from_being_missed() {
    let root = TcpRoot::bind(options().timeout(Duration::from_secs(3))).unwrap();
    let kept = strangers(address_of(&root.id().unwrap()));
    let error = crate::jobs::failure(root.join(2)).to_string();
    assert!(
        error.starts_with("rank 1 of 2 did not check in") && error.contains("were turned away"),
        "{error}"
    );
    drop(kept);
}

#[test]
fn one_without_the_secret_is_told_so() {
    let root = TcpRoot::bind(options()).unwrap();
    let address = address_of(&root.id().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| root.join(1).unwrap());
        let Ok(mut stream) = TcpStream::connect(address) else { return };
        let sent = [frame(1, 1, 32, &[7; 32]), frame(1, 3, 40, &[7; 40])].concat();
        let mut answer = Vec::new();
        // A job of one may be over by then.
        if stream.write_all(&sent).is_ok() && stream.read_to_end(&mut answer).is_ok() && answer.len() > 44 {
            let refusal = &answer[44..];
            assert_eq!(refusal, frame(1, 5, 1, &[0]), "a challenge, then the refusal");
        }
    });
}
