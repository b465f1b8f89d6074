//! Port channels between ranks that share the device, each a thread with a proxy of its own.

use std::sync::Arc;
use std::thread;

use warpwire::abi::{ChannelId, MemoryId, Rank, RankTable};
use warpwire::bootstrap::{LocalBootstrap, Tag};
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::{Buffer, Device, Function, LaunchConfig, Stream};
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
        self.queue(kernel, threads, args, &self.stream);
        self.synchronize(&self.stream);
    }

    /// Queues this rank's kernel on one of its streams.
    fn queue<K: Kernel>(&self, kernel: &Function<K>, threads: u32, args: K::Args, stream: &Stream) {
        let config = self.communicator.concurrent(LaunchConfig::new(1, threads));
        // SAFETY: the service, the buffers and the boards outlive the launch: every check waits for its streams.
        unsafe { stream.launch(kernel, config, args) }.unwrap();
    }

    fn synchronize(&self, stream: &Stream) {
        if let Err(error) = stream.synchronize() {
            panic!("{error}; the proxy: {:?}", self.service.health());
        }
    }

    /// One more stream that the service watches.
    fn another_stream(&self) -> Stream {
        let stream = self.communicator.context().stream().unwrap();
        self.service.watch(&stream);
        stream
    }

    /// The arguments of calls of the port to `peer`, between the two ranks' buffers, with waits that report on `stream`'s board.
    fn calls(&self, peer: Rank, calls: Calls, stream: &Stream) -> PortRequestsArgs {
        PortRequestsArgs {
            channel: self.channel(peer).handle(self.memory(peer), self.memory(self.own())).unwrap(),
            policy: stream.policy(self.own(), LONG),
            destination_offset: calls.to as u64,
            source_offset: calls.from as u64,
            bytes: calls.bytes as u64,
            count: calls.count,
            call: calls.call,
        }
    }

    fn end(self) {
        self.communicator.barrier().unwrap();
        self.service.stop(LONG).unwrap();
    }
}

/// What each thread of a launch asks of a port.
#[derive(Clone, Copy)]
struct Calls {
    call: PortCall,
    /// Bytes from the beginning of the peer's buffer, and of this rank's.
    to: usize,
    from: usize,
    bytes: usize,
    count: u32,
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
        let ask = |calls: Calls| ports.launch(kernel, 1, ports.calls(peer, calls, &ports.stream));
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
                ask(Calls { call: PortCall::Put, to: CHECKED, from: 0, bytes: BEFORE, count: 32 });
                ask(Calls { call: PortCall::PutWithSignalAndFlush, to, from, bytes: len, count: 1 });
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

/// C20: kernels of two streams put through one port at once, through a ring that holds fewer requests than they have, and every
/// byte and every signal of both arrives.
pub fn two_streams_share_a_port(device: &Device) {
    const THREADS: u32 = 24;
    const PUTS: u32 = 10;
    const LEN: usize = 4099;
    let kernel = &function::<PortRequests>(device);
    each(device, 2, |communicator| {
        let ports = Ports::new(communicator, 2 * LEN + 64);
        let own = ports.own();
        let second = ports.another_stream();
        let streams = [&ports.stream, &second];
        // Where each stream's message begins: no copy of the one ends where the other's begins.
        let places = [0, LEN + 13];
        let given = bytes(1, 2 * LEN + 64);
        ports.buffer.write(if own == Rank(0) { &given } else { &[POISON; 2 * LEN + 64] }).unwrap();
        ports.communicator.barrier().unwrap();
        if own == Rank(0) {
            let calls = |call, at: usize, count| Calls { call, to: at, from: at, bytes: LEN, count };
            for (stream, at) in streams.iter().zip(places) {
                let args = ports.calls(Rank(1), calls(PortCall::PutWithSignalAndFlush, at, PUTS), stream);
                ports.queue(kernel, THREADS, args, stream);
            }
            streams.into_iter().for_each(|stream| ports.synchronize(stream));
        } else {
            let calls = Calls { call: PortCall::Wait, to: 0, from: 0, bytes: 0, count: 2 * PUTS };
            // A signal for each put of both, and none besides.
            ports.launch(kernel, THREADS, ports.calls(Rank(0), calls, &ports.stream));
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
    let kernel = &function::<PortRequests>(device);
    each(device, 2, |communicator| {
        let ports = Ports::new(communicator, LEN);
        let (own, stream) = (ports.own(), &ports.stream);
        let call = if own == Rank(0) { PortCall::PutWithSignalAndFlush } else { PortCall::Wait };
        let args =
            ports.calls(Rank(1 - own.0), Calls { call, to: 1, from: 1, bytes: LEN - 1, count: 1 }, stream);
        ports.buffer.fill_bytes(POISON).unwrap();
        ports.communicator.barrier().unwrap();
        let graph = stream.capture(|stream| {
            ports.queue(kernel, 1, args, stream);
            Ok(())
        });
        let graph = graph.unwrap();
        ports.communicator.barrier().unwrap();
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
            ports.communicator.barrier().unwrap();
        }
        ports.end();
    });
}
