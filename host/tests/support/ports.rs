//! Ranks that ask their proxies through port channels: what the tests of ports do, in threads and in processes, on any device.

use std::time::Duration;

use warpwire::Result;
use warpwire::abi::{ChannelId, MemoryId, Rank, RankTable};
use warpwire::bootstrap::Tag;
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::{Buffer, Function, LaunchConfig, Stream, builtin_module};
use warpwire::kernel::Kernel;
use warpwire::memory::Transports;
use warpwire::proxy::{PortChannel, ProxyOptions, ProxyService};
use warpwire_kernels::port::{
    PortAllGather, PortAllGatherArgs, PortCall, PortPeer, PortPingPong, PortPingPongArgs, PortRequestsArgs,
};

/// Longer than any step that goes well.
const LONG: Duration = Duration::from_secs(60);

/// What nobody has written.
const POISON: u8 = 0xA5;

/// The number of a rank's ports, less the peer's.
const FIRST_PORT: u32 = 40;

/// A rank's service with a port to every other rank, one buffer, and a stream.
pub struct Ports {
    communicator: Communicator,
    pub service: ProxyService,
    /// By rank; none to itself.
    channels: Vec<Option<PortChannel>>,
    pub buffer: Buffer<u8>,
    /// The buffer of each rank, by rank.
    memories: Vec<MemoryId>,
    pub stream: Stream,
}

/// What each thread of a launch of `PortRequests` asks for.
#[derive(Clone, Copy)]
pub struct Calls {
    pub call: PortCall,
    /// How often.
    pub count: u32,
    /// Bytes from the beginning of the peer's buffer, and of this rank's.
    pub to: usize,
    pub from: usize,
    pub bytes: usize,
}

impl Calls {
    /// Calls that take no data.
    pub fn of(call: PortCall, count: u32) -> Self {
        Self { call, count, to: 0, from: 0, bytes: 0 }
    }
}

impl Ports {
    /// Collective.
    pub fn new(communicator: &Communicator, bytes: usize) -> Self {
        let own = communicator.rank();
        // Few slots, so that requests wait for room as well.
        let options = ProxyOptions { fifo_capacity: 4 };
        let service = ProxyService::new(communicator.device(), own, options).unwrap();
        let buffer = communicator.device().allocate_shareable(bytes).unwrap();
        let registered = communicator.register_memory(&buffer, Transports::CUDA_IPC).unwrap();
        let all = communicator.all_gather_memory(&registered).unwrap();
        let memories = all.iter().map(|memory| service.add_memory(memory).unwrap()).collect();
        let port = |peer: Rank| {
            let mut pending = communicator.connect(EndpointConfig::CudaIpc, peer, Tag(900)).unwrap();
            let connection = pending.wait(LONG).unwrap();
            let mut pending = communicator.build_semaphore(&connection, Tag(40)).unwrap();
            service.add_port(pending.wait(LONG).unwrap(), ChannelId(FIRST_PORT + peer.0)).unwrap()
        };
        let ranks = (0..communicator.size() as u32).map(Rank);
        let channels = ranks.map(|peer| (peer != own).then(|| port(peer))).collect();
        let stream = communicator.context().stream().unwrap();
        service.watch(&stream);
        service.start().unwrap();
        Self { communicator: communicator.clone(), service, channels, buffer, memories, stream }
    }

    pub fn own(&self) -> Rank {
        self.communicator.rank()
    }

    /// Returns when every rank has come so far.
    pub fn barrier(&self) {
        self.communicator.barrier().unwrap();
    }

    fn memory(&self, rank: Rank) -> MemoryId {
        self.memories[rank.0 as usize]
    }

    fn channel(&self, peer: Rank) -> &PortChannel {
        self.channels[peer.0 as usize].as_ref().unwrap()
    }

    pub fn function<K: Kernel>(&self) -> Function<K> {
        self.communicator.device().load(builtin_module()).unwrap().function::<K>().unwrap()
    }

    /// Queues this rank's kernel on one of its streams.
    pub fn queue<K: Kernel>(&self, stream: &Stream, threads: u32, args: K::Args) -> Result<()> {
        let config = self.communicator.concurrent(LaunchConfig::new(1, threads));
        // SAFETY: the service, the buffers and the boards live until the stream is synchronized, below or by the caller.
        unsafe { stream.launch(&self.function::<K>(), config, args) }
    }

    /// Launches this rank's kernel, and waits.
    pub fn run<K: Kernel>(&self, threads: u32, args: K::Args) {
        self.queue::<K>(&self.stream, threads, args).unwrap();
        self.synchronize(&self.stream);
    }

    pub fn synchronize(&self, stream: &Stream) {
        if let Err(error) = stream.synchronize() {
            panic!("{error}; the proxy: {:?}", self.service.health());
        }
    }

    /// The arguments of calls of the port to `peer`, between the two ranks' buffers, whose waits report on `stream`'s board.
    pub fn calls(&self, peer: Rank, calls: Calls, stream: &Stream, timeout: Duration) -> PortRequestsArgs {
        PortRequestsArgs {
            channel: self.channel(peer).handle(self.memory(peer), self.memory(self.own())).unwrap(),
            policy: stream.policy(self.own(), timeout),
            destination_offset: calls.to as u64,
            source_offset: calls.from as u64,
            bytes: calls.bytes as u64,
            count: calls.count,
            call: calls.call,
        }
    }

    /// Collective.
    pub fn end(self) {
        self.barrier();
        self.service.stop(LONG).unwrap();
    }
}

/// What rank `rank` gives in a round.
fn contribution(rank: usize, round: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + rank * 101 + round * 7 + 1) as u8).collect()
}

/// Every rank's bytes come to every rank, in several rounds and sizes. Collective.
pub fn gather(communicator: &Communicator) {
    const MOST: usize = 100_003;
    let (own, ranks) = (communicator.rank(), communicator.size());
    let ports = Ports::new(communicator, MOST * ranks);
    let peers: Vec<PortPeer> = (0..ranks as u32)
        .map(Rank)
        .map(|peer| match &ports.channels[peer.0 as usize] {
            Some(channel) => PortPeer::of(channel.handle(ports.memory(peer), ports.memory(own)).unwrap()),
            None => PortPeer::default(),
        })
        .collect();
    for (round, bytes) in [1, 4096, MOST, 13, 0, 777].into_iter().enumerate() {
        ports.buffer.fill_bytes(POISON).unwrap();
        let at = own.0 as usize * bytes;
        ports.buffer.write_at(at, &contribution(own.0 as usize, round, bytes)).unwrap();
        ports.barrier();
        let args = PortAllGatherArgs {
            fifo: ports.channels.iter().flatten().next().unwrap().base_handle().fifo,
            policy: ports.stream.policy(own, LONG),
            peers: RankTable::new(&peers).unwrap(),
            bytes: bytes as u64,
            source: ports.memory(own),
            rank: own.0,
            ranks: ranks as u32,
            reserved: 0,
        };
        // Fewer threads than peers too.
        ports.run::<PortAllGather>(if round % 2 == 0 { 32 } else { 2 }, args);
        let mut expected: Vec<u8> = (0..ranks).flat_map(|rank| contribution(rank, round, bytes)).collect();
        expected.resize(MOST * ranks, POISON);
        assert!(ports.buffer.read().unwrap() == expected, "{own:?}: {bytes} bytes of {ranks} ranks");
        // Nobody's buffer is filled anew before all have looked.
        ports.barrier();
    }
    ports.end();
}

/// Messages to and fro between two ranks, with and without a flush each, and every word of each looked at. Collective.
pub fn bounce(communicator: &Communicator) {
    const MOST: usize = 64 << 10;
    let (own, peer) = (communicator.rank(), Rank(1 - communicator.rank().0));
    let ports = Ports::new(communicator, 2 * MOST);
    let wrong: Buffer<u32> = communicator.device().allocate(1).unwrap();
    for (flush, threads, bytes, rounds) in
        [(1, 32, 4, 50), (1, 256, MOST, 20), (0, 1, 4100, 20), (0, 96, 4100, 60)]
    {
        let args = PortPingPongArgs {
            channel: ports.channel(peer).handle(ports.memory(peer), ports.memory(own)).unwrap(),
            policy: ports.stream.policy(own, LONG),
            // The outbox, then the inbox.
            outbox: ports.buffer.address().cast(),
            inbox: ports.buffer.address().add(MOST as u64).cast(),
            inbox_offset: MOST as u64,
            wrong: wrong.address(),
            bytes: bytes as u64,
            end: own.0,
            rounds,
            flush,
            reserved: 0,
        };
        ports.barrier();
        ports.run::<PortPingPong>(threads, args);
        assert_eq!(wrong.read().unwrap(), [0], "{own:?}: {bytes} bytes");
    }
    ports.end();
}
