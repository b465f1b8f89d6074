//! Copies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use warpwire_device::copy::copy;
use warpwire_device::mem::Element;
use warpwire_tests::bytes::bytes;
use warpwire_tests::group::Shape;
use warpwire_tests::region::Region;

use super::threads::together;

/// Copies between blocks of the heap that end where the ranges do: reading or writing on is an error that AddressSanitizer
/// and valgrind see.
#[test]
fn copies_stay_inside_their_blocks() {
    for len in (0..70).chain([127, 128, 129, 255, 511, 1024, 2049]) {
        for (to_offset, from_offset) in (0..256).map(|pair| (pair / 16, pair % 16)) {
            let from = Region::exact(from_offset, len).filled(&bytes(len as u64, len));
            let to = Region::exact(to_offset, len);
            for member in [Shape::flat(3), Shape::grid(2, 4)][to_offset % 2].members() {
                // SAFETY: two live blocks of this length from there on.
                unsafe { copy(member, to.address(), from.address(), len as u64) };
            }
            assert_eq!(to.bytes(), from.bytes(), "{len} bytes, {to_offset} <- {from_offset}");
        }
    }
}

/// What lies beside both ranges belongs to others, who may write it at the same time: a copy that read or wrote a byte too
/// many would race with them (which ThreadSanitizer sees) or undo what they wrote (which the values show).
#[test]
fn copies_leave_their_neighbours_to_others() {
    const MARGIN: u64 = 16;
    for (len, to_offset, from_offset) in
        [(5, 3, 9), (16, 0, 0), (33, 1, 0), (64, 8, 4), (100, 4, 12), (257, 15, 1)]
    {
        let to = Region::poisoned(to_offset, len);
        let from = Region::poisoned(from_offset, len).filled(&bytes(1, len));
        let done = AtomicBool::new(false);
        // Each of the two starts when the other is there: they overlap.
        let meeting = std::sync::Barrier::new(2);
        let neighbour = || {
            meeting.wait();
            let mut round = 0_u8;
            while !done.load(Ordering::Relaxed) || round < 3 {
                round = round.wrapping_add(1);
                for region in [&to, &from] {
                    for i in 1..=MARGIN {
                        let before = region.address().byte_add(i.wrapping_neg());
                        let behind = region.address().byte_add(len as u64 + i - 1);
                        for at in [before, behind] {
                            // SAFETY: inside the region's margins of at least 32 bytes, which only this thread touches.
                            unsafe {
                                u8::store_weak(at, round);
                                assert_eq!(u8::load_weak(at), round, "a neighbour was written over");
                            }
                        }
                    }
                }
                thread::yield_now();
            }
        };
        together([neighbour], || {
            meeting.wait();
            for _ in 0..300 {
                for member in Shape::flat(3).members() {
                    // SAFETY: the two ranges, which only this thread touches.
                    unsafe { copy(member, to.address(), from.address(), len as u64) };
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(to.bytes(), from.bytes());
    }
}
