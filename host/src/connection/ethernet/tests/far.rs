//! Beyond 4 GiB, in address space that repeats a few pages.

use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::super::frame::PIECE_BYTES;
use super::*;
use crate::device::MemoryKind;
use crate::device::driver::{Allocated, AllocationId, DriverMemory};

/// 5 GiB of address space, over and over the same few pages: each byte is that of its place in the period.
#[derive(Debug)]
struct Repeating(NonNull<u8>);

const FAR: u64 = 5 << 30;
const PERIOD: usize = 16 << 20;

// SAFETY: plain memory; who touches it argues for itself.
unsafe impl Send for Repeating {}
// SAFETY: as above.
unsafe impl Sync for Repeating {}

impl Repeating {
    fn new() -> Self {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let reserved = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, wherever there is room.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), FAR as usize, protection, reserved) };
        let base = NonNull::new(base.unwrap().cast::<u8>()).unwrap();
        let file = memfd_create("warpwire-far", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, PERIOD as u64).unwrap();
        for at in (0..FAR as usize).step_by(PERIOD) {
            // SAFETY: inside the mapping made above, which nobody has touched.
            let place = unsafe { base.as_ptr().add(at) };
            // SAFETY: replaces a part of that mapping.
            unsafe { mmap(place.cast(), PERIOD, protection, MapFlags::SHARED | MapFlags::FIXED, &file, 0) }
                .unwrap();
        }
        Self(base)
    }
}

impl Drop for Repeating {
    fn drop(&mut self) {
        // SAFETY: the whole of the mapping, which is this value's.
        unsafe { munmap(self.0.as_ptr().cast(), FAR as usize) }.unwrap();
    }
}

impl DriverMemory for Repeating {
    fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }

    fn host_pointer(&self) -> *mut u8 {
        self.0.as_ptr()
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Device
    }

    fn allocation(&self) -> Allocated {
        Allocated { id: AllocationId::new(), bytes: FAR, offset: 0 }
    }
}

fn repeating(device: &Device) -> Buffer<u8> {
    Buffer::of_memory(device, Arc::new(Repeating::new()), 0, FAR as usize).unwrap()
}

/// Places beyond 4 GiB on both sides, and a write across that boundary.
#[test]
fn places_beyond_four_gib_are_not_cut() {
    const FOUR_GIB: u64 = 4 << 30;
    let device = cpu();
    let [connection, _other] = pair(&device);
    let (from, to) = (repeating(&device), repeating(&device));
    let content = pattern(PERIOD, 4);
    from.write(&content).unwrap();
    let (source, target) = (own(&from), own(&to));
    let there = told(&device, &target);
    let bytes = 2 * PIECE_BYTES as u64 + 9;
    let (offset, at) = (FOUR_GIB + 1_000_003, FOUR_GIB - 300_001);
    connection.write(&there, at, &source, offset, bytes).unwrap();
    connection.update(&there, FOUR_GIB + 8_000_000, 0x0102_0304_0506_0708).unwrap();
    connection.flush(LONG).unwrap();
    let mut expected = vec![0; PERIOD];
    for i in 0..bytes {
        expected[((at + i) % PERIOD as u64) as usize] = content[((offset + i) % PERIOD as u64) as usize];
    }
    let word = ((FOUR_GIB + 8_000_000) % PERIOD as u64) as usize;
    expected[word..word + 8].copy_from_slice(&0x0102_0304_0506_0708_u64.to_ne_bytes());
    let mut got = vec![0; PERIOD];
    to.read_at(0, &mut got).unwrap();
    assert!(got == expected);
}

/// A write longer than 32 bits count. Its end shows that nothing was cut: the word behind it is set after all of it.
#[test]
fn a_write_longer_than_four_gib_arrives_whole() {
    let device = cpu();
    let [connection, _other] = pair(&device);
    let (from, to) = (repeating(&device), repeating(&device));
    let content = pattern(PERIOD, 5);
    from.write(&content).unwrap();
    let (source, target) = (own(&from), own(&to));
    let bytes = (4 << 30) + PERIOD as u64 + 77;
    connection.write(&told(&device, &target), 0, &source, 0, bytes).unwrap();
    connection.flush(10 * LONG).unwrap();
    assert_eq!(connection.mark().unwrap(), Mark(bytes.div_ceil(PIECE_BYTES as u64)));
    let mut got = vec![0; PERIOD];
    to.read_at(0, &mut got).unwrap();
    assert!(got == content);
}
