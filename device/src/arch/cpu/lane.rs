//! A GPU thread on the CPU device. Where no lane is set (a test that calls a protocol from a plain thread), the caller is the one
//! thread of the one block of a grid.

use core::cell::Cell;
use core::ptr::NonNull;

/// What the CPU device does for a lane that has to wait for others.
pub trait LaneRuntime {
    /// Lets other lanes run.
    fn pause(&self);
    /// Waits for every lane of the block; true where `flag` was true in any.
    fn block_sync(&self, flag: bool) -> bool;
    /// Waits for every lane of the warp, each with a value; calls `read` with them all, by lane.
    fn warp_exchange(&self, value: u64, read: &mut dyn FnMut(&[u64]));
}

/// A GPU thread on the CPU device: its place in the grid, and who runs it.
#[derive(Clone, Copy)]
pub struct Lane {
    /// `%tid.x`.
    pub thread_index: u32,
    /// `%ntid.x`.
    pub block_size: u32,
    /// `%ctaid.x`.
    pub block_index: u32,
    /// `%nctaid.x`.
    pub grid_size: u32,
    /// The block's dynamic shared memory.
    pub shared: NonNull<u8>,
    /// Its bytes.
    pub shared_bytes: u32,
    /// Who runs this lane. Outlives the lane's turn.
    pub runtime: NonNull<dyn LaneRuntime>,
}

std::thread_local! {
    static LANE: Cell<Option<NonNull<Lane>>> = const { Cell::new(None) };
}

/// Makes the calling OS thread run as `lane`, or as none; returns what it ran as before.
///
/// # Safety
///
/// `lane`, and what it points at, stay where they are until the next call on this OS thread.
pub unsafe fn set_lane(lane: Option<NonNull<Lane>>) -> Option<NonNull<Lane>> {
    LANE.replace(lane)
}

/// Reads a field of the current lane. Never inlined: a lane that is a coroutine may be resumed with another value in the
/// thread-local, so its address must not be kept across a switch.
#[inline(never)]
pub(super) fn with_lane<T>(read: impl FnOnce(Option<&Lane>) -> T) -> T {
    // SAFETY: `set_lane`'s contract: the lane is live until it is replaced.
    read(LANE.get().map(|lane| unsafe { lane.as_ref() }))
}

/// The runtime of the current lane.
pub(super) fn runtime() -> Option<NonNull<dyn LaneRuntime>> {
    with_lane(|lane| lane.map(|lane| lane.runtime))
}
