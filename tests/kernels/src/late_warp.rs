//! Messages of a block one of whose warps comes late.

use core::mem::offset_of;

use static_assertions::const_assert_eq;
use warpwire_device::abi::{Global, MemoryChannelHandle, PolicyHandle, WaitError};
use warpwire_device::arch::{self, Gpu, Relaxed, WARP_SIZE};
use warpwire_device::coop::{Block, Group, SyncGroup};
use warpwire_device::kernel;
use warpwire_device::memory_channel::MemoryChannel;
use warpwire_device::spin::Policy;

/// Arguments of [`LateWarp`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LateWarpArgs {
    /// The sender's channel, then the receiver's. The sender's `local` is its message and its `remote` the receiver's `local`.
    pub ends: [MemoryChannelHandle; 2],
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// 32-bit words of the message.
    pub words: u64,
    /// How many words the receiver saw that were not their round's: one word, 0 at first.
    pub stale: Global<u32>,
    /// Messages.
    pub rounds: u32,
    /// Nanoseconds that the late warp is late by.
    pub late_ns: u32,
}
const_assert_eq!(size_of::<LateWarpArgs>(), 160);
const_assert_eq!(offset_of!(LateWarpArgs, policy), 112);

kernel! {
    /// Block 0 puts messages by its block-level call, a warp of it, another each time, coming late to that call; block 1 looks
    /// at every word of each and answers. Two blocks of any number of threads.
    pub struct LateWarp = "check_late_warp", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: LateWarpArgs) {
        // A failed wait has left its report; the kernel just ends.
        // SAFETY: the launch's contract, passed on.
        let _ = unsafe { if arch::block_index() == 0 { send(&args) } else { receive(&args) } };
    }
}

/// # Safety
///
/// As for the kernel's launch.
#[inline(always)]
unsafe fn send(args: &LateWarpArgs) -> Result<(), WaitError> {
    // SAFETY: the caller's contract: the channel's words and buffers and the board are mapped and live.
    let (channel, policy) = unsafe { (MemoryChannel::new(args.ends[0]), Policy::new(args.policy)) };
    // No block is empty, which the compiler does not know: it would divide by 0.
    let warps = Block.size().div_ceil(WARP_SIZE).max(1);
    for round in 1..=args.rounds {
        let mut i = u64::from(Block.rank());
        while i < args.words {
            // SAFETY: the sender's own message, which no put reads any more: the last one was answered.
            unsafe { arch::store_weak_u32(args.ends[0].local.cast().add(i), round) };
            i += u64::from(Block.size());
        }
        Block.sync();
        if Block.rank() / WARP_SIZE == round % warps {
            come_late(args.late_ns);
        }
        // SAFETY: the message lies inside both buffers; the receiver looks at its own between a wait and its answer alone.
        unsafe { channel.put_signal(Block, 0, 0, 4 * args.words) };
        channel.wait_all(Block, &policy)?;
    }
    Ok(())
}

/// # Safety
///
/// As for the kernel's launch.
#[inline(always)]
unsafe fn receive(args: &LateWarpArgs) -> Result<(), WaitError> {
    // SAFETY: the caller's contract: the channel's words and buffers and the board are mapped and live.
    let (channel, policy) = unsafe { (MemoryChannel::new(args.ends[1]), Policy::new(args.policy)) };
    let mut stale = 0;
    for round in 1..=args.rounds {
        channel.wait_all(Block, &policy)?;
        let mut i = u64::from(Block.rank());
        while i < args.words {
            // SAFETY: the receiver's buffer, whose writer's signal has been waited for.
            let seen = unsafe { arch::load_weak_u32(args.ends[1].local.cast().add(i)) };
            stale += u32::from(seen != round);
            i += u64::from(Block.size());
        }
        Block.sync();
        if Block.is_leader() {
            channel.signal();
        }
    }
    // SAFETY: the launch's contract: one word.
    unsafe { arch::red_add_u32::<Relaxed, Gpu>(args.stale, stale) };
    Ok(())
}

/// Returns so much later. Called by a warp, while the others of its block go on.
#[inline(always)]
fn come_late(ns: u32) {
    let begun = arch::timer_ns();
    while arch::timer_ns().wrapping_sub(begun) < u64::from(ns) {
        arch::sleep_ns(ns);
    }
}
