//! The built-in kernels on the CPU device: ping-pongs, transfers, the grid barrier.

mod support;

use support::{Ends, LONG, builtin, cpu, filled};
use warpwire::abi::{
    BarrierHandle, Flag, Global, Ll8, Ll16, MemoryChannelBaseHandle, MemoryChannelHandle, Packet, Rank,
};
use warpwire::device::{Buffer, Device, LaunchConfig, Stream};
use warpwire::kernel::Kernel;
use warpwire_kernels::barrier::{BarrierRounds, BarrierRoundsArgs};
use warpwire_kernels::packets::{PutPackets8, PutPackets16, UnpackPackets8, UnpackPackets16};
use warpwire_kernels::ping_pong::{
    PacketPingPong8, PacketPingPong16, PacketPingPongArgs, SemaphorePingPong, SemaphorePingPongArgs,
    first_payload,
};
use warpwire_kernels::transfer::{Get, Put, TransferArgs};

/// What lies around a transfer's destination.
const POISON: u8 = 0xA5;

/// Launches `K` and waits for it.
///
/// # Safety
///
/// As for [`Stream::launch`], until this returns.
unsafe fn run<K: Kernel>(stream: &Stream, config: LaunchConfig, args: K::Args) {
    let function = builtin(stream.device()).function::<K>().unwrap();
    // SAFETY: the caller's contract.
    unsafe { stream.launch(&function, config, args) }.unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn semaphores_bounce_between_two_blocks_and_between_two_launches() {
    const START: u64 = u32::MAX as u64 - 50;
    let device = cpu();
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    let function = builtin(&device).function::<SemaphorePingPong>().unwrap();
    for relaxed in [0, 1] {
        let ends = Ends::new(&device, 0);
        // Near the carry into both counters' upper halves.
        for words in [&ends.tokens, &ends.expected] {
            words.write(&[START; 2]).unwrap();
        }
        let args = |end: u32, rounds| SemaphorePingPongArgs {
            ends: ends.handles(),
            policy: streams[end as usize].policy(Rank(end), LONG),
            first_end: end,
            rounds,
            relaxed,
            reserved: 0,
        };
        // SAFETY: the words and the boards outlive the launches, here and below.
        unsafe { run::<SemaphorePingPong>(&streams[0], LaunchConfig::new(2, 1).concurrent(1), args(0, 100)) };
        for end in [1, 0] {
            let config = LaunchConfig::new(1, 1).concurrent(2);
            // SAFETY: as above.
            unsafe { streams[end as usize].launch(&function, config, args(end, 1000)) }.unwrap();
        }
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        let count = START + 1100;
        assert_eq!(ends.tokens.read().unwrap(), [count; 2]);
        assert_eq!(ends.expected.read().unwrap(), [count; 2]);
    }
}

fn packets_bounce<K: Kernel<Args = PacketPingPongArgs>>(payload: fn(u64) -> u64) {
    let device = cpu();
    let stream = device.stream().unwrap();
    for threads in [1u32, 7, 33, 256] {
        let words = threads as usize;
        let slots: Vec<Buffer<u64>> = (0..2).map(|_| device.allocate(2 * words).unwrap()).collect();
        let received: Vec<Buffer<u64>> = (0..2).map(|_| device.allocate(words).unwrap()).collect();
        // Over the wrap of the flag, past 0.
        let (rounds, flag) = (20u32, u32::MAX - 7);
        let args = PacketPingPongArgs {
            slots: [slots[0].address().cast(), slots[1].address().cast()],
            received: [received[0].address(), received[1].address()],
            policy: stream.policy(Rank(0), LONG),
            first_end: 0,
            rounds,
            flag,
            reserved: 0,
        };
        // SAFETY: a slot and a word a thread, which outlive the launch.
        unsafe { run::<K>(&stream, LaunchConfig::new(2, threads).concurrent(1), args) };
        for (end, words) in received.iter().enumerate() {
            for (thread, value) in (0..threads).zip(words.read().unwrap()) {
                let expected = payload(first_payload(thread).wrapping_add(u64::from(rounds)));
                assert_eq!(value, expected, "end {end}, thread {thread} of {threads}");
            }
        }
    }
}

#[test]
fn ll8_packets_carry_their_payload_to_and_fro() {
    packets_bounce::<PacketPingPong8>(|value| u64::from(value as u32));
}

#[test]
fn ll16_packets_carry_their_payload_to_and_fro() {
    packets_bounce::<PacketPingPong16>(|value| value);
}

#[test]
fn the_grid_barrier_holds_every_block() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let function = builtin(&device).function::<BarrierRounds>().unwrap();
    let most = function.resident_blocks(1024, 0).unwrap() as usize;
    for (blocks, threads, rounds) in
        [(1, 1, 100), (2, 1, 100), (8, 64, 100), (5, 33, 100), (100, 1, 20), (most, 1024, 3)]
    {
        let word: Buffer<u32> = device.allocate(1).unwrap();
        let (progress, late) = (filled(&device, &vec![0u32; blocks]), filled(&device, &vec![99u32; blocks]));
        let args = BarrierRoundsArgs {
            barrier: BarrierHandle { word: word.address() },
            policy: stream.policy(Rank(0), LONG),
            progress: progress.address(),
            late: late.address(),
            rounds,
            reserved: 0,
        };
        // SAFETY: a word a block, which outlive the launch.
        unsafe {
            run::<BarrierRounds>(&stream, LaunchConfig::new(blocks as u32, threads).concurrent(1), args)
        };
        assert_eq!(progress.read().unwrap(), vec![rounds; blocks]);
        assert_eq!(late.read().unwrap(), vec![0; blocks], "{blocks} x {threads}");
    }
}

/// Two buffers with a channel from one to the other, and poison around what is written.
struct Transfer {
    device: Device,
    stream: Stream,
    ends: Ends,
    local: Buffer<u8>,
    remote: Buffer<u8>,
    packets: Buffer<u8>,
}

impl Transfer {
    const BYTES: usize = 8192;

    fn new() -> Self {
        let device = cpu();
        let allocate = |bytes| device.allocate(bytes).unwrap();
        let (local, remote, packets) =
            (allocate(Self::BYTES), allocate(Self::BYTES), allocate(4 * Self::BYTES));
        let (stream, ends) = (device.stream().unwrap(), Ends::new(&device, 0));
        Self { stream, ends, local, remote, packets, device }
    }

    fn args(
        &self,
        remote: Global<u8>,
        remote_offset: u64,
        local_offset: u64,
        bytes: u64,
        flag: u32,
    ) -> TransferArgs {
        TransferArgs {
            channel: MemoryChannelHandle {
                base: MemoryChannelBaseHandle { semaphore: self.ends.handle(0) },
                remote,
                local: self.local.address(),
                packets: self.packets.address(),
            },
            policy: self.stream.policy(Rank(0), LONG),
            remote_offset,
            local_offset,
            bytes,
            signal_or_flag: flag,
            reserved: 0,
        }
    }
}

/// Bytes that differ from their neighbours and from the poison's run.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 7 + seed * 13) % 251) as u8).collect()
}

/// `bytes` bytes of `source` from `from` on stand at `to`, and poison everywhere else.
fn assert_moved(destination: &[u8], to: usize, source: &[u8], from: usize, bytes: usize, what: &str) {
    assert_eq!(destination[to..to + bytes], source[from..from + bytes], "{what}");
    let around = destination[..to].iter().chain(&destination[to + bytes..]);
    assert!(around.into_iter().all(|&byte| byte == POISON), "{what} wrote outside");
}

#[test]
fn put_and_get_move_what_was_asked_and_nothing_else() {
    let transfer = Transfer::new();
    for (case, bytes) in [0, 1, 3, 4, 15, 16, 17, 31, 63, 255, 256, 257, 1000, 4099].into_iter().enumerate() {
        for (remote_offset, local_offset) in
            [(0, 0), (1, 0), (0, 3), (4, 8), (5, 13), (8, 8), (15, 15), (16, 2)]
        {
            let what = format!("{bytes} bytes, remote + {remote_offset}, local + {local_offset}");
            let source = pattern(Transfer::BYTES, case);
            let config = LaunchConfig::new(3, 40);
            let remote = transfer.remote.address();
            let args = transfer.args(remote, remote_offset as u64, local_offset as u64, bytes as u64, 1);

            transfer.local.write(&source).unwrap();
            transfer.remote.fill_bytes(POISON).unwrap();
            // SAFETY: both ranges lie in buffers that outlive the launch, here and below.
            unsafe { run::<Put>(&transfer.stream, config, args) };
            let moved = transfer.remote.read().unwrap();
            assert_moved(&moved, remote_offset, &source, local_offset, bytes, &format!("put: {what}"));

            transfer.remote.write(&source).unwrap();
            transfer.local.fill_bytes(POISON).unwrap();
            // One signal a block, which is what the get waits for: the put's went to the other end.
            let signals = transfer.ends.tokens.read().unwrap();
            transfer.ends.tokens.write(&[signals[0] + 3, signals[1]]).unwrap();
            // SAFETY: as above.
            unsafe { run::<Get>(&transfer.stream, config, args) };
            let moved = transfer.local.read().unwrap();
            assert_moved(&moved, local_offset, &source, remote_offset, bytes, &format!("get: {what}"));
            assert_eq!(transfer.ends.tokens.read().unwrap()[1], signals[1]);
        }
    }
}

fn packets_arrive<P: Packet, S, U>(step: usize)
where
    S: Kernel<Args = TransferArgs>,
    U: Kernel<Args = TransferArgs>,
{
    let transfer = Transfer::new();
    let received: Buffer<u8> = transfer.device.allocate(Transfer::BYTES).unwrap();
    let config = LaunchConfig::new(2, 48).concurrent(1);
    // Over the wrap of the flag, past 0.
    let mut flag = Flag::from_counter(u32::MAX - 2);
    for (round, bytes) in [step, 2 * step, 5 * step, 1000, 4096].into_iter().enumerate() {
        let offset = 2 * step as u64;
        let source = pattern(Transfer::BYTES, round);
        transfer.local.write(&source).unwrap();
        received.fill_bytes(POISON).unwrap();
        // The put writes into the packet buffer, as if it were the peer's.
        let put = transfer.args(transfer.packets.address(), 0, offset, bytes as u64, flag.get());
        // SAFETY: the ranges lie in buffers that outlive the launches, here and below.
        unsafe { run::<S>(&transfer.stream, config, put) };
        let mut unpack = transfer.args(Global::NULL, 0, offset, bytes as u64, flag.get());
        unpack.channel.local = received.address();
        // SAFETY: as above.
        unsafe { run::<U>(&transfer.stream, config, unpack) };
        let (at, what) = (offset as usize, format!("{bytes} bytes in packets of {}", size_of::<P>()));
        assert_moved(&received.read().unwrap(), at, &source, at, bytes, &what);
        flag = flag.next();
    }
}

#[test]
fn packets_of_8_bytes_arrive_unpacked() {
    packets_arrive::<Ll8, PutPackets8, UnpackPackets8>(4);
}

#[test]
fn packets_of_16_bytes_arrive_unpacked() {
    packets_arrive::<Ll16, PutPackets16, UnpackPackets16>(8);
}
