//! Packets.

use warpwire_device::abi::{ChannelId, Flag, Ll8, Ll16, Pod, Rank};
use warpwire_device::mem::Element;
use warpwire_device::packet::{Source, Wire, copy_from_packets, copy_to_packets, packets_for, read};
use warpwire_tests::board::LocalBoard;
use warpwire_tests::bytes::{bytes, word};
use warpwire_tests::group::{Member, Shape};
use warpwire_tests::region::Region;

use super::threads::{ROUNDS, Words, together};

/// One thread packs, another unpacks, round after round into the same slots, with lengths that differ from round to round,
/// so that slots keep flags of earlier rounds. The packets alone tell the reader when; a semaphore tells the writer that it
/// may go on.
fn packet_stream<P: Wire<Payload: Element>>(first_flag: u32) {
    const LONGEST: usize = 300;
    let slots_len = packets_for::<P>(LONGEST as u64) as usize * size_of::<P>();
    let slots = Region::exact(0, slots_len).filled(&vec![0; slots_len]);
    let (words, board) = (Words::new(2), LocalBoard::generous(Rank(0)));
    let (outbound, inbound) = words.semaphore(0);
    // The same on both sides: a length, offsets, a group, from the round's number.
    let plan = |round: u64| {
        let draw = word(0xABCD, round);
        let shape =
            [Shape::flat(1), Shape::flat(3), Shape::flat(32), Shape::grid(2, 5)][(draw >> 32) as usize % 4];
        (draw as usize % (LONGEST + 1), (draw >> 40) as usize % 16, (draw >> 48) as usize % 16, shape)
    };
    let plan = &plan;
    let writer = || {
        let mut flag = Flag::from_counter(first_flag);
        for round in 0..ROUNDS / 2 {
            let (len, offset, _, shape) = plan(round);
            let source = Region::exact(offset, len).filled(&bytes(round, len));
            for member in shape.members() {
                let (to, from) = (slots.address().cast(), source.address());
                // SAFETY: room for the longest payload's packets; `len` bytes of source.
                unsafe { copy_to_packets::<P, _>(member, to, from, len as u64, flag) };
            }
            inbound.wait(board.policy().patience()).unwrap();
            flag = flag.next();
        }
    };
    together([writer], || {
        let mut flag = Flag::from_counter(first_flag);
        for round in 0..ROUNDS / 2 {
            let (len, _, offset, shape) = plan(round);
            let target = Region::exact(offset, len);
            let source = Source { policy: board.policy(), peer: Rank(1), channel: ChannelId(0) };
            for member in shape.members() {
                let (to, from) = (target.address(), slots.address().cast());
                // SAFETY: as above; room for `len` bytes.
                unsafe { copy_from_packets::<P, _>(member, to, from, len as u64, flag, source) }.unwrap();
            }
            assert_eq!(target.bytes(), bytes(round, len), "round {round}, {len} bytes");
            outbound.signal();
            flag = flag.next();
        }
    });
}

#[test]
fn ll8_packets_stream() {
    packet_stream::<Ll8>(1);
    packet_stream::<Ll8>(u32::MAX - 100);
}

#[test]
fn ll16_packets_stream() {
    packet_stream::<Ll16>(1);
    packet_stream::<Ll16>(u32::MAX - 100);
}

/// Single packets to and fro, as the ping-pong kernels have them.
#[test]
fn packets_bounce() {
    fn bounce<P: Wire<Payload = T>, T: Number>() {
        let slots = [Words::new(1), Words::new(1)];
        let board = LocalBoard::generous(Rank(0));
        let source = Source { policy: board.policy(), peer: Rank(1), channel: ChannelId(0) };
        let end = |end: usize| {
            let (own, peer) = (slots[end].at::<P>(0), slots[1 - end].at::<P>(0));
            let mut flag = Flag::FIRST;
            for round in 0..ROUNDS {
                let payload = |end: usize| T::from_word(word(end as u64, round));
                // SAFETY: a zeroed slot of each end, aligned to 16, that outlives the threads.
                unsafe {
                    if end == 0 {
                        P::write(peer, payload(0), flag);
                    }
                    let came = read(own, flag, source).unwrap();
                    assert_eq!(came.to_word(), payload(1 - end).to_word());
                    if end == 1 {
                        P::write(peer, payload(1), flag);
                    }
                }
                flag = flag.next();
            }
        };
        let end = &end;
        together([move || end(1)], || end(0));
    }
    bounce::<Ll8, u32>();
    bounce::<Ll16, u64>();
}

/// A packet's payload as a number.
trait Number: Pod {
    fn from_word(word: u64) -> Self;
    fn to_word(self) -> u64;
}

impl Number for u32 {
    fn from_word(word: u64) -> Self {
        word as Self
    }

    fn to_word(self) -> u64 {
        self.into()
    }
}

impl Number for u64 {
    fn from_word(word: u64) -> Self {
        word
    }

    fn to_word(self) -> u64 {
        self
    }
}

/// The packets' payload likewise.
#[test]
fn packets_stay_inside_their_blocks() {
    fn check<P: Wire<Payload: Element>>(len: usize, offset: usize) {
        let source = Region::exact(offset, len).filled(&bytes(9, len));
        let slots = Region::exact(0, packets_for::<P>(len as u64) as usize * size_of::<P>());
        let target = Region::exact(15 - offset, len);
        let board = LocalBoard::generous(Rank(0));
        let source_of = Source { policy: board.policy(), peer: Rank(1), channel: ChannelId(0) };
        for member in Shape::flat(3).members() {
            let packets = slots.address().cast::<P>();
            // SAFETY: blocks of the right sizes.
            unsafe {
                copy_to_packets::<P, Member>(member, packets, source.address(), len as u64, Flag::FIRST)
            };
        }
        for member in Shape::flat(3).members() {
            let packets = slots.address().cast::<P>();
            // SAFETY: as above.
            unsafe {
                copy_from_packets::<P, Member>(
                    member,
                    target.address(),
                    packets,
                    len as u64,
                    Flag::FIRST,
                    source_of,
                )
            }
            .unwrap();
        }
        assert_eq!(target.bytes(), source.bytes());
        assert_eq!(slots.bytes().len() as u64, packets_for::<P>(len as u64) * (P::PAYLOAD_BYTES * 2));
    }
    for (len, offset) in (0..80).flat_map(|len| (0..16).map(move |offset| (len, offset))) {
        check::<Ll8>(len, offset);
        check::<Ll16>(len, offset);
    }
}
