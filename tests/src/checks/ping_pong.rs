//! Two ends that answer each other.

use warpwire::abi::{ChannelId, Rank};
use warpwire::device::{Buffer, Device, DeviceKind, LaunchConfig};
use warpwire::kernel::Kernel;
use warpwire_check_kernels::late_warp::{LateWarp, LateWarpArgs};
use warpwire_kernels::ping_pong::{
    PacketPingPong8, PacketPingPong16, PacketPingPongArgs, PutPingPong, PutPingPongArgs, SemaphorePingPong,
    SemaphorePingPongArgs,
};

use super::check_module::check_module;
use super::rig::{Ends, LONG, function, zeroed};

/// Signals in both forms, over the carry into the counters' upper halves, in one launch of two blocks and in two launches of one.
pub fn semaphores_bounce(device: &Device) {
    const START: u64 = u32::MAX as u64 - 40;
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    let kernel = function::<SemaphorePingPong>(device);
    for relaxed in [0, 1] {
        let ends = Ends::new(device, ChannelId(0), START);
        let args = |end: u32, rounds| SemaphorePingPongArgs {
            ends: ends.handles(),
            policy: streams[end as usize].policy(Rank(end), LONG),
            first_end: end,
            rounds,
            relaxed,
            reserved: 0,
        };
        // SAFETY: the words outlive the launches, which end before this function does, here and below.
        unsafe { streams[0].launch(&kernel, LaunchConfig::new(2, 1).concurrent(1), args(0, 200)) }.unwrap();
        streams[0].synchronize().unwrap();
        // The one that waits first, so that the other finds it waiting.
        for end in [1, 0] {
            let config = LaunchConfig::new(1, 1).concurrent(2);
            // SAFETY: as above.
            unsafe { streams[end as usize].launch(&kernel, config, args(end, 300)) }.unwrap();
        }
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        let count = START + 500;
        assert_eq!(ends.tokens.read().unwrap(), [count; 2], "signals sent");
        assert_eq!(ends.expected.read().unwrap(), [count; 2], "signals waited for");
    }
}

/// LL8 packets: the low half of the number that went to and fro.
pub fn ll8_packets_bounce(device: &Device) {
    packets_bounce::<PacketPingPong8>(device, |value| value & 0xFFFF_FFFF);
}

/// LL16 packets.
pub fn ll16_packets_bounce(device: &Device) {
    packets_bounce::<PacketPingPong16>(device, |value| value);
}

fn packets_bounce<K: Kernel<Args = PacketPingPongArgs>>(device: &Device, carried: impl Fn(u64) -> u64) {
    let (stream, kernel) = (device.stream().unwrap(), function::<K>(device));
    // Flags that stay clear of the wrap, and flags that pass it.
    for (threads, rounds, flag) in
        [(1_u32, 100, 1), (7, 50, u32::MAX - 10), (32, 1, u32::MAX), (65, 30, 500), (256, 20, 1)]
    {
        let slots: [Buffer<u64>; 2] = std::array::from_fn(|_| zeroed(device, 2 * threads as usize));
        let received: [Buffer<u64>; 2] = std::array::from_fn(|_| zeroed(device, threads as usize));
        let args = PacketPingPongArgs {
            slots: slots.each_ref().map(|slots| slots.address().cast()),
            received: received.each_ref().map(Buffer::address),
            policy: stream.policy(Rank(0), LONG),
            first_end: 0,
            rounds,
            flag,
            reserved: 0,
        };
        // SAFETY: a slot and a word a thread and end, which outlive the launch.
        unsafe { stream.launch(&kernel, LaunchConfig::new(2, threads).concurrent(1), args) }.unwrap();
        stream.synchronize().unwrap();
        for (end, words) in received.iter().enumerate() {
            for (thread, seen) in words.read().unwrap().into_iter().enumerate() {
                // The first number, written down a second time, and one more for each round trip.
                let first = (thread as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 0x1_0000_0001;
                let expected = carried(first.wrapping_add(u64::from(rounds)));
                assert_eq!(
                    seen, expected,
                    "end {end}, thread {thread} of {threads}, {rounds} rounds from flag {flag}"
                );
            }
        }
    }
}

/// Whole messages by put, signal and wait: no word of any message is missed by its signal (C17).
pub fn messages_bounce(device: &Device) {
    let (stream, kernel) = (device.stream().unwrap(), function::<PutPingPong>(device));
    for (threads, bytes, rounds) in [(1, 4_u64, 200), (32, 1024, 100), (96, 4100, 50), (256, 65536 + 12, 10)]
    {
        let ends = Ends::new(device, ChannelId(0), 0);
        let allocate = || zeroed::<u8>(device, bytes as usize);
        let (outboxes, inboxes) = ([allocate(), allocate()], [allocate(), allocate()]);
        let wrong = zeroed::<u32>(device, 2);
        let end = |end: usize| {
            let (remote, own) = (inboxes[1 - end].address(), inboxes[end].address());
            ends.channel(end as u32, remote, outboxes[end].address(), own)
        };
        let args = PutPingPongArgs {
            ends: [end(0), end(1)],
            policy: stream.policy(Rank(0), LONG),
            bytes,
            wrong: wrong.address(),
            first_end: 0,
            rounds,
        };
        // SAFETY: the words and buffers outlive the launch.
        unsafe { stream.launch(&kernel, LaunchConfig::new(2, threads).concurrent(1), args) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(wrong.read().unwrap(), [0, 0], "{bytes} bytes with {threads} threads");
        assert_eq!(inboxes[0].read().unwrap(), inboxes[1].read().unwrap(), "both ends' last messages");
        assert_eq!(ends.tokens.read().unwrap(), [u64::from(rounds); 2]);
    }
}

/// C17: a block's signal publishes what all of its warps put, also that of one which comes to the call when the leader has long
/// done its part: no word of any message is stale.
pub fn a_late_warp_is_waited_for(device: &Device) {
    let Some(module) = check_module(device, "a_late_warp_is_waited_for") else { return };
    let (stream, kernel) = (device.stream().unwrap(), module.function::<LateWarp>().unwrap());
    let cases = match device.properties().kind {
        // Late by much more than a message takes, and by about as much, which comes out in some order each time.
        DeviceKind::Cuda => [(128_u32, 512_u64, 200, 1_000_000), (1024, 5000, 10_000, 2_000)],
        DeviceKind::Cpu => [(128, 512, 60, 200_000), (256, 1000, 100, 2_000)],
    };
    for (threads, words, rounds, late_ns) in cases {
        let ends = Ends::new(device, ChannelId(0), 0);
        let allocate = || zeroed::<u8>(device, 4 * words as usize);
        let (message, received, stale) = (allocate(), allocate(), zeroed::<u32>(device, 1));
        let (sent, inbox) = (message.address(), received.address());
        let args = LateWarpArgs {
            ends: [ends.channel(0, inbox, sent, sent), ends.channel(1, sent, inbox, inbox)],
            policy: stream.policy(Rank(0), LONG),
            words,
            stale: stale.address(),
            rounds,
            late_ns,
        };
        // SAFETY: the words and buffers outlive the launch.
        unsafe { stream.launch(&kernel, LaunchConfig::new(2, threads).concurrent(1), args) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(stale.read().unwrap(), [0], "{threads} threads, one warp {late_ns} ns late");
        assert_eq!(ends.tokens.read().unwrap(), [u64::from(rounds); 2]);
    }
}
