//! Port channels between ranks: kernels ask, each rank's proxy does it through its connections.

use std::time::Duration;

use warpwire::Result;
use warpwire::abi::{ChannelId, MemoryId, Rank, RankTable};
use warpwire::bootstrap::Tag;
use warpwire::communicator::Communicator;
use warpwire::device::{Buffer, LaunchConfig, Stream, builtin_module};
use warpwire::kernel::Kernel;
use warpwire::memory::Transports;
use warpwire::proxy::{PortChannel, ProxyOptions, ProxyService};
use warpwire_kernels::port::{
    PortAllGather, PortAllGatherArgs, PortCall, PortPeer, PortPingPong, PortPingPongArgs, PortRequestsArgs,
};

use crate::jobs::{LONG, connect, other};

/// A rank's service with a port to every other rank, one buffer, and a stream.
pub struct Ports<'a> {
    communicator: &'a Communicator,
    pub service: ProxyService,
    /// By rank; none to itself.
    channels: Vec<Option<PortChannel>>,
    buffer: Buffer<u8>,
    /// The buffer of each rank, by rank.
    memories: Vec<MemoryId>,
    pub stream: Stream,
}

impl<'a> Ports<'a> {
    /// Collective.
    pub fn new(communicator: &'a Communicator, bytes: usize) -> Self {
        let own = communicator.rank();
        // Few slots, so that requests wait for room as well.
        let options = ProxyOptions { fifo_capacity: 4 };
        let service = ProxyService::new(communicator.device(), own, options).unwrap();
        let buffer = communicator.device().allocate_shareable(bytes).unwrap();
        let registered = communicator.register_memory(&buffer, Transports::CUDA_IPC).unwrap();
        let all = communicator.all_gather_memory(&registered).unwrap();
        let memories = all.iter().map(|memory| service.add_memory(memory).unwrap()).collect();
        let port = |peer: Rank| {
            let connection = connect(communicator, peer);
            let mut pending = communicator.build_semaphore(&connection, Tag(40)).unwrap();
            service.add_port(pending.wait(LONG).unwrap(), ChannelId(40 + peer.0)).unwrap()
        };
        let ranks = (0..communicator.size() as u32).map(Rank);
        let channels = ranks.map(|peer| (peer != own).then(|| port(peer))).collect();
        let stream = communicator.context().stream().unwrap();
        service.watch(&stream);
        service.start().unwrap();
        Self { communicator, service, channels, buffer, memories, stream }
    }

    fn channel(&self, peer: Rank) -> &PortChannel {
        self.channels[peer.0 as usize].as_ref().unwrap()
    }

    fn memory(&self, rank: Rank) -> MemoryId {
        self.memories[rank.0 as usize]
    }

    pub fn launch<K: Kernel>(&self, threads: u32, args: K::Args) -> Result<()> {
        let function = self.communicator.device().load(builtin_module()).unwrap().function::<K>().unwrap();
        let config = self.communicator.concurrent(LaunchConfig::new(1, threads));
        // SAFETY: the service, the buffers and the stream live until the stream is synchronized, below or by the caller.
        unsafe { self.stream.launch(&function, config, args) }
    }

    /// The arguments of one call of the channel to `peer`.
    pub fn calls(&self, peer: Rank, call: PortCall, count: u32, timeout: Duration) -> PortRequestsArgs {
        PortRequestsArgs {
            channel: self
                .channel(peer)
                .handle(self.memory(peer), self.memory(self.communicator.rank()))
                .unwrap(),
            policy: self.stream.policy(self.communicator.rank(), timeout),
            destination_offset: 0,
            source_offset: 0,
            bytes: 0,
            count,
            call,
        }
    }

    /// Collective.
    pub fn end(self) {
        self.communicator.barrier().unwrap();
        self.service.stop(LONG).unwrap();
    }
}

/// What rank `rank` gives in a round.
fn contribution(rank: usize, round: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + rank * 101 + round * 7 + 1) as u8).collect()
}

/// Every rank's bytes come to every rank, in several rounds and sizes.
pub fn gather(communicator: &Communicator) {
    const MOST: usize = 20_011;
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
        ports.buffer.fill_bytes(0xA5).unwrap();
        let at = own.0 as usize * bytes;
        ports.buffer.write_at(at, &contribution(own.0 as usize, round, bytes)).unwrap();
        communicator.barrier().unwrap();
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
        ports.launch::<PortAllGather>(if round % 2 == 0 { 32 } else { 2 }, args).unwrap();
        ports.stream.synchronize().unwrap();
        let mut expected: Vec<u8> = (0..ranks).flat_map(|rank| contribution(rank, round, bytes)).collect();
        expected.resize(MOST * ranks, 0xA5);
        assert!(ports.buffer.read().unwrap() == expected, "{own:?}: {bytes} bytes of {ranks} ranks");
        // Nobody's buffer is filled anew before all have looked.
        communicator.barrier().unwrap();
    }
    ports.end();
}

/// Messages to and fro between two ranks, with and without a flush each, and every word of each looked at.
pub fn bounce(communicator: &Communicator) {
    const BYTES: usize = 4 * 1025;
    let (own, peer) = (communicator.rank(), other(communicator));
    let ports = Ports::new(communicator, 2 * BYTES);
    let wrong: Buffer<u32> = communicator.device().allocate(1).unwrap();
    for (flush, threads, rounds) in [(1, 64, 60), (0, 1, 20), (0, 96, 60)] {
        let args = PortPingPongArgs {
            channel: ports.channel(peer).handle(ports.memory(peer), ports.memory(own)).unwrap(),
            policy: ports.stream.policy(own, LONG),
            // The outbox, then the inbox.
            outbox: ports.buffer.address().cast(),
            inbox: ports.buffer.address().add(BYTES as u64).cast(),
            inbox_offset: BYTES as u64,
            wrong: wrong.address(),
            bytes: BYTES as u64,
            end: own.0,
            rounds,
            flush,
            reserved: 0,
        };
        ports.launch::<PortPingPong>(threads, args).unwrap();
        ports.stream.synchronize().unwrap();
        assert_eq!(wrong.read().unwrap(), [0], "{own:?}");
        communicator.barrier().unwrap();
    }
    ports.end();
}
