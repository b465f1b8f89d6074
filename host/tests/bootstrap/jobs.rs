//! Jobs to test with.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use warpwire::abi::Rank;
use warpwire::bootstrap::{Bootstrap, Group, HostId, LocalBootstrap, TcpBootstrap, TcpOptions, TcpRoot};
use warpwire::error::BootstrapError;
use warpwire::{Error, Result};

/// Longer than any step of a test that goes well.
pub const LONG: Duration = Duration::from_secs(60);

pub fn options() -> TcpOptions {
    TcpOptions::from_env().unwrap().interfaces("=lo").unwrap().timeout(LONG)
}

/// The ranks of a job over TCP, all in this process.
pub fn tcp(size: usize) -> Vec<Group> {
    tcp_with(size, |_| options())
}

/// The same with options for each rank.
pub fn tcp_with(size: usize, options: impl Fn(usize) -> TcpOptions + Sync) -> Vec<Group> {
    let root = TcpRoot::bind(options(0)).unwrap();
    let id = root.id().unwrap();
    let options = &options;
    thread::scope(|scope| {
        let others: Vec<_> = (1..size)
            .map(|rank| {
                scope.spawn(move || TcpBootstrap::connect(&id, Rank(rank as u32), size, options(rank)))
            })
            .collect();
        let first = root.join(size).unwrap();
        let others = others.into_iter().map(|rank| rank.join().unwrap().unwrap());
        [first].into_iter().chain(others).collect()
    })
}

pub fn local(size: usize) -> Vec<Group> {
    LocalBootstrap::on_hosts(&vec![HostId::named("here"); size]).unwrap().timeout(LONG).start()
}

/// Both kinds of job of that size.
pub fn both(size: usize) -> [Vec<Group>; 2] {
    [local(size), tcp(size)]
}

/// Runs every rank in a thread, and gives what each came to.
pub fn each<T: Send>(ranks: Vec<Group>, run: impl Fn(Arc<dyn Bootstrap>) -> T + Sync) -> Vec<T> {
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> =
            ranks.into_iter().map(|rank| scope.spawn(move || run(Arc::new(rank)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// The bootstrap's error that a call ended with.
pub fn failure<T: std::fmt::Debug>(outcome: Result<T>) -> BootstrapError {
    match outcome {
        Err(Error::Bootstrap(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// The rank, in the whole job, that a call is said to have failed for.
pub fn blamed(error: &BootstrapError) -> Option<u32> {
    match error {
        BootstrapError::PeerLost { world, .. } | BootstrapError::Timeout { world, .. } => Some(world.0),
        _ => None,
    }
}
