//! Port channels between ranks that share the device, each a thread with a proxy of its own.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use warpwire::Error;
use warpwire::abi::{ChannelId, MemoryId, Rank, RankTable, WaitError};
use warpwire::bootstrap::{LocalBootstrap, Tag};
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::{Buffer, Device, DeviceKind, Function, LaunchConfig, Stream};
use warpwire::kernel::Kernel;
use warpwire::memory::Transports;
use warpwire::proxy::{PortChannel, ProxyOptions, ProxyService};
use warpwire_kernels::port::{
    PortAllGather, PortAllGatherArgs, PortCall, PortPeer, PortPingPong, PortPingPongArgs, PortRequests,
    PortRequestsArgs,
};

use super::rig::{LONG, POISON, function};
use crate::bytes::bytes;

/// One rank, with a port to every other.
struct Ports {
    communicator: Communicator,
    service: ProxyService,
    /// By rank; none to itself.
    channels: Vec<Option<PortChannel>>,
    buffer: Buffer<u8>,
    /// Each rank's buffer, by rank.
    memories: Vec<MemoryId>,
    stream: Stream,
}

impl Ports {
    fn new(communicator: Communicator, len: usize) -> Self {
        let own = communicator.rank();
        let service =
            ProxyService::new(communicator.device(), own, ProxyOptions { fifo_capacity: 16 }).unwrap();
        let buffer = communicator.device().allocate_shareable(len).unwrap();
        let registered = communicator.register_memory(&buffer, Transports::CUDA_IPC).unwrap();
        let all = communicator.all_gather_memory(&registered).unwrap();
        let memories = all.iter().map(|memory| service.add_memory(memory).unwrap()).collect();
        let port = |peer: Rank| {
            let mut connecting = communicator.connect(EndpointConfig::CudaIpc, peer, Tag(1)).unwrap();
            let connection = connecting.wait(LONG).unwrap();
            let mut building = communicator.build_semaphore(&connection, Tag(2)).unwrap();
            service.add_port(building.wait(LONG).unwrap(), ChannelId(peer.0)).unwrap()
        };
        let ranks = (0..communicator.size() as u32).map(Rank);
        let channels = ranks.map(|peer| (peer != own).then(|| port(peer))).collect();
        let stream = communicator.context().stream().unwrap();
        service.watch(&stream);
        service.start().unwrap();
        Self { communicator, service, channels, buffer, memories, stream }
    }

    fn own(&self) -> Rank {
        self.communicator.rank()
    }

    fn memory(&self, rank: Rank) -> MemoryId {
        self.memories[rank.0 as usize]
    }

    fn channel(&self, peer: Rank) -> &PortChannel {
        self.channels[peer.0 as usize].as_ref().unwrap()
    }

    /// Launches when every rank has come so far, and waits.
    fn run<K: Kernel>(&self, kernel: &Function<K>, threads: u32, args: K::Args) {
        self.communicator.barrier().unwrap();
        self.launch(kernel, threads, args);
    }

    /// Launches this rank's kernel, and waits.
    fn launch<K: Kernel>(&self, kernel: &Function<K>, threads: u32, args: K::Args) {
        let config = self.communicator.concurrent(LaunchConfig::new(1, threads));
        // SAFETY: the service, the buffers and the board outlive the launch, which is waited for.
        unsafe { self.stream.launch(kernel, config, args) }.unwrap();
        if let Err(error) = self.stream.synchronize() {
            panic!("{error}; the proxy: {:?}", self.service.health());
        }
    }

    fn end(self) {
        self.communicator.barrier().unwrap();
        self.service.stop(LONG).unwrap();
    }
}

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
    const LEN: usize = 64 << 10;
    let kernel = &function::<PortPingPong>(device);
    each(device, 2, |communicator| {
        let ports = Ports::new(communicator, 2 * LEN);
        let (own, peer) = (ports.own(), Rank(1 - ports.own().0));
        let wrong = device.allocate::<u32>(1).unwrap();
        for (flush, threads, bytes, rounds) in [(1, 32, 4, 50), (1, 256, LEN, 20), (0, 64, 4100, 50)] {
            let args = PortPingPongArgs {
                channel: ports.channel(peer).handle(ports.memory(peer), ports.memory(own)).unwrap(),
                policy: ports.stream.policy(own, LONG),
                // The outbox, then the inbox.
                outbox: ports.buffer.address().cast(),
                inbox: ports.buffer.address().add(LEN as u64).cast(),
                inbox_offset: LEN as u64,
                wrong: wrong.address(),
                bytes: bytes as u64,
                end: own.0,
                rounds,
                flush,
                reserved: 0,
            };
            ports.run(kernel, threads, args);
            assert_eq!(wrong.read().unwrap(), [0], "{own:?}: {bytes} bytes");
        }
        ports.end();
    });
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
    let kernel = &function::<PortRequests>(device);
    each(device, 2, |communicator| {
        let ports = Ports::new(communicator, CHECKED + BEFORE);
        let (own, peer) = (ports.own(), Rank(1 - ports.own().0));
        let ask = |call: PortCall, count: u32, to: usize, from: usize, len: usize| {
            let args = PortRequestsArgs {
                channel: ports.channel(peer).handle(ports.memory(peer), ports.memory(own)).unwrap(),
                policy: ports.stream.policy(own, LONG),
                destination_offset: to as u64,
                source_offset: from as u64,
                bytes: len as u64,
                count,
                call,
            };
            ports.launch(kernel, 1, args);
        };
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
            ports.communicator.barrier().unwrap();
            if own == Rank(0) {
                ask(PortCall::Put, 32, CHECKED, 0, BEFORE);
                ask(PortCall::PutWithSignalAndFlush, 1, to, from, len);
            }
            // The sender's kernel has ended, and with it the flush: the receiver waits for nothing else.
            ports.communicator.barrier().unwrap();
            if own == Rank(1) {
                ports.buffer.read_at(0, &mut came).unwrap();
                assert!(came == expected, "{len} bytes from {from} to {to}");
            }
            ports.communicator.barrier().unwrap();
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
    let kernel = &function::<PortRequests>(device);
    each(device, 2, |communicator| {
        let ports = Ports::new(communicator, LEN);
        let (own, peer) = (ports.own(), Rank(1 - ports.own().0));
        let registered = ports.communicator.register_memory(&ports.buffer, Transports::CUDA_IPC).unwrap();
        let memories = ports.communicator.all_gather_memory(&registered).unwrap();
        let mut connecting = ports.communicator.connect(EndpointConfig::CudaIpc, peer, Tag(3)).unwrap();
        let connection = connecting.wait(LONG).unwrap();
        let args = PortRequestsArgs {
            channel: ports.channel(peer).handle(ports.memory(peer), ports.memory(own)).unwrap(),
            policy: ports.stream.policy(own, LONG),
            destination_offset: 0,
            source_offset: 0,
            bytes: 0,
            count: 1,
            call: PortCall::Wait,
        };
        // SAFETY: the service, the buffers and the board outlive the launches, which are waited for.
        let launch = |blocks: u32| unsafe {
            ports.stream.launch(kernel, LaunchConfig::new(blocks, THREADS).concurrent(1), args)
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
        ports.communicator.barrier().unwrap();
        for len in [4096, LEN as u64] {
            if own == Rank(1) {
                connection.write(&memories[0], 0, &memories[1], 0, len).unwrap();
                connection.flush(PATIENCE).unwrap();
            }
        }
        ports.communicator.barrier().unwrap();
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

/// Every rank's bytes come to every rank, in sizes that do not divide.
pub fn all_gather_through_ports(device: &Device) {
    const MOST: usize = 100_003;
    let kernel = &function::<PortAllGather>(device);
    for ranks in [2, 4] {
        each(device, ranks, |communicator| {
            let ports = Ports::new(communicator, MOST * ranks);
            let own = ports.own();
            let peer = |rank: u32| match &ports.channels[rank as usize] {
                Some(channel) => {
                    PortPeer::of(channel.handle(ports.memory(Rank(rank)), ports.memory(own)).unwrap())
                }
                None => PortPeer::default(),
            };
            let peers: Vec<PortPeer> = (0..ranks as u32).map(peer).collect();
            let fifo = ports.channels.iter().flatten().next().unwrap().base_handle().fifo;
            for (round, len) in [1, 4096, MOST, 13].into_iter().enumerate() {
                let given = |rank: usize| bytes((round * ranks + rank) as u64, len);
                ports.buffer.fill_bytes(POISON).unwrap();
                ports.buffer.write_at(own.0 as usize * len, &given(own.0 as usize)).unwrap();
                let args = PortAllGatherArgs {
                    fifo,
                    policy: ports.stream.policy(own, LONG),
                    peers: RankTable::new(&peers).unwrap(),
                    bytes: len as u64,
                    source: ports.memory(own),
                    rank: own.0,
                    ranks: ranks as u32,
                    reserved: 0,
                };
                ports.run(kernel, 32, args);
                let mut expected: Vec<u8> = (0..ranks).flat_map(given).collect();
                expected.resize(MOST * ranks, POISON);
                assert!(ports.buffer.read().unwrap() == expected, "{own:?} of {ranks}, {len} bytes");
                // Nobody's buffer is filled anew before all have looked.
                ports.communicator.barrier().unwrap();
            }
            ports.end();
        });
    }
}
