//! Kernels that ask the host's proxy: requests of every kind, a ping-pong, an all-gather.

use core::mem::offset_of;

use static_assertions::const_assert_eq;
use warpwire_device::abi::{
    FifoHandle, Global, InboundHandle, MemoryId, PolicyHandle, PortChannelBaseHandle, PortChannelHandle,
    PortId, RankTable, WaitError,
};
use warpwire_device::arch::{self, Gpu, Relaxed};
use warpwire_device::coop::{Block, Group, SyncGroup};
use warpwire_device::port_channel::PortChannel;
use warpwire_device::spin::Policy;
use warpwire_device::{kernel, rank_entry};

use crate::message::{count_wrong, fill};

/// What [`PortRequests`] asks for: a bit each, so that the kernel tests them one after the other, not by a table of branches,
/// which no look at its flow could follow.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortCall {
    /// `put`.
    Put = 1,
    /// `put_with_signal`.
    PutWithSignal = 2,
    /// `put_with_signal_and_flush`.
    PutWithSignalAndFlush = 16,
    /// `signal`.
    Signal = 8,
    /// `flush`.
    Flush = 4,
    /// `wait`.
    Wait = 32,
}

impl PortCall {
    #[inline(always)]
    const fn is(self, other: Self) -> bool {
        self as u32 & other as u32 != 0
    }
}

/// Arguments of [`PortRequests`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PortRequestsArgs {
    /// The channel.
    pub channel: PortChannelHandle,
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// Where a put writes, in bytes from the destination's beginning.
    pub destination_offset: u64,
    /// Where a put reads, in bytes from the source's beginning.
    pub source_offset: u64,
    /// Bytes of a put.
    pub bytes: u64,
    /// Calls of each thread.
    pub count: u32,
    /// Which: a [`PortCall`].
    pub call: PortCall,
}
const_assert_eq!(size_of::<PortRequestsArgs>(), 152);
const_assert_eq!(offset_of!(PortRequestsArgs, policy), 96);

kernel! {
    /// Each thread makes the same call of a port channel `count` times. Any number of blocks and threads.
    pub struct PortRequests = "warpwire_port_requests", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: PortRequestsArgs) {
        // SAFETY: the launch's contract: the channel's words and the board are mapped and live.
        let (channel, policy) = unsafe { (PortChannel::new(args.channel), Policy::new(args.policy)) };
        let (to, from, bytes) = (args.destination_offset, args.source_offset, args.bytes);
        for _ in 0..args.count {
            let done = if args.call.is(PortCall::Put) {
                channel.put(to, from, bytes, &policy).map(drop)
            } else if args.call.is(PortCall::PutWithSignal) {
                channel.put_with_signal(to, from, bytes, &policy).map(drop)
            } else if args.call.is(PortCall::PutWithSignalAndFlush) {
                channel.put_with_signal_and_flush(to, from, bytes, &policy)
            } else if args.call.is(PortCall::Signal) {
                channel.signal(&policy).map(drop)
            } else if args.call.is(PortCall::Flush) {
                channel.flush(&policy)
            } else {
                channel.wait(policy.patience())
            };
            // A failed wait has left its report; the kernel just ends.
            if done.is_err() {
                return;
            }
        }
    }
}

/// Arguments of [`PortPingPong`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PortPingPongArgs {
    /// This end's channel.
    pub channel: PortChannelHandle,
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// What this end sends: the beginning of the channel's source.
    pub outbox: Global<u32>,
    /// Where the other's messages arrive.
    pub inbox: Global<u32>,
    /// Where in the channel's destination the other's inbox lies, in bytes.
    pub inbox_offset: u64,
    /// How many 32-bit words this end saw that were not this round's, 0 at first. Null: nothing is checked, the messages are
    /// sent as they are.
    pub wrong: Global<u32>,
    /// Bytes of the message: where it is checked, a multiple of 4.
    pub bytes: u64,
    /// The end: 0 or 1. End 0 begins.
    pub end: u32,
    /// Round trips.
    pub rounds: u32,
    /// Not 0: each put waits until it is complete.
    pub flush: u32,
    /// Padding, 0.
    pub reserved: u32,
}
const_assert_eq!(size_of::<PortPingPongArgs>(), 176);
const_assert_eq!(offset_of!(PortPingPongArgs, policy), 96);

kernel! {
    /// Puts a message to and fro between two ends through their proxies, `rounds` times, 2 hops a round; each end is one launch
    /// of one block. Where it checks, each message is filled anew before it is sent, and looked at when it has come.
    pub struct PortPingPong = "warpwire_port_ping_pong", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: PortPingPongArgs) {
        // SAFETY: the launch's contract: the channel's words and the board are mapped and live.
        let (channel, policy) = unsafe { (PortChannel::new(args.channel), Policy::new(args.policy)) };
        let checks = !args.wrong.is_null();
        let words = if checks { args.bytes / 4 } else { 0 };
        let mut wrong = 0;
        let mut receive = |round: u32| -> Result<(), WaitError> {
            Block.agree(if Block.is_leader() { channel.wait(policy.patience()) } else { Ok(()) })?;
            // SAFETY: the inbox, whose writer's signal has been waited for.
            wrong += unsafe { count_wrong(args.inbox, words, round) };
            Ok(())
        };
        let send = |round: u32| -> Result<(), WaitError> {
            if checks {
                // SAFETY: the launch's contract: the end's own buffer, which no put reads any more: its last one was
                // answered.
                unsafe { fill(args.outbox, words, round) };
            }
            // Also before an unchecked message: the inbox has been looked at by all threads.
            Block.sync();
            let sent = if !Block.is_leader() {
                Ok(())
            } else if args.flush != 0 {
                channel.put_with_signal_and_flush(args.inbox_offset, 0, args.bytes, &policy)
            } else {
                channel.put_with_signal(args.inbox_offset, 0, args.bytes, &policy).map(drop)
            };
            Block.agree(sent)
        };
        // Hop by hop, not round by round: each side's half then stands in the code once.
        for hop in 0..2 * u64::from(args.rounds) {
            let round = (hop / 2) as u32 + 1;
            let sends = hop % 2 == u64::from(args.end);
            let done = if sends { send(round) } else { receive(round) };
            // A failed wait has left its report; the kernel just ends.
            if done.is_err() {
                return;
            }
        }
        if wrong != 0 {
            // SAFETY: the launch's contract: one count, 0 at first.
            unsafe { arch::red_add_u32::<Relaxed, Gpu>(args.wrong, wrong) };
        }
    }
}

/// What [`PortAllGather`] needs of one peer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PortPeer {
    /// For waits: what the peer signals.
    pub token: Global<u64>,
    /// How many of its signals were waited for.
    pub expected: Global<u64>,
    /// The count of the port's flushes.
    pub flushed: Global<u64>,
    /// The peer, and the channel's number, as they stand in [`InboundHandle`].
    pub site: [u32; 2],
    /// The port.
    pub port: PortId,
    /// The peer's buffer.
    pub destination: MemoryId,
}
const_assert_eq!(size_of::<PortPeer>(), 40);

impl PortPeer {
    /// The peer at the other end of this channel.
    #[must_use]
    pub const fn of(channel: PortChannelHandle) -> Self {
        let PortChannelBaseHandle { inbound, flushed, port, .. } = channel.base;
        let InboundHandle { token, expected, peer, channel: id } = inbound;
        Self { token, expected, flushed, site: [peer.0, id.0], port, destination: channel.destination }
    }

    /// The channel to it, through this FIFO and from this memory.
    #[inline(always)]
    #[must_use]
    pub const fn channel(self, fifo: FifoHandle, source: MemoryId) -> PortChannelHandle {
        let Self { token, expected, flushed, site, port, destination } = self;
        let (peer, channel) = (warpwire_device::abi::Rank(site[0]), warpwire_device::abi::ChannelId(site[1]));
        let inbound = InboundHandle { token, expected, peer, channel };
        let base = PortChannelBaseHandle { fifo, inbound, flushed, port, reserved: 0 };
        PortChannelHandle { base, destination, source }
    }
}

/// Arguments of [`PortAllGather`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PortAllGatherArgs {
    /// The FIFO of this rank's proxy.
    pub fifo: FifoHandle,
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// Every other rank, by rank; this rank's entry is not looked at.
    pub peers: RankTable<PortPeer>,
    /// Bytes that each rank gives.
    pub bytes: u64,
    /// This rank's buffer, the same for every peer: `ranks` times `bytes`, in the order of the ranks.
    pub source: MemoryId,
    /// This rank.
    pub rank: u32,
    /// Ranks.
    pub ranks: u32,
    /// Padding, 0.
    pub reserved: u32,
}
const_assert_eq!(size_of::<PortAllGatherArgs>(), 48 + 24 + 72 * 40 + 24);
const_assert_eq!(offset_of!(PortAllGatherArgs, peers), 72);

kernel! {
    /// Gathers every rank's bytes in every rank's buffer, in place: each thread puts this rank's to its share of the peers, with
    /// a signal, and then waits for each until its put is complete and its signal is there. One block, any number of threads.
    pub struct PortAllGather = "warpwire_port_all_gather", max_threads = 128, min_blocks = 1;
    unsafe fn(args: PortAllGatherArgs) {
        // SAFETY: the launch's contract: the board is mapped and live.
        let policy = unsafe { Policy::new(args.policy) };
        let offset = u64::from(args.rank) * args.bytes;
        let channel = |step: u32| {
            // Each rank begins with another peer.
            let sum = args.rank + step;
            let peer = if sum < args.ranks { sum } else { sum - args.ranks };
            // SAFETY: a rank of the group's, which has an entry in the table.
            let entry: PortPeer = unsafe { rank_entry!(args, PortAllGatherArgs, peers, peer) };
            // SAFETY: the launch's contract: the words of every peer's channel are mapped and live.
            unsafe { PortChannel::new(entry.channel(args.fifo, args.source)) }
        };
        // All puts before the first wait: a peer may come to this rank's share last.
        let mut step = 1 + Block.rank();
        while step < args.ranks {
            // A failed wait has left its report; the kernel just ends, here and below.
            if channel(step).put_with_signal(offset, offset, args.bytes, &policy).is_err() {
                return;
            }
            step += Block.size();
        }
        step = 1 + Block.rank();
        while step < args.ranks {
            let channel = channel(step);
            if channel.flush(&policy).and_then(|()| channel.wait(policy.patience())).is_err() {
                return;
            }
            step += Block.size();
        }
    }
}
