//! The types that device and host share, as the bytes that they are in memory.
//!
//! The device crate asserts sizes and offsets at compile time; here stand the bytes themselves, so that a change of layout
//! that keeps the assertions in step still has to change something written by hand.

use std::slice;

use warpwire_device::abi::{
    BarrierHandle, BoardState, ChannelId, FifoHandle, Flag, Global, HostSemaphoreHandle, InboundHandle, Ll8,
    Ll16, MAX_RANKS, MemoryChannelBaseHandle, MemoryChannelHandle, MemoryId, OutboundHandle, PolicyHandle,
    PortChannelBaseHandle, PortChannelHandle, PortId, Rank, RankTable, Request, RequestKind, SemaphoreHandle,
    Trigger, WaitBoard, WaitError, WaitKind, WaitSite,
};
use warpwire_device::packet::{Wire, copy_to_packets, packets_for};
use warpwire_kernels::all_pair::Round;
use warpwire_tests::bytes::bytes;
use warpwire_tests::group::Shape;
use warpwire_tests::region::{POISON, Region};

/// The bytes of a value.
fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    // SAFETY: a live value; the types tested here fill their gaps with fields, so every byte is initialised.
    unsafe { slice::from_raw_parts((&raw const *value).cast::<u8>(), size_of::<T>()) }.to_vec()
}

fn at<T>(address: u64) -> Global<T> {
    // SAFETY: a number to look at; nothing is accessed through it.
    unsafe { Global::from_address(address) }
}

#[rustfmt::skip]
const INBOUND: [u8; 24] = [
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, // token
    0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, // expected
    0x24, 0x23, 0x22, 0x21,                         // peer
    0x34, 0x33, 0x32, 0x31,                         // channel
];

#[rustfmt::skip]
const OUTBOUND: [u8; 8] = [0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41];

fn inbound() -> InboundHandle {
    InboundHandle {
        token: at(0x0102_0304_0506_0708),
        expected: at(0x1112_1314_1516_1718),
        peer: Rank(0x2122_2324),
        channel: ChannelId(0x3132_3334),
    }
}

fn outbound() -> OutboundHandle {
    OutboundHandle { token: at(0x4142_4344_4546_4748) }
}

#[test]
fn semaphore_handles() {
    let both = [INBOUND.as_slice(), &OUTBOUND].concat();
    let semaphore = SemaphoreHandle { inbound: inbound(), outbound: outbound() };
    assert_eq!(bytes_of(&inbound()), INBOUND);
    assert_eq!(bytes_of(&outbound()), OUTBOUND);
    assert_eq!(bytes_of(&semaphore), both);
    assert_eq!(bytes_of(&HostSemaphoreHandle { inbound: inbound() }), INBOUND);
    assert_eq!(bytes_of(&MemoryChannelBaseHandle { semaphore }), both);
}

#[test]
fn memory_channel_handle() {
    let handle = MemoryChannelHandle {
        base: MemoryChannelBaseHandle {
            semaphore: SemaphoreHandle { inbound: inbound(), outbound: outbound() },
        },
        remote: at(0x5152_5354_5556_5758),
        local: at(0x6162_6364_6566_6768),
        packets: at(0x7172_7374_7576_7778),
    };
    #[rustfmt::skip]
    let buffers = [
        0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51, // remote
        0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61, // local
        0x78, 0x77, 0x76, 0x75, 0x74, 0x73, 0x72, 0x71, // packets
    ];
    assert_eq!(bytes_of(&handle), [INBOUND.as_slice(), &OUTBOUND, &buffers].concat());
}

#[test]
fn policy_and_barrier_handles() {
    let policy = PolicyHandle {
        board: at(0x0102_0304_0506_0708),
        timeout_ns: 0x1112_1314_1516_1718,
        rank: Rank(0x2122_2324),
        reserved: 0,
    };
    #[rustfmt::skip]
    let expected = [
        0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, // board
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, // timeout_ns
        0x24, 0x23, 0x22, 0x21, 0, 0, 0, 0,             // rank, reserved
    ];
    assert_eq!(bytes_of(&policy), expected);
    let barrier = BarrierHandle { word: at(0x4142_4344_4546_4748) };
    assert_eq!(bytes_of(&barrier), OUTBOUND);
}

#[test]
fn fifo_and_port_channel_handles() {
    let fifo = FifoHandle {
        slots: at(0x0102_0304_0506_0708),
        head: at(0x1112_1314_1516_1718),
        tail: at(0x2122_2324_2526_2728),
        tail_cache: at(0x3132_3334_3536_3738),
        capacity: 0x4142_4344_4546_4748,
        rank: Rank(0x5152_5354),
        id: ChannelId(0x6162_6364),
    };
    #[rustfmt::skip]
    let fifo_bytes = [
        0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, // slots
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, // head
        0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, // tail
        0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, // tail_cache
        0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, // capacity
        0x54, 0x53, 0x52, 0x51, 0x64, 0x63, 0x62, 0x61, // rank, id
    ];
    assert_eq!(bytes_of(&fifo), fifo_bytes);
    let (port, memory) = (PortId::new(0x0302).unwrap(), |number| MemoryId::new(number).unwrap());
    let base =
        PortChannelBaseHandle { fifo, inbound: inbound(), flushed: outbound().token, port, reserved: 0 };
    let base_bytes = [&fifo_bytes[..], &INBOUND, &OUTBOUND, &[0x02, 0x03, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(bytes_of(&base), base_bytes);
    let channel = PortChannelHandle { base, destination: memory(0x0102), source: memory(0x0103) };
    assert_eq!(bytes_of(&channel), [&base_bytes[..], &[0x02, 0x01, 0, 0, 0x03, 0x01, 0, 0]].concat());
}

/// A request's bits, field by field, as they are written by hand in `device/src/abi/request.rs` and in the C++ baseline.
#[test]
fn requests_in_triggers() {
    let request = Request {
        kind: RequestKind::DATA | RequestKind::FLUSH,
        port: PortId::new(0b11_0000_0011).unwrap(),
        destination: MemoryId::new(0b1_1000_0001).unwrap(),
        destination_offset: 0x0000_0055_1122_3344,
        source: MemoryId::new(0b0_0000_0010).unwrap(),
        source_offset: 0x0000_0066_5566_7788,
        bytes: 0x0000_0077_8000_0001,
    };
    let low = 0x5566_7788 | 0x0000_0001 << 32;
    let high = 0x1122_3344 | 0b10 << 32 | 0b1_1000_0001 << 41 | 0b11_0000_0011 << 50 | 0b101 << 60;
    assert_eq!(request.trigger().words(), [low, high]);
    // The offsets' bits from the 32nd on, the length's from the 31st on.
    let upper = [0x66 | 0xEF << 32, 0x55 | 0b11_0000_0011 << 50];
    assert_eq!(request.upper().words(), upper);
    assert_eq!(Trigger::new([u64::MAX; 2]).words(), [u64::MAX >> 1; 2], "the marks are the FIFO's");
    let bytes = bytes_of(&Trigger::new([0x0102_0304_0506_0708, 0x1112_1314_1516_1718]));
    assert_eq!(bytes, [8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11]);
}

#[test]
fn packets() {
    let ll8 = Ll8 { data: 0x0102_0304, flag: 0x1112_1314 };
    assert_eq!(bytes_of(&ll8), [4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11]);
    let ll16 = Ll16 { low: ll8, high: Ll8 { data: 0x2122_2324, flag: 0x1112_1314 } };
    let high = [0x24, 0x23, 0x22, 0x21, 0x14, 0x13, 0x12, 0x11];
    assert_eq!(bytes_of(&ll16), [[4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11], high].concat());
}

/// What a writer puts on the wire is what the types say: the payload's bytes in the order of memory, the flag beside each 4.
#[test]
fn packets_as_they_are_written() {
    let flag = Flag::from_counter(0xDEAD_BEEF);
    let (ll8, ll16) = (Region::poisoned(0, 8), Region::poisoned(0, 16));
    // SAFETY: one packet's room in each, aligned to 16.
    unsafe {
        Ll8::write(ll8.address().cast(), u32::from_le_bytes([1, 2, 3, 4]), flag);
        Ll16::write(ll16.address().cast(), u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]), flag);
    }
    assert_eq!(ll8.bytes(), [1, 2, 3, 4, 0xEF, 0xBE, 0xAD, 0xDE]);
    let words = [[1, 2, 3, 4, 0xEF, 0xBE, 0xAD, 0xDE], [5, 6, 7, 8, 0xEF, 0xBE, 0xAD, 0xDE]];
    assert_eq!(ll16.bytes(), words.concat());
    assert!(ll8.is_intact() && ll16.is_intact());
}

#[test]
fn wait_board() {
    let board = WaitBoard {
        abort: 0x0102_0304,
        reserved: [0x0506_0708; 15],
        error: 0x1112_1314,
        kind: 0x2122_2324,
        peer: 0x3132_3334,
        channel: 0x4142_4344,
        block: 0x5152_5354,
        thread: 0x6162_6364,
        expected: 0x7172_7374_7576_7778,
        seen: 0x8182_8384_8586_8788,
        rank: 0x9192_9394,
        state: 0xA1A2_A3A4,
        unused: [0xB1B2_B3B4; 4],
    };
    let mut expected = vec![4, 3, 2, 1];
    expected.extend([8, 7, 6, 5].repeat(15));
    #[rustfmt::skip]
    expected.extend([
        0x14, 0x13, 0x12, 0x11,                         // error
        0x24, 0x23, 0x22, 0x21,                         // kind
        0x34, 0x33, 0x32, 0x31,                         // peer
        0x44, 0x43, 0x42, 0x41,                         // channel
        0x54, 0x53, 0x52, 0x51,                         // block
        0x64, 0x63, 0x62, 0x61,                         // thread
        0x78, 0x77, 0x76, 0x75, 0x74, 0x73, 0x72, 0x71, // expected
        0x88, 0x87, 0x86, 0x85, 0x84, 0x83, 0x82, 0x81, // seen
        0x94, 0x93, 0x92, 0x91,                         // rank
        0xA4, 0xA3, 0xA2, 0xA1,                         // state
    ]);
    expected.extend([0xB4, 0xB3, 0xB2, 0xB1].repeat(4));
    assert_eq!(bytes_of(&board), expected);

    let site = WaitSite { kind: WaitKind::Barrier, peer: Rank(0x2122_2324), channel: ChannelId(0x3132_3334) };
    assert_eq!(bytes_of(&site), [3, 0, 0, 0, 0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31]);
}

#[test]
fn numbers_that_cross_the_border() {
    let outcomes = [WaitError::Timeout as u32, WaitError::Aborted as u32];
    let states = [BoardState::Clear as u32, BoardState::Claimed as u32, BoardState::Reported as u32];
    let kinds = [WaitKind::Semaphore, WaitKind::Packet, WaitKind::Barrier, WaitKind::Fifo, WaitKind::Flush];
    assert_eq!((outcomes, states, kinds.map(|kind| kind as u32)), ([1, 2], [0, 1, 2], [1, 2, 3, 4, 5]));
    for kind in kinds {
        assert_eq!(WaitKind::from_number(kind as u32), Some(kind));
    }
    assert_eq!((WaitKind::from_number(0), WaitKind::from_number(6)), (None, None));
}

/// C18: whatever one side writes and another polls is a whole word of 4 or 8 bytes, aligned to itself.
#[test]
fn words_that_are_polled_are_whole_and_aligned() {
    fn word<T>(name: &str) {
        assert!(matches!(size_of::<T>(), 4 | 8), "{name} has {} bytes", size_of::<T>());
        assert_eq!(align_of::<T>(), size_of::<T>(), "{name} is not aligned to its size");
    }
    word::<u64>("a semaphore's token");
    word::<u64>("a semaphore's count of waits");
    word::<u32>("the barrier's word");
    word::<Flag>("a packet's flag");
    word::<Ll8>("a packet's word, flag and data together");
    word::<Round>("a block's round");

    // The flag never crosses a 64-bit word, and no other packet shares its word.
    let (stride8, stride16) =
        (size_of::<[Ll8; 2]>() - size_of::<Ll8>(), size_of::<[Ll16; 2]>() - size_of::<Ll16>());
    assert_eq!((stride8, stride16), (8, 16));
    assert_eq!(align_of::<Ll16>(), 16);
    assert_eq!(size_of::<RankTable<Global<u8>>>(), MAX_RANKS * 8);
    // The host writes only the board's first line, the device only its second.
    assert_eq!((size_of::<WaitBoard>(), align_of::<WaitBoard>()), (128, 128));
    assert!(std::mem::offset_of!(WaitBoard, error) >= 64 && std::mem::offset_of!(WaitBoard, state) >= 64);
    assert!(std::mem::offset_of!(WaitBoard, abort) + 4 <= 64);
}

/// C18: no two threads of a group write one 64-bit word of the packets.
#[test]
fn packets_of_different_threads_share_no_word() {
    fn check<P: Wire<Payload: warpwire_device::mem::Element>>(shape: Shape, len: usize) {
        let source = Region::poisoned(0, len).filled(&bytes(1, len));
        let words = packets_for::<P>(len as u64) as usize * size_of::<P>() / 8;
        let mut writers = vec![0_u32; words];
        let mut slots = Region::poisoned(0, words * 8);
        for member in shape.members() {
            slots.clear();
            let (to, from) = (slots.address().cast(), source.address());
            // SAFETY: room for the packets, aligned; `len` bytes of source.
            unsafe { copy_to_packets::<P, _>(member, to, from, len as u64, Flag::FIRST) };
            for (word, count) in slots.bytes().chunks(8).zip(&mut writers) {
                *count += u32::from(word != [POISON; 8]);
            }
            assert!(slots.is_intact());
        }
        assert_eq!(writers, vec![1; words], "{shape:?}, {len} bytes");
    }
    for shape in [Shape::flat(1), Shape::flat(3), Shape::flat(32), Shape::grid(3, 5)] {
        for len in [1, 3, 4, 5, 8, 9, 127, 1021] {
            check::<Ll8>(shape, len);
            check::<Ll16>(shape, len);
        }
    }
}

/// C03: the flags of successive rounds pass the wrap without 0, which is what untouched memory holds.
#[test]
fn flags_skip_zero() {
    let mut flag = Flag::from_counter(0xFFFF_FFFE);
    let mut used = Vec::new();
    for _ in 0..4 {
        used.push(flag.get());
        flag = flag.next();
    }
    assert_eq!(used, [0xFFFF_FFFE, 0xFFFF_FFFF, 1, 2]);
    assert_eq!(Flag::from_counter(0).get(), 1);
    assert_eq!(bytes_of(&Flag::from_counter(0x0102_0304)), [4, 3, 2, 1]);
}
