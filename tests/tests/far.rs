//! Offsets and lengths past 4 GiB, in address space that is reserved and hardly used.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::slice;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use warpwire_device::abi::{
    ChannelId, Flag, Global, InboundHandle, Ll16, MemoryChannelBaseHandle, MemoryChannelHandle,
    OutboundHandle, Rank, SemaphoreHandle,
};
use warpwire_device::copy::copy;
use warpwire_device::memory_channel::MemoryChannel;
use warpwire_tests::board::LocalBoard;
use warpwire_tests::bytes::bytes;
use warpwire_tests::group::Shape;

const GIB: u64 = 1 << 30;

/// Address space of 6 GiB, zero at first, of which only what is touched takes memory.
struct Sparse(NonNull<u8>);

const SPARSE: usize = 6 << 30;

impl Sparse {
    fn new() -> Self {
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping, wherever there is room.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), SPARSE, protection, flags) };
        Self(NonNull::new(base.expect("6 GiB of address space").cast()).expect("no mapping is at 0"))
    }

    /// The same of one file of `bytes` bytes, over and over: any length fits, and little memory is used.
    fn repeating(bytes: usize) -> Self {
        let sparse = Self::new();
        let file = memfd_create("warpwire-far", MemfdFlags::CLOEXEC).expect("a memory file");
        ftruncate(&file, bytes as u64).expect("room for the file");
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        for at in (0..SPARSE).step_by(bytes) {
            let bytes = bytes.min(SPARSE - at);
            // SAFETY: replaces a part of the mapping made above, which nobody has touched.
            unsafe { mmap(sparse.pointer(at as u64).cast(), bytes, protection, flags, &file, 0) }
                .expect("a part");
        }
        sparse
    }

    fn pointer(&self, offset: u64) -> *mut u8 {
        // SAFETY: inside the mapping, as the callers' offsets are.
        unsafe { self.0.as_ptr().add(offset as usize) }
    }

    fn address(&self) -> Global<u8> {
        // SAFETY: mapped memory.
        unsafe { Global::from_address(self.0.as_ptr() as u64) }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        assert!(offset as usize + bytes.len() <= SPARSE);
        // SAFETY: inside the mapping, borrowed mutably.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer(offset), bytes.len()) };
    }

    fn read(&self, offset: u64, len: usize) -> &[u8] {
        assert!(offset as usize + len <= SPARSE);
        // SAFETY: inside the mapping; nobody writes it while the slice lives.
        unsafe { slice::from_raw_parts(self.pointer(offset), len) }
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, of which no borrow is left.
        unsafe { munmap(self.0.as_ptr().cast::<c_void>(), SPARSE) }.expect("the mapping is this value's");
    }
}

/// A channel over these two buffers that is never signalled on.
fn channel(remote: &Sparse, local: &Sparse) -> MemoryChannel {
    let inbound =
        InboundHandle { token: Global::NULL, expected: Global::NULL, peer: Rank(1), channel: ChannelId(0) };
    let semaphore = SemaphoreHandle { inbound, outbound: OutboundHandle { token: Global::NULL } };
    let handle = MemoryChannelHandle {
        base: MemoryChannelBaseHandle { semaphore },
        remote: remote.address(),
        local: local.address(),
        packets: remote.address(),
    };
    // SAFETY: the buffers are live in the tests below, and the semaphore's words are not touched there.
    unsafe { MemoryChannel::new(handle) }
}

/// Offsets that a 32-bit number would cut to small ones, with what they would be cut to.
const FAR: [(u64, u64); 4] =
    [(4 * GIB, 0), (4 * GIB + 64, 64), (5 * GIB + 4097, GIB + 4097), (4 * GIB - 8, 4 * GIB - 8)];

#[test]
fn put_and_get_past_4_gib() {
    let payload = bytes(1, 1000);
    for (remote_offset, cut) in FAR {
        let (mut here, there, mut back) = (Sparse::new(), Sparse::new(), Sparse::new());
        let local_offset = 4 * GIB + 3;
        here.write(local_offset, &payload);
        for member in Shape::grid(2, 32).members() {
            // SAFETY: both ranges lie inside the two mappings, which are live.
            unsafe { channel(&there, &here).put(member, remote_offset, local_offset, payload.len() as u64) };
        }
        assert_eq!(there.read(remote_offset, payload.len()), payload, "put at {remote_offset:#x}");
        if cut != remote_offset {
            assert_eq!(there.read(cut, payload.len()), [0; 1000], "the offset was cut to {cut:#x}");
        }
        back.write(local_offset - 1, &[0xA5; 1002]);
        for member in Shape::flat(32).members() {
            // SAFETY: as above.
            unsafe { channel(&there, &back).get(member, remote_offset, local_offset, payload.len() as u64) };
        }
        assert_eq!(back.read(local_offset - 1, 1002), [&[0xA5], payload.as_slice(), &[0xA5]].concat());
    }
}

#[test]
fn packets_past_4_gib() {
    let (payload, flag) = (bytes(2, 1001), Flag::from_counter(u32::MAX));
    let board = LocalBoard::generous(Rank(0));
    for (remote_offset, cut) in FAR.map(|(offset, cut)| (offset & !15, cut & !15)) {
        let (mut here, there, back) = (Sparse::new(), Sparse::new(), Sparse::new());
        let local_offset = 4 * GIB + 8;
        here.write(local_offset, &payload);
        for member in Shape::flat(33).members() {
            // SAFETY: both ranges lie inside the two mappings, which are live; the packets are aligned.
            unsafe {
                channel(&there, &here).put_packets::<Ll16, _>(
                    member,
                    remote_offset,
                    local_offset,
                    payload.len() as u64,
                    flag,
                )
            };
        }
        if cut != remote_offset {
            assert_eq!(there.read(cut, 16), [0; 16], "the offset was cut to {cut:#x}");
        }
        for member in Shape::flat(5).members() {
            let (bytes, policy) = (payload.len() as u64, board.policy());
            let channel = channel(&there, &back);
            // SAFETY: as above.
            unsafe {
                channel.unpack_packets::<Ll16, _>(member, remote_offset, local_offset, bytes, flag, policy)
            }
            .expect("every packet is there");
        }
        assert_eq!(back.read(local_offset, payload.len()), payload, "packets at {remote_offset:#x}");
        assert_eq!(back.read(local_offset + payload.len() as u64, 8), [0; 8]);
    }
}

/// One copy of more than 4 GiB, whose destination repeats 48 MiB of memory: what lies behind 4 GiB is copied last, to a
/// place that is no multiple of 4 GiB from the front, and is what stays there.
#[test]
fn a_copy_longer_than_4_gib() {
    const PART: usize = 48 << 20;
    const FRONT: usize = (4 * GIB % PART as u64) as usize;
    for skew in [0, 3] {
        let (mut from, mut to) = (Sparse::new(), Sparse::repeating(PART));
        let tail = bytes(3, 4096 + 5);
        from.write(4 * GIB + skew, &tail);
        to.write(0, &vec![0xA5; PART]);
        for member in Shape::flat(1).members() {
            let len = 4 * GIB + tail.len() as u64;
            // SAFETY: both ranges lie inside the two mappings, which are live.
            unsafe { copy(member, to.address(), from.address().byte_add(skew), len) };
        }
        let (part, behind) = (to.read(0, PART), FRONT + tail.len());
        assert_eq!(&part[FRONT..behind], tail);
        assert!(part[..FRONT].iter().chain(&part[behind..]).all(|&byte| byte == 0), "something was left out");
    }
}
