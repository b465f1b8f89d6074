//! One end of a ping-pong: rank 0 plays end 0, rank 1 end 1.

use std::rc::Rc;

use anyhow::ensure;
use warpwire::abi::{ChannelId, InboundHandle, OutboundHandle, Rank, SemaphoreHandle};
use warpwire::device::{Buffer, LaunchConfig};
use warpwire_kernels::ping_pong::{
    PacketPingPong8, PacketPingPong16, PacketPingPongArgs, SemaphorePingPong, SemaphorePingPongArgs,
    first_payload,
};

use super::order::Format;
use super::peers::Peers;
use crate::bench::case::Contestant;
use crate::bench::kernels::HasBaseline;
use crate::bench::rounds::Rounds;
use crate::bench::setup::Bench;

/// Words of an end: its token and its count of waits, each on a cache line (128 bytes) of its own.
const WORDS: usize = 32;
const EXPECTED: usize = 16;

/// A block of `threads` threads in each of the two ranks, which share the device.
fn config(peers: &Peers, threads: u32) -> LaunchConfig {
    peers.communicator().concurrent(LaunchConfig::new(1, threads))
}

/// Semaphores, for every contender that has the kernel.
pub fn semaphores<'b>(
    bench: &'b Bench,
    peers: &'b Peers,
    relaxed: bool,
) -> anyhow::Result<Vec<Contestant<'b>>> {
    let rounds = bench.pick(2000, 100);
    let end = peers.rank();
    let peer = Rank(1 - end.0);
    // The same for all contenders, which take turns: how long a hop takes depends on where its words lie.
    let words: Buffer<u64> = bench.device.allocate_shareable(WORDS)?;
    let place = Rc::new((peers.show(&words)?, words));
    let mut contestants = Vec::new();
    for (turn, entry) in (1..).zip(bench.entries::<SemaphorePingPong>()?) {
        let (shown, words) = &*place;
        // Every rank has looked at what the last contender left.
        peers.barrier()?;
        let own = SemaphoreHandle {
            inbound: InboundHandle {
                token: words.address(),
                expected: words.address().add(EXPECTED as u64),
                peer,
                channel: ChannelId(0),
            },
            outbound: OutboundHandle { token: shown.of(peer)? },
        };
        let args = SemaphorePingPongArgs {
            // This launch plays one of them.
            ends: [own, own],
            policy: bench.stream.policy(end, bench.patience()),
            first_end: end.0,
            rounds,
            relaxed: relaxed.into(),
            reserved: 0,
        };
        let who = entry.who;
        let run = Rounds { bench, entry, config: config(peers, 1), args, hops: 2 * rounds };
        // SAFETY: the words are the case's own, the peer's are mapped, and both live as long as each closure.
        unsafe { run.once() }?;
        let seen = words.read()?;
        let seen = [seen[0], seen[EXPECTED]];
        ensure!(
            seen == [u64::from(turn * rounds); 2],
            "{who}: the token and the count of waits stand at {seen:?}, not at {turn} times {rounds}"
        );
        let kept = Rc::clone(&place);
        contestants.push(Contestant::new(who, move || {
            let _alive = &kept;
            // SAFETY: as above.
            unsafe { run.nanoseconds() }
        }));
    }
    Ok(contestants)
}

/// Packets, for every contender that has the kernel.
pub fn packets<'b>(
    bench: &'b Bench,
    peers: &'b Peers,
    format: Format,
    threads: u32,
) -> anyhow::Result<Vec<Contestant<'b>>> {
    match format {
        Format::Ll8 => packets_of::<PacketPingPong8>(bench, peers, threads, |value| u64::from(value as u32)),
        Format::Ll16 => packets_of::<PacketPingPong16>(bench, peers, threads, |value| value),
    }
}

fn packets_of<'b, K: HasBaseline<Args = PacketPingPongArgs>>(
    bench: &'b Bench,
    peers: &'b Peers,
    threads: u32,
    carried: fn(u64) -> u64,
) -> anyhow::Result<Vec<Contestant<'b>>> {
    // At least 2: a launch begins with the first flag again, and has to find another one in the slots.
    let rounds = bench.pick(2000, 10);
    let end = peers.rank();
    let peer = Rank(1 - end.0);
    let count = threads as usize;
    // Room for LL16, of which LL8 takes half. The same for all contenders, as above.
    let slots: Buffer<u64> = bench.device.allocate_shareable(2 * count)?;
    let received: Buffer<u64> = bench.device.allocate(count)?;
    let place = Rc::new((peers.show(&slots)?, slots, received));
    let mut contestants = Vec::new();
    for entry in bench.entries::<K>()? {
        let (shown, slots, received) = &*place;
        // Nobody's packets are on their way when the next contender begins.
        peers.barrier()?;
        received.fill_bytes(0xA5)?;
        let mut args = PacketPingPongArgs {
            slots: [slots.address().cast(); 2],
            received: [received.address(); 2],
            policy: bench.stream.policy(end, bench.patience()),
            first_end: end.0,
            rounds,
            flag: 1,
            reserved: 0,
        };
        args.slots[peer.0 as usize] = shown.of(peer)?.cast();
        let who = entry.who;
        let run = Rounds { bench, entry, config: config(peers, threads), args, hops: 2 * rounds };
        // SAFETY: a slot and a word a thread, the case's own; the peer's slots are mapped; all live as long as each closure.
        unsafe { run.once() }?;
        for (thread, seen) in (0..threads).zip(received.read()?) {
            let expected = carried(first_payload(thread).wrapping_add(u64::from(rounds)));
            ensure!(
                carried(seen) == expected,
                "{who}: thread {thread} received {seen:#x}, not {expected:#x}"
            );
        }
        let kept = Rc::clone(&place);
        contestants.push(Contestant::new(who, move || {
            let _alive = &kept;
            // SAFETY: as above.
            unsafe { run.nanoseconds() }
        }));
    }
    Ok(contestants)
}
