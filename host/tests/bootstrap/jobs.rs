//! Jobs to test with.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::sync::{Arc, Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use warpwire::abi::Rank;
use warpwire::bootstrap::{
    Bootstrap, Group, HostId, LocalBootstrap, TcpBootstrap, TcpOptions, TcpRoot, UniqueId,
};
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

/// A port that nobody listens on, and that no other test takes as long as this process runs. It is none of those that the
/// system gives to connections, or one of the many that other tests make could have it first.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    static TAKEN: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let mut taken = TAKEN.lock().unwrap();
    let start = std::process::id().wrapping_mul(7919).wrapping_add(taken.len() as u32);
    let ports = (0..COUNT).map(|at| (FIRST + start.wrapping_add(at) % COUNT) as u16);
    let mut free = ports.filter_map(|port| {
        let name = UnixAddr::from_abstract_name(format!("warpwire-test-port-{port}")).unwrap();
        let reservation = UnixListener::bind_addr(&name).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
        Some((port, reservation))
    });
    let (port, reservation) = free.next().expect("20,000 ports are not all taken");
    taken.push(reservation);
    port
}

/// Where an id says that the root is.
pub fn address_of(id: &UniqueId) -> SocketAddr {
    let shown = format!("{id:?}");
    let address = shown.strip_prefix("UniqueId(").and_then(|rest| rest.split(',').next()).unwrap();
    address.parse().unwrap()
}

/// What this process has logged.
#[derive(Clone, Copy)]
struct Log;

static LOGGED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// From now on what is logged can be waited for. Before the job begins.
pub fn keep_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(|| Log);
        subscriber.with_max_level(tracing::Level::DEBUG).init();
    });
}

/// Waits until a rank has checked in at the root that is there.
pub fn wait_for_check_in(root: SocketAddr, rank: u32) {
    let expected = [format!("checked in rank={rank} "), format!("at=Some({root}) ")];
    let begun = Instant::now();
    let there = || {
        let logged = String::from_utf8_lossy(&LOGGED.lock().unwrap()).into_owned();
        logged.lines().any(|line| expected.iter().all(|part| line.contains(part)))
    };
    while !there() {
        assert!(begun.elapsed() < LONG, "rank {rank} never checked in");
        thread::sleep(Duration::from_millis(5));
    }
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
