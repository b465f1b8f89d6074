//! Jobs of ranks in one process, and what the tests ask of a rank.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use warpwire::abi::{ChannelId, Rank};
use warpwire::bootstrap::{Bootstrap, HostId, LocalBootstrap, Tag};
use warpwire::channel::MemoryChannel;
use warpwire::communicator::Communicator;
use warpwire::connection::{Connection, EndpointConfig};
use warpwire::device::Device;
use warpwire::error::{CommunicatorError, ConnectionError};
use warpwire::{Error, Result};

/// Longer than any step of a test that goes well.
pub const LONG: Duration = Duration::from_secs(60);

/// A device of the kind that this program tests with: on a GPU the same each time, else another.
pub fn device() -> Device {
    Device::open(crate::DEVICE).unwrap()
}

/// Runs a rank in each thread, on the host of that name, and gives what each came to. Each has a device of its own.
pub fn on_hosts<T: Send>(hosts: &[&str], run: impl Fn(Communicator) -> T + Sync) -> Vec<T> {
    with_bootstraps(hosts, |bootstrap| run(Communicator::new(bootstrap, &device()).unwrap()))
}

/// The same with ranks on one host.
pub fn each<T: Send>(size: usize, run: impl Fn(Communicator) -> T + Sync) -> Vec<T> {
    on_hosts(&vec!["here"; size], run)
}

/// The same before there is a communicator.
pub fn with_bootstraps<T: Send>(hosts: &[&str], run: impl Fn(Arc<dyn Bootstrap>) -> T + Sync) -> Vec<T> {
    let hosts: Vec<HostId> = hosts.iter().map(|name| HostId::named(name)).collect();
    let ranks = LocalBootstrap::on_hosts(&hosts).unwrap().timeout(LONG).start();
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> =
            ranks.into_iter().map(|rank| scope.spawn(move || run(Arc::new(rank)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The other one of two ranks.
pub fn other(communicator: &Communicator) -> Rank {
    Rank(1 - communicator.rank().0)
}

pub fn connect(communicator: &Communicator, peer: Rank) -> Connection {
    communicator.connect(EndpointConfig::CudaIpc, peer, Tag(900)).unwrap().wait(LONG).unwrap()
}

pub fn channel(communicator: &Communicator, connection: &Connection, id: u32) -> MemoryChannel {
    let semaphore = communicator.build_semaphore(connection, Tag(u64::from(id))).unwrap().wait(LONG).unwrap();
    MemoryChannel::new(semaphore, ChannelId(id)).unwrap()
}

/// The communicator's error that a call ended with.
pub fn failure<T>(outcome: Result<T>) -> CommunicatorError {
    match outcome {
        Err(Error::Communicator(error)) => error,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("the call should have failed"),
    }
}

/// What an exchange failed of.
pub fn cause<T>(outcome: Result<T>) -> Error {
    match failure(outcome) {
        CommunicatorError::Exchange { source, .. } => *source,
        other => panic!("{other:?}"),
    }
}

/// The connection's error that an exchange failed of.
pub fn connection_failure<T>(outcome: Result<T>) -> ConnectionError {
    match cause(outcome) {
        Error::Connection(error) => error,
        other => panic!("{other:?}"),
    }
}
