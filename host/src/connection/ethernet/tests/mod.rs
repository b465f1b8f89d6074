//! Connections over loopback, within this process.

mod ends;
mod far;
mod meeting;
mod strangers;
mod transfers;

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use warpwire_device::abi::{Pod, Rank};

use super::greeting::Greeted;
use super::service::Part;
use super::*;
use crate::bootstrap::{DomainId, Group, HostId};
use crate::connection::endpoint::{Endpoint, Life, Peer};
use crate::connection::{Connection, Site};
use crate::device::{Buffer, DeviceSelector};
use crate::memory::{RegisteredMemory, Transports, process_id};

const LONG: Duration = Duration::from_secs(60);
const LOOPBACK: [u8; 4] = [127, 0, 0, 1];

fn cpu() -> Device {
    Device::open(DeviceSelector::Cpu).unwrap()
}

fn site(device: &Device) -> Site {
    let host = HostId::named("here");
    Site::here(device, host, DomainId::from(host)).unwrap()
}

/// Rank `rank` at that site, in a job of which nothing is heard.
fn peer<'a>(rank: u32, site: &'a Site, description: &'a [u8]) -> Peer<'a> {
    Peer { rank: Rank(rank), site, description, life: unheard_of(), patience: Duration::ZERO }
}

fn unheard_of() -> Life {
    Life::new(Weak::<Group>::new(), Rank(0))
}

fn endpoint(device: &Device, ip: impl Into<std::net::IpAddr>) -> Box<EthernetEndpoint> {
    Box::new(EthernetEndpoint::at(device, SocketAddr::new(ip.into(), 0), 0).unwrap())
}

/// The two ends of a connection between ranks 0 and 1: to rank 1, and to rank 0.
fn pair_at(device: &Device, ip: impl Into<std::net::IpAddr>) -> [Connection; 2] {
    let ip = ip.into();
    let ends = [endpoint(device, ip), endpoint(device, ip)];
    let said = [0, 1].map(|end: usize| ends[end].description().unwrap());
    let site = site(device);
    let [first, second] = ends;
    let join = |end: Box<EthernetEndpoint>, rank: u32, description: &[u8]| {
        let link = end.join(peer(rank, &site, description), LONG).unwrap();
        Connection::over(link)
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| join(second, 0, &said[0]));
        [join(first, 1, &said[1]), other.join().unwrap()]
    })
}

fn pair(device: &Device) -> [Connection; 2] {
    pair_at(device, LOOPBACK)
}

/// A connection to rank 3, and the socket at its other end, which the test plays.
fn played(device: &Device, timeout: Duration) -> (Connection, TcpStream) {
    let listener = crate::net::listen(SocketAddr::from((LOOPBACK, 0))).unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    theirs.set_read_timeout(Some(LONG)).unwrap();
    let (ours, _) = listener.accept().unwrap();
    let process = process_id().unwrap();
    let part = Part::Met(Greeted { stream: ours, early: Vec::new() });
    let meeting = Meeting { part, deadline: Deadline::after(timeout), life: unheard_of() };
    let link = EthernetLink::start(device, Rank(3), process, meeting, timeout).unwrap();
    (Connection::over(Arc::new(link)), theirs)
}

fn own<T: Pod>(buffer: &Buffer<T>) -> RegisteredMemory {
    RegisteredMemory::of(buffer, Transports::ETHERNET).unwrap()
}

/// As a peer knows it.
fn told(device: &Device, memory: &RegisteredMemory) -> RegisteredMemory {
    let told = RegisteredMemory::deserialize(device, &memory.serialize().unwrap()).unwrap();
    assert!(told.address().is_none(), "a peer maps nothing");
    told
}

/// Bytes that repeat at no length that a transfer could be off by.
fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Deadline::after(LONG);
    while !holds() {
        assert!(deadline.left().is_some(), "{what}");
        thread::yield_now();
    }
}

/// A word of memory, its owner's side and a peer's.
fn word(device: &Device) -> (Buffer<u64>, RegisteredMemory, RegisteredMemory) {
    let buffer = device.allocate::<u64>(1).unwrap();
    let registered = own(&buffer);
    let there = told(device, &registered);
    (buffer, registered, there)
}

fn text(result: Result<impl Sized>) -> String {
    result.err().expect("it fails").to_string()
}
