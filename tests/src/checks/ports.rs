//! Port channels between ranks that share the device, each a thread with a proxy of its own.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use warpwire::Error;
use warpwire::abi::{Rank, WaitError};
use warpwire::bootstrap::{LocalBootstrap, Tag};
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::{Device, DeviceKind, LaunchConfig};
use warpwire::memory::Transports;
use warpwire_kernels::port::{PortCall, PortRequests};

use super::rig::{LONG, POISON};
use crate::bytes::bytes;
use rig::{Calls, Ports};

/// The same rig, and the same exercises, as the tests of ranks in processes have.
#[path = "../../../host/tests/support/ports.rs"]
#[allow(
    missing_docs,
    unreachable_pub,
    reason = "a file of tests, documented where it says more than the names"
)]
mod rig;

/// Runs `ranks` ranks on the device.
fn each(device: &Device, ranks: usize, run: impl Fn(Communicator) + Sync) {
    let run = &run;
    thread::scope(|scope| {
        for bootstrap in LocalBootstrap::group(ranks).unwrap() {
            scope.spawn(move || run(Communicator::new(Arc::new(bootstrap), device).unwrap()));
        }
    });
}

/// Messages to and fro, with a flush each and without, and every word of each looked at.
pub fn messages_bounce_through_ports(device: &Device) {
    each(device, 2, |communicator| rig::bounce(&communicator));
}

/// Every rank's bytes come to every rank, in sizes that do not divide.
pub fn all_gather_through_ports(device: &Device) {
    for ranks in [2, 4] {
        each(device, ranks, |communicator| rig::gather(&communicator));
    }
}

/// When a kernel that flushes its put has ended, every byte of it lies at the receiver, and nothing beside it is touched: from
/// one byte to what a copy engine is busy with for long, at offsets that divide nothing. Copies that take longer than the host
/// takes to look stand before it in the connection, so that a flush which comes early is seen to.
pub fn a_flushed_put_has_arrived(device: &Device) {
    const MOST: usize = (16 << 20) + 3;
    const MARGIN: usize = 64;
    // What is looked at; the copies that stand before go behind it.
    const CHECKED: usize = MOST + 2 * MARGIN;
    const BEFORE: usize = 16 << 20;
    each(device, 2, |communicator| {
        let ports = Ports::new(&communicator, CHECKED + BEFORE);
        let (own, peer) = (ports.own(), Rank(1 - ports.own().0));
        let ask = |calls| ports.run::<PortRequests>(1, ports.calls(peer, calls, &ports.stream, LONG));
        let mut came = vec![0; CHECKED];
        for (round, (len, from, to)) in
            [(1, 0, 0), (4097, 3, 13), (64 << 10, 0, 0), ((1 << 20) + 1, 13, 5), (MOST, 1, MARGIN)]
                .into_iter()
                .enumerate()
        {
            let sent = bytes(round as u64, len);
            let mut expected = vec![POISON; CHECKED];
            expected[to..to + len].copy_from_slice(&sent);
            match own {
                Rank(0) => ports.buffer.write_at(from, &sent).unwrap(),
                _ => ports.buffer.fill_bytes(POISON).unwrap(),
            }
            ports.barrier();
            if own == Rank(0) {
                ask(Calls { call: PortCall::Put, to: CHECKED, from: 0, bytes: BEFORE, count: 32 });
                ask(Calls { call: PortCall::PutWithSignalAndFlush, to, from, bytes: len, count: 1 });
            }
            // The sender's kernel has ended, and with it the flush: the receiver waits for nothing else.
            ports.barrier();
            if own == Rank(1) {
                ports.buffer.read_at(0, &mut came).unwrap();
                assert!(came == expected, "{len} bytes from {from} to {to}");
            }
            ports.barrier();
        }
        ports.end();
    });
}

/// While a grid waits that takes every place that it is given, a write comes all the same: a short one and one that is longer than
/// what one block makes. One block more, and the grid is refused.
pub fn writes_come_beside_a_full_grid(device: &Device) {
    const LEN: usize = 1 << 20;
    const THREADS: u32 = 1024;
    // Less than the grid waits.
    const PATIENCE: Duration = Duration::from_secs(20);
    each(device, 2, |communicator| {
        let ports = Ports::new(&communicator, LEN);
        let (own, peer) = (ports.own(), Rank(1 - ports.own().0));
        let registered = communicator.register_memory(&ports.buffer, Transports::CUDA_IPC).unwrap();
        let memories = communicator.all_gather_memory(&registered).unwrap();
        let mut connecting = communicator.connect(EndpointConfig::CudaIpc, peer, Tag(3)).unwrap();
        let connection = connecting.wait(LONG).unwrap();
        let kernel = ports.function::<PortRequests>();
        let args = ports.calls(peer, Calls::of(PortCall::Wait, 1), &ports.stream, LONG);
        // SAFETY: the service, the buffers and the board outlive the launches, which are waited for.
        let launch = |blocks: u32| unsafe {
            ports.stream.launch(&kernel, LaunchConfig::new(blocks, THREADS).concurrent(1), args)
        };
        // The CPU device's copies need none of its places.
        let blocks = match device.properties().kind {
            DeviceKind::Cpu => 2,
            _ => match launch(kernel.resident_blocks(THREADS, 0).unwrap()).unwrap_err() {
                Error::TooManyBlocks { limit, room, .. } if room > 0 => limit,
                other => panic!("{other}"),
            },
        };
        let sent = bytes(1, LEN);
        match own {
            Rank(0) => ports.buffer.fill_bytes(POISON).unwrap(),
            _ => ports.buffer.write(&sent).unwrap(),
        }
        if own == Rank(0) {
            launch(blocks).unwrap();
            // Nothing tells that every block has its place; if some have not, less is tested.
            thread::sleep(Duration::from_millis(20));
        }
        ports.barrier();
        for len in [4096, LEN as u64] {
            if own == Rank(1) {
                connection.write(&memories[0], 0, &memories[1], 0, len).unwrap();
                connection.flush(PATIENCE).unwrap();
            }
        }
        ports.barrier();
        if own == Rank(0) {
            // Nobody signals: the grid was there all the time.
            ports.stream.abort();
            let ended = ports.stream.synchronize().unwrap_err();
            assert!(matches!(ended, Error::WaitFailed { outcome: WaitError::Aborted, .. }), "{ended}");
            assert!(ports.buffer.read().unwrap() == sent);
        }
        ports.end();
    });
}

/// C20: kernels of two streams put through one port at once, through a ring that holds fewer requests than they have, and every
/// byte and every signal of both arrives.
pub fn two_streams_share_a_port(device: &Device) {
    const THREADS: u32 = 24;
    const PUTS: u32 = 10;
    const LEN: usize = 4099;
    each(device, 2, |communicator| {
        let ports = Ports::new(&communicator, 2 * LEN + 64);
        let own = ports.own();
        let second = communicator.context().stream().unwrap();
        ports.service.watch(&second);
        let streams = [&ports.stream, &second];
        // Where each stream's message begins: no copy of the one ends where the other's begins.
        let places = [0, LEN + 13];
        let given = bytes(1, 2 * LEN + 64);
        ports.buffer.write(if own == Rank(0) { &given } else { &[POISON; 2 * LEN + 64] }).unwrap();
        ports.barrier();
        if own == Rank(0) {
            let calls = |call, at: usize, count| Calls { call, to: at, from: at, bytes: LEN, count };
            for (stream, at) in streams.iter().zip(places) {
                let calls = calls(PortCall::PutWithSignalAndFlush, at, PUTS);
                let args = ports.calls(Rank(1), calls, stream, LONG);
                ports.queue::<PortRequests>(stream, THREADS, args).unwrap();
            }
            streams.into_iter().for_each(|stream| ports.synchronize(stream));
        } else {
            let calls = Calls::of(PortCall::Wait, 2 * PUTS * THREADS);
            // A signal for each put of both, and none besides.
            ports.run::<PortRequests>(1, ports.calls(Rank(0), calls, &ports.stream, LONG));
            let mut expected = vec![POISON; 2 * LEN + 64];
            places.into_iter().for_each(|at| expected[at..at + LEN].copy_from_slice(&given[at..at + LEN]));
            assert!(ports.buffer.read().unwrap() == expected, "what two streams have put");
        }
        ports.end();
    });
}

/// C55: what is first asked of a port is recorded, while its proxy runs; each repetition puts what its source then holds.
pub fn a_ports_first_use_is_recorded(device: &Device) {
    const LEN: usize = 1001;
    each(device, 2, |communicator| {
        let ports = Ports::new(&communicator, LEN);
        let (own, stream) = (ports.own(), &ports.stream);
        let call = if own == Rank(0) { PortCall::PutWithSignalAndFlush } else { PortCall::Wait };
        let calls = Calls { call, count: 1, to: 1, from: 1, bytes: LEN - 1 };
        let args = ports.calls(Rank(1 - own.0), calls, stream, LONG);
        ports.buffer.fill_bytes(POISON).unwrap();
        ports.barrier();
        let graph = stream.capture(|stream| ports.queue::<PortRequests>(stream, 1, args)).unwrap();
        ports.barrier();
        assert!(ports.buffer.read().unwrap() == [POISON; LEN], "{own:?}: a recording has run");
        for round in 0..3 {
            let given = bytes(round, LEN);
            if own == Rank(0) {
                ports.buffer.write(&given).unwrap();
            }
            // SAFETY: the service, the buffers and the board outlive the launch, which is waited for.
            unsafe { graph.launch(stream) }.unwrap();
            ports.synchronize(stream);
            if own == Rank(1) {
                let seen = ports.buffer.read().unwrap();
                assert!(seen[0] == POISON && seen[1..] == given[1..], "repetition {round}");
            }
            ports.barrier();
        }
        ports.end();
    });
}
