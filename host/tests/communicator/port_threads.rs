//! Port channels between ranks that are threads of this process.

use std::time::{Duration, Instant};

use warpwire::Error;
use warpwire::abi::{ChannelId, Rank, WaitError, WaitKind};
use warpwire::communicator::Communicator;
use warpwire_kernels::port::{PortCall, PortRequests};

use crate::jobs::{LONG, each, other};
use crate::ports::{Calls, Ports, bounce, gather};

/// A peer that does not signal is named, and the next round is right.
fn miss_a_signal(communicator: &Communicator) {
    let (own, peer) = (communicator.rank(), other(communicator));
    let ports = Ports::new(communicator, 16);
    if own == Rank(0) {
        let wait = Calls::of(PortCall::Wait, 1);
        let args = ports.calls(peer, wait, &ports.stream, Duration::from_millis(50));
        ports.queue::<PortRequests>(&ports.stream, 1, args).unwrap();
        let error = ports.stream.synchronize().unwrap_err();
        assert!(
            matches!(
                error,
                Error::WaitFailed {
                    outcome: WaitError::Timeout,
                    kind: WaitKind::Semaphore,
                    rank: Rank(0),
                    peer: Rank(1),
                    channel: ChannelId(41),
                    ..
                }
            ),
            "{error}"
        );
        ports.stream.reset().unwrap();
    }
    communicator.barrier().unwrap();
    let call = if own == Rank(0) { PortCall::Wait } else { PortCall::Signal };
    ports.run::<PortRequests>(1, ports.calls(peer, Calls::of(call, 100), &ports.stream, LONG));
    ports.service.health().unwrap();
    ports.end();
}

/// Slots of semaphores that a service had come back when it is gone on both sides.
#[test]
fn a_service_gives_its_slots_back() {
    each(2, |communicator| {
        let ports = Ports::new(&communicator, 16);
        let calls = Calls::of(PortCall::PutWithSignalAndFlush, 3);
        ports.run::<PortRequests>(2, ports.calls(other(&communicator), calls, &ports.stream, LONG));
        assert!(communicator.lent_slots() > 0);
        ports.end();
        communicator.barrier().unwrap();
        let begun = Instant::now();
        while communicator.lent_slots() > 0 {
            assert!(begun.elapsed() < LONG, "{:?}", communicator.rank());
        }
        communicator.barrier().unwrap();
    });
}

#[test]
fn threads_gather_through_ports() {
    for size in [2, 3, 5, 8] {
        each(size, |communicator| gather(&communicator));
    }
}

#[test]
fn messages_bounce_through_ports() {
    each(2, |communicator| bounce(&communicator));
}

#[test]
fn a_missing_signal_names_the_peer() {
    each(2, |communicator| miss_a_signal(&communicator));
}
