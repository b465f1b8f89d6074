//! Puts, gets and packets over a memory channel.

use warpwire::abi::{ChannelId, Flag, Global, Packet, Rank};
use warpwire::device::{Buffer, Device, Function, LaunchConfig, Stream};
use warpwire::kernel::Kernel;
use warpwire_device::abi::{Ll8, Ll16};
use warpwire_device::bulk::RING_BYTES;
use warpwire_kernels::bulk::PutBulk;
use warpwire_kernels::packets::{PutPackets8, PutPackets16, UnpackPackets8, UnpackPackets16};
use warpwire_kernels::transfer::{Get, Put, TransferArgs};

use super::rig::{Ends, LONG, POISON, function, zeroed};
use crate::bytes::bytes;

/// A side of a transfer: where it lies in its buffer.
#[derive(Clone, Copy, Debug)]
struct Range {
    at: usize,
    len: usize,
}

/// A copy's two buffers on one device, the destination all poison.
struct Pair {
    stream: Stream,
    ends: Ends,
    to: Buffer<u8>,
    from: Buffer<u8>,
    source: Vec<u8>,
}

impl Pair {
    fn new(device: &Device, room: usize) -> Self {
        let source = bytes(room as u64, room);
        let (to, from) = (zeroed(device, room), zeroed(device, room));
        to.fill_bytes(POISON).unwrap();
        from.write(&source).unwrap();
        Self { stream: device.stream().unwrap(), ends: Ends::new(device, ChannelId(0), 0), to, from, source }
    }

    /// `len` bytes from `from_at` to `to_at`; a get's local buffer is the destination, a put's the source.
    fn args(&self, is_get: bool, to_at: usize, from: Range) -> TransferArgs {
        let (to, source) = (self.to.address(), self.from.address());
        let (remote, local) = if is_get { (source, to) } else { (to, source) };
        let (remote_at, local_at) = if is_get { (from.at, to_at) } else { (to_at, from.at) };
        TransferArgs {
            channel: self.ends.channel(0, remote, local, Global::NULL),
            policy: self.stream.policy(Rank(0), LONG),
            remote_offset: remote_at as u64,
            local_offset: local_at as u64,
            bytes: from.len as u64,
            signal_or_flag: 0,
            reserved: 0,
        }
    }

    /// Whether the destination has what was moved, each as (where to, from where), and poison everywhere else.
    fn check(&self, moved: &[(usize, Range)]) {
        let mut expected = vec![POISON; self.source.len()];
        for &(to_at, from) in moved {
            expected[to_at..to_at + from.len].copy_from_slice(&self.source[from.at..from.at + from.len]);
        }
        let seen = self.to.read().unwrap();
        if let Some(at) = seen.iter().zip(&expected).position(|(a, b)| a != b) {
            let of = moved.iter().rfind(|(to_at, _)| *to_at <= at);
            panic!("byte {at} is {:#x}, not {:#x}; the transfer before it is {of:?}", seen[at], expected[at]);
        }
    }
}

/// Lengths around every step of a copy: a byte, a word, 16 bytes, and several.
const LENGTHS: [usize; 21] = [0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 20, 31, 32, 33, 64, 127, 129, 256, 257];

/// Every pair of offsets modulo 16 with each of the lengths, each transfer in a place of its own (C23).
fn at_every_pair_of_offsets<K: Kernel<Args = TransferArgs>>(device: &Device, is_get: bool) {
    const ROOM: usize = 320;
    let kernel = function::<K>(device);
    let pair = Pair::new(device, LENGTHS.len() * 256 * ROOM);
    let mut moved = Vec::new();
    for (i, len) in LENGTHS.into_iter().enumerate() {
        for offsets in 0..256 {
            let base = (i * 256 + offsets) * ROOM + 16;
            let (to_at, from) = (base + offsets / 16, Range { at: base + offsets % 16, len });
            let config = LaunchConfig::new(1 + (offsets as u32 & 1), 4);
            // SAFETY: both ranges lie inside the buffers, which outlive the launch, here and below.
            unsafe { pair.stream.launch(&kernel, config, pair.args(is_get, to_at, from)) }.unwrap();
            moved.push((to_at, from));
        }
    }
    pair.stream.synchronize().unwrap();
    pair.check(&moved);
}

/// C23, by puts.
pub fn puts_at_every_pair_of_offsets(device: &Device) {
    at_every_pair_of_offsets::<Put>(device, false);
}

/// C23, by gets.
pub fn gets_at_every_pair_of_offsets(device: &Device) {
    at_every_pair_of_offsets::<Get>(device, true);
}

/// Grids of one thread, of part of a warp, of many blocks; lengths that a grid does not divide.
pub fn puts_and_gets_with_any_grid(device: &Device) {
    let (put, get) = (function::<Put>(device), function::<Get>(device));
    let pair = Pair::new(device, 300_000);
    for (blocks, threads) in [(1, 1), (1, 32), (3, 7), (8, 64), (2, 1024)] {
        for (to_at, from) in [
            (1000, Range { at: 2000, len: 4099 }),
            (1001, Range { at: 2006, len: 65_537 }),
            (4, Range { at: 12, len: 131_080 }),
            (15, Range { at: 0, len: 200_003 }),
        ] {
            for is_get in [false, true] {
                pair.to.fill_bytes(POISON).unwrap();
                let (config, args) = (LaunchConfig::new(blocks, threads), pair.args(is_get, to_at, from));
                // SAFETY: as above.
                unsafe {
                    if is_get {
                        pair.stream.launch(&get, config, args)
                    } else {
                        pair.stream.launch(&put, config, args)
                    }
                }
                .unwrap();
                pair.stream.synchronize().unwrap();
                pair.check(&[(to_at, from)]);
            }
        }
    }
}

/// Each block of a put signals when its share is there, and each block of a get waits for one signal first.
pub fn each_block_of_a_put_signals_once(device: &Device) {
    let (put, get) = (function::<Put>(device), function::<Get>(device));
    let blocks = 4_u32;
    let pair = Pair::new(device, 10_000);
    let getter = device.stream().unwrap();
    for round in 1..=20_u32 {
        let range = Range { at: round as usize, len: 9000 };
        let config = LaunchConfig::new(blocks, 32).concurrent(2);
        // The get first: it finds nothing and waits. It moves no byte: each of its blocks goes on at any one signal, which
        // says nothing of the other blocks' shares.
        let get_args = TransferArgs {
            channel: pair.ends.channel(1, pair.to.address(), pair.from.address(), Global::NULL),
            policy: getter.policy(Rank(1), LONG),
            remote_offset: 0,
            local_offset: 0,
            bytes: 0,
            signal_or_flag: 1,
            reserved: 0,
        };
        let put_args = TransferArgs { signal_or_flag: 1, ..pair.args(false, 0, range) };
        // SAFETY: the ranges lie inside the buffers, which outlive the launches.
        unsafe {
            getter.launch(&get, config, get_args).unwrap();
            pair.stream.launch(&put, config, put_args).unwrap();
        }
        getter.synchronize().unwrap();
        pair.stream.synchronize().unwrap();
        assert_eq!(pair.ends.tokens.read().unwrap(), [0, u64::from(blocks) * u64::from(round)]);
        assert_eq!(pair.ends.expected.read().unwrap(), [0, u64::from(blocks) * u64::from(round)]);
        pair.to.write_at(range.len, &vec![POISON; 10_000 - range.len]).unwrap();
        pair.check(&[(0, range)]);
    }
}

/// The copy engine's puts, and the ones that it has to leave to the threads; left out where the GPU has none.
pub fn bulk_puts(device: &Device) {
    if device.properties().compute_capability.is_some_and(|capability| capability < (9, 0)) {
        crate::skip::skipped("bulk_puts", "the copy engine's bulk copies need compute capability 9.0");
        return;
    }
    let kernel = function::<PutBulk>(device);
    let pair = Pair::new(device, 2_000_000);
    for (blocks, to_at, from) in [
        (1, 0, Range { at: 0, len: 0 }),
        (1, 16, Range { at: 32, len: 16 }),
        (1, 5, Range { at: 21, len: 11 }),
        (2, 5, Range { at: 21, len: 100_003 }),
        (4, 0, Range { at: 0, len: 1_900_000 }),
        (3, 7, Range { at: 23, len: 700_001 }),
        // Not alike modulo 16.
        (2, 1, Range { at: 4, len: 50_001 }),
        (1, 8, Range { at: 0, len: 257 }),
    ] {
        pair.to.fill_bytes(POISON).unwrap();
        let config = LaunchConfig::new(blocks, 32).shared_bytes(RING_BYTES);
        let signals = pair.ends.tokens.read().unwrap()[1];
        let args = TransferArgs { signal_or_flag: 1, ..pair.args(false, to_at, from) };
        // SAFETY: both ranges lie inside the buffers, which outlive the launch; the launch has the ring's memory.
        unsafe { pair.stream.launch(&kernel, config, args) }.unwrap();
        pair.stream.synchronize().unwrap();
        pair.check(&[(to_at, from)]);
        assert_eq!(pair.ends.tokens.read().unwrap()[1] - signals, u64::from(blocks), "signals of {from:?}");
    }
}

/// LL8 packets from one stream to another.
pub fn ll8_packets_arrive(device: &Device) {
    packets_arrive::<Ll8, PutPackets8, UnpackPackets8>(device);
}

/// LL16 packets likewise.
pub fn ll16_packets_arrive(device: &Device) {
    packets_arrive::<Ll16, PutPackets16, UnpackPackets16>(device);
}

/// One launch packs while another, which began before it, unpacks; round after round into the same slots, so that a slot
/// holds the flag of an earlier round, and over the wrap of the flag (C03).
fn packets_arrive<P, S, U>(device: &Device)
where
    P: Packet,
    S: Kernel<Args = TransferArgs>,
    U: Kernel<Args = TransferArgs>,
{
    const ROOM: usize = 5000;
    let (put, unpack): (Function<S>, Function<U>) = (function(device), function(device));
    let pair = Pair::new(device, ROOM);
    let slots: Buffer<u8> = zeroed(device, ROOM.div_ceil(P::PAYLOAD_BYTES as usize) * size_of::<P>());
    let receiver = device.stream().unwrap();
    let mut flag = Flag::from_counter(0xFFFF_FFFE);
    let lens = [8, 4096, 8, 4096, 1, 4099, 3, 0, 77, 4000, 5, 4096, 9, 4097];
    for (round, len) in lens.into_iter().enumerate() {
        let grids = [(1, 1), (1, 33), (3, 7), (4, 64)];
        let ((blocks, threads), (other_blocks, other_threads)) = (grids[round % 4], grids[(round / 2) % 4]);
        let (to_at, from) = (round % 16, Range { at: (round * 3) % 16, len });
        let put_args = TransferArgs {
            channel: pair.ends.channel(0, slots.address(), pair.from.address(), Global::NULL),
            policy: pair.stream.policy(Rank(0), LONG),
            remote_offset: 0,
            local_offset: from.at as u64,
            bytes: len as u64,
            signal_or_flag: flag.get(),
            reserved: 0,
        };
        let unpack_args = TransferArgs {
            channel: pair.ends.channel(1, Global::NULL, pair.to.address(), slots.address()),
            policy: receiver.policy(Rank(1), LONG),
            local_offset: to_at as u64,
            ..put_args
        };
        pair.to.fill_bytes(POISON).unwrap();
        // SAFETY: the slots hold the longest message's packets, the buffers outlive the launches.
        unsafe {
            receiver.launch(&unpack, LaunchConfig::new(blocks, threads).concurrent(1), unpack_args).unwrap();
            pair.stream.launch(&put, LaunchConfig::new(other_blocks, other_threads), put_args).unwrap();
        }
        receiver.synchronize().unwrap();
        pair.stream.synchronize().unwrap();
        pair.check(&[(to_at, from)]);
        flag = flag.next();
    }
}
