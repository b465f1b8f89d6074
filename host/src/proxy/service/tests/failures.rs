//! What cannot be done ends the proxy, and every wait with it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use warpwire_device::abi::{ChannelId, MAX_MEMORIES, MAX_PORTS, MemoryId, Rank, WaitError, WaitKind};
use warpwire_kernels::fifo::{FifoPush, FifoPushArgs};
use warpwire_kernels::port::PortCall;

use super::super::lanes::Lanes;
use super::link::LocalLink;
use super::rig::{Calls, LONG, Port, Rig, registered};
use crate::connection::{Connection, Transport};
use crate::device::{LaunchConfig, builtin_module};
use crate::error::{ConnectionError, Error, ErrorKind, ProxyError};

/// Runs calls that end in an abort, and gives what the handler says.
fn failure(rig: &Rig, port: &Port, calls: Calls) -> Arc<Error> {
    let ended = rig.run(port, calls).unwrap_err();
    assert!(matches!(ended, Error::WaitFailed { outcome: WaitError::Aborted, .. }), "{ended}");
    match rig.service.health().unwrap_err() {
        Error::Proxy(ProxyError::Handler { source, .. }) => source,
        other => panic!("{other}"),
    }
}

/// C10: an id that was never given out is no index.
#[test]
fn unknown_memories_and_ports_are_errors() {
    let rig = Rig::new(8);
    let port = rig.port(Rank(1), 0);
    let memory = rig.add(&rig.device.allocate::<u8>(16).unwrap());
    let last = MemoryId::new(MAX_MEMORIES - 1).unwrap();
    let refused = port.channel.handle(last, memory).unwrap_err();
    assert!(
        matches!(refused, Error::Proxy(ProxyError::UnknownId { what: "memory", id: 511, given: 1, .. })),
        "{refused}"
    );
    // A handle that was made by hand.
    let put = Calls {
        to: (memory, 0),
        from: (last, 0),
        bytes: 8,
        ..Calls::of(PortCall::PutWithSignalAndFlush, 1, 1)
    };
    let error = failure(&rig, &port, put);
    assert!(error.to_string().contains("the proxy of rank 0 has no memory 511"), "{error}");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(port.signals(), 0, "nothing of a request that fails is done");
}

#[test]
fn a_range_outside_its_memory_is_an_error() {
    let rig = Rig::new(8);
    let port = rig.port(Rank(1), 0);
    let memory = rig.add(&rig.device.allocate::<u8>(16).unwrap());
    let put = Calls {
        to: (memory, 9),
        from: (memory, 0),
        bytes: 8,
        ..Calls::of(PortCall::PutWithSignalAndFlush, 1, 1)
    };
    let error = failure(&rig, &port, put);
    assert!(error.to_string().contains("8 bytes at offset 9 lie outside"), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(port.link.writes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_connection_that_fails_names_its_peer() {
    let rig = Rig::new(8);
    let (port, other) = (rig.port(Rank(5), 0), rig.port(Rank(1), 1));
    port.link.broken.store(true, Ordering::Relaxed);
    // Also kernels that wait for another peer are ended.
    let waiting = rig.stream();
    rig.launch(&waiting, &other, Calls::of(PortCall::Wait, 1, 1));
    let ended = rig.run(&port, Calls::of(PortCall::Signal, 1, 100)).and_then(|()| waiting.synchronize());
    assert!(matches!(ended, Err(Error::WaitFailed { outcome: WaitError::Aborted, .. })), "{ended:?}");
    let failure = rig.service.health().unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::PeerLost);
    let Error::Proxy(ProxyError::Handler { source, .. }) = failure else { panic!("{failure}") };
    assert!(matches!(&*source, Error::Connection(ConnectionError::Failed { peer: Rank(5), .. })), "{source}");
    let _ = waiting.synchronize();
}

/// C10: the 513th memory and the 1,025th port.
#[test]
fn tables_are_bounded() {
    let rig = Rig::new(8);
    let memory = registered(&rig.device.allocate::<u8>(1).unwrap());
    for number in 0..MAX_MEMORIES {
        assert_eq!(rig.service.add_memory(&memory).unwrap().number(), number);
    }
    let full = rig.service.add_memory(&memory).unwrap_err();
    assert!(
        matches!(full, Error::Proxy(ProxyError::TableFull { what: "memories", limit: 512, .. })),
        "{full}"
    );
    let first = rig.port(Rank(1), 0);
    for number in 1..MAX_PORTS {
        assert_eq!(rig.port(Rank(1), number).channel.port().number(), number);
    }
    let Err(full) = rig.try_port(Rank(1), 1024) else { panic!("a 1,025th port") };
    assert!(matches!(full, Error::Proxy(ProxyError::TableFull { what: "ports", limit: 1024, .. })), "{full}");
    assert_eq!(full.kind(), ErrorKind::Limit);
    // The first is still the first.
    rig.run(&first, Calls::of(PortCall::Signal, 1, 3)).unwrap();
    rig.run(&first, Calls::of(PortCall::Flush, 1, 1)).unwrap();
    assert_eq!(first.signals(), 3);
}

/// A flush that is not complete in time is reported with the channel's peer, and the next one is right.
#[test]
fn a_flush_that_takes_too_long_is_reported() {
    let rig = Rig::new(8);
    let port = rig.port(Rank(6), 4);
    port.link.stalled.store(true, Ordering::Relaxed);
    let stream = rig.stream();
    let calls = Calls { timeout: Duration::from_millis(50), ..Calls::of(PortCall::Flush, 1, 1) };
    rig.launch(&stream, &port, calls);
    let error = stream.synchronize().unwrap_err();
    assert!(error.to_string().contains("a flush of a port channel"), "{error}");
    let Error::WaitFailed { outcome, kind, rank, peer, channel, expected, seen, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((outcome, kind), (WaitError::Timeout, WaitKind::Flush));
    assert_eq!((rank, peer, channel), (Rank(0), Rank(6), ChannelId(4)));
    assert_eq!((expected, seen), (1, 0));
    port.link.stalled.store(false, Ordering::Relaxed);
    stream.reset().unwrap();
    rig.launch(&stream, &port, Calls::of(PortCall::Flush, 1, 1));
    stream.synchronize().unwrap();
}

/// C86: a stop with flushes that do not end aborts their kernels, and says how many there were; nothing is published later.
#[test]
fn a_stop_with_flushes_under_way() {
    let rig = Rig::new(128);
    let port = rig.port(Rank(1), 0);
    port.link.stalled.store(true, Ordering::Relaxed);
    let stream = rig.stream();
    rig.launch(&stream, &port, Calls::of(PortCall::Flush, 100, 1));
    while port.link.marks() < 100 {
        std::thread::yield_now();
    }
    let error = rig.service.stop(Duration::from_millis(20)).unwrap_err();
    assert!(
        matches!(error, Error::Proxy(ProxyError::Unfinished { pending: 100, busy: 1, triggers: false, .. })),
        "{error}"
    );
    let ended = stream.synchronize().unwrap_err();
    assert!(
        matches!(ended, Error::WaitFailed { outcome: WaitError::Aborted, kind: WaitKind::Flush, .. }),
        "{ended}"
    );
    // It goes on where it was.
    port.link.stalled.store(false, Ordering::Relaxed);
    stream.reset().unwrap();
    rig.service.start().unwrap();
    rig.launch(&stream, &port, Calls::of(PortCall::Flush, 100, 1));
    stream.synchronize().unwrap();
    rig.service.stop(LONG).unwrap();
}

/// A push that found no room leaves a hole; a reset of the stopped service makes it as new, and signals count on.
#[test]
fn a_service_is_reset_after_a_failed_push() {
    let rig = Rig::new(2);
    let port = rig.port(Rank(1), 0);
    rig.run(&port, Calls::of(PortCall::Signal, 1, 5)).unwrap();
    rig.run(&port, Calls::of(PortCall::Flush, 1, 1)).unwrap();
    rig.service.stop(LONG).unwrap();
    let stream = rig.stream();
    let calls = Calls { timeout: Duration::from_millis(50), ..Calls::of(PortCall::Signal, 1, 3) };
    rig.launch(&stream, &port, calls);
    let error = stream.synchronize().unwrap_err();
    assert!(matches!(error, Error::WaitFailed { kind: WaitKind::Fifo, .. }), "{error}");
    rig.service.start().unwrap();
    let refused = rig.service.reset().unwrap_err();
    assert!(matches!(refused, Error::Proxy(ProxyError::Consumed { .. })), "{refused}");
    rig.service.stop(LONG).unwrap();
    rig.service.reset().unwrap();
    rig.service.start().unwrap();
    rig.run(&port, Calls::of(PortCall::Signal, 1, 5)).unwrap();
    rig.run(&port, Calls::of(PortCall::Flush, 1, 1)).unwrap();
    // Of the three in the middle, the ring took two.
    assert_eq!(port.signals(), 5 + 2 + 5);
}

/// A trigger that no port channel pushes.
#[test]
fn a_trigger_that_is_no_request_is_an_error() {
    let rig = Rig::new(8);
    let port = rig.port(Rank(1), 0);
    let function = rig.device.load(builtin_module()).unwrap().function::<FifoPush>().unwrap();
    let stream = rig.stream();
    let fifo = port.channel.base_handle().fifo;
    // Kind 0 twice: two upper halves.
    let args = FifoPushArgs { fifo, policy: stream.policy(Rank(0), LONG), count: 2, sync: 1 };
    // SAFETY: the service and the board outlive the launch, which is waited for below.
    unsafe { stream.launch(&function, LaunchConfig::new(1, 1), args) }.unwrap();
    stream.synchronize().unwrap_err();
    let failure = rig.service.health().unwrap_err();
    let Error::Proxy(ProxyError::Handler { source, .. }) = failure else { panic!("{failure}") };
    assert!(matches!(&*source, Error::Proxy(ProxyError::NoRequest { words: [0, 1], .. })), "{source}");
}

/// A connection has a stream, and so has the kernel: no more of them than run beside each other.
#[test]
fn connections_have_room_beside_the_kernel() {
    let device = super::rig::cpu();
    let mut properties = device.properties().clone();
    let connection = |transport| Connection::over(Arc::new(LocalLink::new(Rank(1), transport)) as Arc<_>);
    let copying = || connection(Transport::CudaIpc);
    properties.max_concurrent_streams = Some(3);
    let lanes = Lanes::of(&properties, Rank(4));
    let (first, second) = (copying(), copying());
    lanes.take(&first).unwrap();
    lanes.take(&second).unwrap();
    // One that has its lane, or needs none, takes no further one.
    lanes.take(&first.clone()).unwrap();
    lanes.take(&connection(Transport::InfiniBand)).unwrap();
    let refused = lanes.take(&copying()).unwrap_err();
    assert!(
        matches!(refused, Error::Proxy(ProxyError::TooManyConnections { rank: Rank(4), asked: 3, limit: 2 })),
        "{refused}"
    );
    assert!(
        refused.kind() == ErrorKind::Limit && refused.to_string().contains("CUDA_DEVICE_MAX_CONNECTIONS")
    );
    drop(second);
    lanes.take(&copying()).unwrap();
    // The CPU device's streams are threads.
    let unlimited = Lanes::of(device.properties(), Rank(0));
    let many: Vec<Connection> = (0..100).map(|_| copying()).collect();
    many.iter().for_each(|connection| unlimited.take(connection).unwrap());
}
