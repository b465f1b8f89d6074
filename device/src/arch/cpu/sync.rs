//! Lanes that wait for each other.

use std::thread;

use super::lane::runtime;
use crate::arch::WARP_SIZE;

/// Waits for every thread of the block. Called by the block.
pub fn block_sync() {
    block_sync_or(false);
}

/// As [`block_sync`], and true in every thread where `flag` was true in any. Called by the block.
pub fn block_sync_or(flag: bool) -> bool {
    match runtime() {
        // SAFETY: the runtime outlives the lane's turn, and this is its turn.
        Some(runtime) => unsafe { runtime.as_ref() }.block_sync(flag),
        None => flag,
    }
}

/// Gathers a value of every lane of the warp.
fn warp_exchange(value: u64, read: &mut dyn FnMut(&[u64])) {
    match runtime() {
        // SAFETY: as above.
        Some(runtime) => unsafe { runtime.as_ref() }.warp_exchange(value, read),
        None => read(&[value]),
    }
}

/// Waits for every lane of the warp. Called by the warp.
pub fn warp_sync() {
    warp_exchange(0, &mut |_| ());
}

/// True in every lane where `flag` was true in any. Called by the warp.
pub fn warp_any(flag: bool) -> bool {
    let mut any = false;
    warp_exchange(u64::from(flag), &mut |flags| any = flags.iter().any(|&flag| flag != 0));
    any
}

/// The value that lane `lane` gave; the last lane's where there are not so many. Called by the warp.
pub fn warp_shuffle(value: u32, lane: u32) -> u32 {
    let mut result = 0;
    warp_exchange(u64::from(value), &mut |values| {
        let lane = (lane % WARP_SIZE) as usize;
        result = values[lane.min(values.len() - 1)] as u32;
    });
    result
}

/// Lanes of a warp that have come to one place together. Here each comes alone.
#[derive(Clone, Copy, Debug)]
pub struct Lanes(());

/// The lanes that are here with the calling one. Called by a thread.
pub const fn lanes_here() -> Lanes {
    Lanes(())
}

/// True in each of `lanes` where `flag` was true in any. Called by all of them.
pub const fn any_of(_lanes: Lanes, flag: bool) -> bool {
    flag
}

/// Lets others run: a GPU's sleep is shorter than any of the operating system's.
pub fn sleep_ns(_duration: u32) {
    pause();
}

/// Lets others run between two looks at a word.
pub fn pause() {
    match runtime() {
        // SAFETY: the runtime outlives the lane's turn, and this is its turn.
        Some(runtime) => unsafe { runtime.as_ref() }.pause(),
        None => thread::yield_now(),
    }
}
