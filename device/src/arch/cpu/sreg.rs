//! Where a lane is, the time, and what else a register says.

use core::ptr::NonNull;
use std::time::Instant;

use super::lane::with_lane;

/// `%tid.x`: the thread's number in its block.
pub fn thread_index() -> u32 {
    with_lane(|lane| lane.map_or(0, |lane| lane.thread_index))
}

/// `%ntid.x`: threads of the block.
pub fn block_size() -> u32 {
    with_lane(|lane| lane.map_or(1, |lane| lane.block_size))
}

/// `%ctaid.x`: the block's number in its grid.
pub fn block_index() -> u32 {
    with_lane(|lane| lane.map_or(0, |lane| lane.block_index))
}

/// `%nctaid.x`: blocks of the grid.
pub fn grid_size() -> u32 {
    with_lane(|lane| lane.map_or(1, |lane| lane.grid_size))
}

/// Nanoseconds since the first call in this process.
pub fn timer_ns() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// `value + step`, wrapping.
pub fn advance(value: u64, step: u64) -> u64 {
    value.wrapping_add(step)
}

/// Nothing: no assembler follows.
pub const fn keep_loop() {}

/// The upper 32 bits.
pub fn high_half(value: u64) -> u32 {
    (value >> 32) as u32
}

/// `count - 1`, wrapping.
pub fn count_down(count: u32) -> u32 {
    count.wrapping_sub(1)
}

/// Bytes of dynamic shared memory that the launch asked for.
pub fn dynamic_shared_bytes() -> u32 {
    with_lane(|lane| lane.map_or(0, |lane| lane.shared_bytes))
}

/// An address in the block's shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Shared(NonNull<u8>);

impl Shared {
    /// `bytes` bytes further on.
    #[must_use]
    pub const fn byte_add(self, bytes: u32) -> Self {
        // Wrapping: the sum is only used where the launch has asked for that much.
        Self(
            NonNull::new(self.0.as_ptr().wrapping_add(bytes as usize))
                .expect("not the end of the address space"),
        )
    }

    /// As a pointer of the host's.
    #[must_use]
    pub const fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }
}

/// The block's dynamic shared memory, 128-byte aligned; dangling where there is none.
pub fn dynamic_shared() -> Shared {
    Shared(with_lane(|lane| lane.map_or(NonNull::dangling(), |lane| lane.shared)))
}
