//! Port channels over RDMA: kernels ask, each rank's proxy does it through its connections.

use warpwire::abi::{self, ChannelId, MemoryId, RankTable};
use warpwire::bootstrap::Tag;
use warpwire::connection::infiniband::{InfiniBandConfig, SignalMode};
use warpwire::device::{LaunchConfig, builtin_module};
use warpwire::memory::RegisteredMemory;
use warpwire::proxy::{PortChannel, ProxyOptions, ProxyService};
use warpwire_kernels::port::{PortAllGather, PortAllGatherArgs, PortPeer};

use crate::ranks::{LONG, MODES, Rank, run};

#[test]
fn two_ranks_gather_through_ports() {
    run("gather", 2);
}

#[test]
fn four_ranks_gather_through_ports() {
    run("gather_of_four", 4);
}

/// Lengths of a rank's part: more than one message's limit is in `transfers`, for there is one proxy a rank here.
const LENGTHS: [usize; 5] = [1, 4096, 20_011, 13, 777];
const MOST: usize = 20_011;

fn contribution(rank: u32, round: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + rank as usize * 101 + round * 7 + 1) as u8).collect()
}

/// Every rank's bytes come to every rank, in both modes.
pub fn gather(rank: &Rank) {
    for mode in MODES {
        gather_in(rank, mode);
    }
}

fn gather_in(rank: &Rank, mode: SignalMode) {
    let (communicator, own) = (&rank.communicator, rank.communicator.rank());
    let ranks = communicator.size();
    // Few slots, so that requests wait for room as well.
    let service = ProxyService::new(&rank.device, own, ProxyOptions { fifo_capacity: 4 }).unwrap();
    let buffer = rank.buffer::<u8>(MOST * ranks);
    let registered: RegisteredMemory = rank.register(&buffer);
    let all = communicator.all_gather_memory(&registered).unwrap();
    let memories: Vec<MemoryId> = all.iter().map(|memory| service.add_memory(memory).unwrap()).collect();
    let port = |peer: abi::Rank| -> Option<PortChannel> {
        if peer == own {
            return None;
        }
        let config = InfiniBandConfig { mode: Some(mode), ..Default::default() };
        let connection = rank.connect_with(config, peer, 40).unwrap();
        let mut semaphore = communicator.build_semaphore(&connection, Tag(41)).unwrap();
        Some(service.add_port(semaphore.wait(LONG).unwrap(), ChannelId(peer.0)).unwrap())
    };
    let channels: Vec<Option<PortChannel>> = (0..ranks as u32).map(abi::Rank).map(port).collect();
    let stream = communicator.context().stream().unwrap();
    service.watch(&stream);
    service.start().unwrap();
    let own_memory = memories[own.0 as usize];
    let peers: Vec<PortPeer> = channels
        .iter()
        .zip(&memories)
        .map(|(channel, memory)| match channel {
            Some(channel) => PortPeer::of(channel.handle(*memory, own_memory).unwrap()),
            None => PortPeer::default(),
        })
        .collect();
    let function = rank.device.load(builtin_module()).unwrap().function::<PortAllGather>().unwrap();
    for (round, bytes) in LENGTHS.into_iter().enumerate() {
        buffer.fill_bytes(0xa5).unwrap();
        buffer.write_at(own.0 as usize * bytes, &contribution(own.0, round, bytes)).unwrap();
        rank.barrier();
        let args = PortAllGatherArgs {
            fifo: channels.iter().flatten().next().unwrap().base_handle().fifo,
            policy: stream.policy(own, LONG),
            peers: RankTable::new(&peers).unwrap(),
            bytes: bytes as u64,
            source: own_memory,
            rank: own.0,
            ranks: ranks as u32,
            reserved: 0,
        };
        let config = communicator.concurrent(LaunchConfig::new(1, 8));
        // SAFETY: the service, the buffer and the stream live until the stream is synchronized.
        unsafe { stream.launch(&function, config, args) }.unwrap();
        stream.synchronize().unwrap();
        let parts = (0..ranks as u32).flat_map(|rank| contribution(rank, round, bytes));
        let expected: Vec<u8> = parts.chain(std::iter::repeat(0xa5)).take(MOST * ranks).collect();
        assert!(buffer.read().unwrap() == expected, "{mode}, {own:?}: {bytes} bytes of {ranks} ranks");
        // Nobody's buffer is filled anew before all have looked.
        rank.barrier();
    }
    service.stop(LONG).unwrap();
}
