//! Copies and packets over every length and alignment, for groups of every kind.
//!
//! A copy and the packet functions do not sync, so the threads of a group may run one after the other: the groups here are
//! simulated, and no device is needed. Around every destination lies poison that has to stay.

use std::time::Duration;

use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
use warpwire_device::abi::{ChannelId, Flag, Ll8, Ll16, Packet, Rank, WaitError, WaitKind};
use warpwire_device::copy::copy;
use warpwire_device::mem::Element;
use warpwire_device::packet::{Source, Wire, copy_from_packets, copy_to_packets, packets_for};
use warpwire_tests::board::LocalBoard;
use warpwire_tests::bytes::bytes;
use warpwire_tests::group::{Member, Shape};
use warpwire_tests::region::Region;

/// Lengths that exceed a turn of the larger groups, with remainders of every kind.
const LONGEST: usize = 4096 + 3;

/// One thread, less than a warp, a warp, one more, a block, and grids of whole and of odd blocks.
const SHAPES: [Shape; 8] = [
    Shape::flat(1),
    Shape::flat(3),
    Shape::flat(32),
    Shape::flat(33),
    Shape::flat(128),
    Shape::grid(4, 32),
    Shape::grid(3, 7),
    Shape::grid(128, 1),
];

fn any_shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        proptest::sample::select(&SHAPES[..]),
        (1..9_u32, 1..65_u32).prop_map(|(teams, size)| Shape::grid(teams, size)),
    ]
}

fn any_flag() -> impl Strategy<Value = Flag> {
    prop_oneof![
        proptest::sample::select(&[1, 2, u32::MAX - 1, u32::MAX][..]).prop_map(Flag::from_counter),
        any::<u32>().prop_map(Flag::from_counter),
    ]
}

/// Copies with every thread of `shape` and checks the result, byte by byte, and the poison around it.
fn check_copy(shape: Shape, to: &mut Region, from: &Region) {
    to.clear();
    for member in shape.members() {
        // SAFETY: two live regions of the same length, which do not overlap.
        unsafe { copy(member, to.address(), from.address(), from.bytes().len() as u64) };
    }
    assert!(to.bytes() == from.bytes(), "{}", difference("copied", shape, to, from));
    assert!(to.is_intact(), "{}", difference("poison written over", shape, to, from));
}

fn difference(what: &str, shape: Shape, to: &Region, from: &Region) -> String {
    let (to_offset, from_offset) = (to.address().address() % 16, from.address().address() % 16);
    let at = to.bytes().iter().zip(from.bytes()).position(|(a, b)| a != b);
    let len = from.bytes().len();
    format!(
        "{what}: {shape:?}, {len} bytes, offsets {to_offset} <- {from_offset}, first difference at {at:?}"
    )
}

/// C23: every pair of offsets modulo 16 with every length up to 257, 0 among them, which touches nothing.
#[test]
fn copy_of_every_short_length_at_every_offset() {
    let payload = bytes(0xC0, 257);
    for len in 0..=257 {
        for from_offset in 0..16 {
            let from = Region::exact(from_offset, len).filled(&payload[..len]);
            for to_offset in 0..16 {
                let mut to = Region::poisoned(to_offset, len);
                for shape in SHAPES {
                    check_copy(shape, &mut to, &from);
                }
            }
        }
    }
}

/// The edges of the whole range, where a turn of the group is just full, or one byte more or less.
#[test]
fn copy_around_full_turns() {
    for len in [511, 512, 513, 1023, 1024, 1025, 4095, 4096, LONGEST] {
        for (to_offset, from_offset) in [(0, 0), (0, 1), (15, 0), (4, 12), (8, 4), (7, 7)] {
            let from = Region::exact(from_offset, len).filled(&bytes(len as u64, len));
            let mut to = Region::poisoned(to_offset, len);
            for shape in SHAPES {
                check_copy(shape, &mut to, &from);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn copy_of_any_length(
        len in 0..=LONGEST, to_offset in 0..16_usize, from_offset in 0..16_usize, shape in any_shape(), seed: u64,
    ) {
        let from = Region::exact(from_offset, len).filled(&bytes(seed, len));
        check_copy(shape, &mut Region::poisoned(to_offset, len), &from);
    }
}

/// Packs `payload` as packets with every thread of `shape`, looks at their bytes, unpacks them again, and checks that too.
fn check_packets<P: Wire<Payload: Element>>(
    shape: Shape,
    payload: &[u8],
    offsets: (usize, usize),
    flag: Flag,
) {
    let len = payload.len() as u64;
    let packets = packets_for::<P>(len) as usize;
    let (source_offset, target_offset) = offsets;
    let source = Region::exact(source_offset, payload.len()).filled(payload);
    let slots = stale_slots::<P>(packets, flag);
    for member in shape.members() {
        // SAFETY: room for the packets, aligned to 16; the source's bytes are initialised.
        unsafe { copy_to_packets::<P, _>(member, slots.address().cast(), source.address(), len, flag) };
    }
    assert_eq!(slots.bytes(), on_the_wire::<P>(payload, flag), "{shape:?}, {len} bytes, {flag:?}");
    assert!(slots.is_intact(), "{shape:?}, {len} bytes: packets written outside their area");

    let target = Region::poisoned(target_offset, payload.len());
    let board = LocalBoard::new(Rank(0), Duration::from_secs(20));
    for member in shape.members() {
        unpack::<P>(member, &target, &slots, flag, &board).expect("every packet is there");
    }
    assert_eq!(target.bytes(), payload, "{shape:?}, offset {target_offset}, {flag:?}");
    assert!(target.is_intact(), "{shape:?}, {len} bytes: written outside the target");
    assert_eq!(board.report(), None);
}

fn unpack<P: Wire<Payload: Element>>(
    member: Member,
    target: &Region,
    slots: &Region,
    flag: Flag,
    board: &LocalBoard,
) -> Result<(), WaitError> {
    let source = Source { policy: board.policy(), peer: Rank(3), channel: ChannelId(5) };
    let (to, from) = (target.address(), slots.address().cast::<P>());
    // SAFETY: the packets' area is aligned to 16 and whole, the target has room for the bytes.
    unsafe { copy_from_packets::<P, _>(member, to, from, target.bytes().len() as u64, flag, source) }
}

/// Room for packets, holding those of the round before, whose flag is not this one's.
fn stale_slots<P: Wire>(packets: usize, flag: Flag) -> Region {
    let stale = Flag::from_counter(flag.get().wrapping_sub(1).max(1));
    let stale = if stale == flag { flag.next() } else { stale };
    let payload = bytes(0x57A1E, packets * P::PAYLOAD_BYTES as usize);
    Region::poisoned(0, packets * size_of::<P>()).filled(&on_the_wire::<P>(&payload, stale))
}

/// The packets' bytes as the format's description has them, written down a second time: 4 bytes, the flag, and so on, 0 in
/// the last packet's spare bytes.
fn on_the_wire<P: Packet>(payload: &[u8], flag: Flag) -> Vec<u8> {
    let mut padded = payload.to_vec();
    padded.resize(payload.len().next_multiple_of(P::PAYLOAD_BYTES as usize), 0);
    padded.chunks(4).flat_map(|data| [data, &flag.get().to_le_bytes()].concat()).collect()
}

/// Every length up to 67 at every offset modulo 16 of the one side, an odd one on the other.
#[test]
fn packets_of_every_short_length_at_every_offset() {
    let payload = bytes(0x11, 67);
    for flag in [Flag::FIRST, Flag::from_counter(u32::MAX)] {
        for shape in [Shape::flat(1), Shape::flat(3), Shape::flat(32), Shape::grid(3, 5)] {
            for len in 0..=payload.len() {
                for offset in 0..16 {
                    check_packets::<Ll8>(shape, &payload[..len], (offset, 16 - offset), flag);
                    check_packets::<Ll16>(shape, &payload[..len], (offset, 16 - offset), flag);
                }
            }
        }
    }
}

/// All 16 x 16 pairs of offsets, with each length up to 257 at some of them.
#[test]
fn packets_at_every_pair_of_offsets() {
    let payload = bytes(0x22, 257);
    for (pair, len) in (0..256).zip((0..=257).cycle().step_by(7)) {
        let offsets = (pair / 16, pair % 16);
        for shape in [Shape::flat(33), Shape::grid(4, 32)] {
            check_packets::<Ll8>(shape, &payload[..len], offsets, Flag::from_counter(7));
            check_packets::<Ll16>(shape, &payload[..len], offsets, Flag::from_counter(7));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn packets_of_any_length(
        len in 0..=LONGEST, offsets in (0..16_usize, 0..16_usize), shape in any_shape(), flag in any_flag(), seed: u64,
    ) {
        let payload = bytes(seed, len);
        check_packets::<Ll8>(shape, &payload, offsets, flag);
        check_packets::<Ll16>(shape, &payload, offsets, flag);
    }

    /// Flags and payloads do not get into each other's way, whatever they are.
    #[test]
    fn one_packet_with_any_payload(payload: u64, flag in any_flag(), other in any_flag()) {
        let slot = Region::poisoned(0, 16);
        // SAFETY: one packet's room, aligned to 16.
        let words = unsafe {
            Ll16::write(slot.address().cast(), payload, flag);
            Ll16::load(slot.address().cast())
        };
        assert_eq!((Ll16::ready(words, flag), Ll16::payload(words)), (true, payload));
        assert_eq!(Ll16::ready(words, other), other == flag);
    }
}

/// A packet that has not come (its slot holds the last round's) is waited for, by the one thread whose it is, and named
/// in the report. For LL16, also where one of its two words has come and the other has not.
#[test]
fn a_stale_packet_is_not_taken() {
    fn check<P: Wire<Payload: Element>>(words: usize) {
        let flag = Flag::from_counter(9);
        let payload = bytes(0x33, 77);
        let packets = packets_for::<P>(payload.len() as u64) as usize;
        for shape in [Shape::flat(1), Shape::flat(5), Shape::grid(2, 3)] {
            for stale in 0..packets * words {
                let mut wire = on_the_wire::<P>(&payload, flag);
                wire[stale * 8 + 4] = 8;
                let slots = Region::poisoned(0, wire.len()).filled(&wire);
                let target = Region::poisoned(1, payload.len());
                let board = LocalBoard::new(Rank(2), Duration::ZERO);
                let failed: Vec<u32> = (0..shape.size())
                    .filter(|&rank| {
                        let waited = unpack::<P>(Member::new(rank, shape), &target, &slots, flag, &board);
                        assert!(matches!(waited, Ok(()) | Err(WaitError::Timeout)));
                        waited.is_err()
                    })
                    .collect();
                assert_eq!(failed.len(), 1, "{shape:?}, word {stale}: {failed:?} failed");
                let report = board.report().expect("a failed wait leaves its report");
                assert_eq!((report.error, report.kind), (WaitError::Timeout as u32, WaitKind::Packet as u32));
                assert_eq!((report.rank, report.peer, report.channel), (2, 3, 5));
                assert_eq!((report.expected, report.seen), (9, 8));
                assert!(target.is_intact());
            }
        }
    }
    check::<Ll8>(1);
    check::<Ll16>(2);
}
