//! Two ends that answer each other: the latency of one hop.

use core::mem::offset_of;

use static_assertions::const_assert_eq;
use warpwire_device::abi::{
    ChannelId, Flag, Global, Ll8, Ll16, MemoryChannelHandle, PolicyHandle, Rank, SemaphoreHandle, WaitError,
};
use warpwire_device::arch::{self, Gpu, Relaxed};
use warpwire_device::coop::{Block, Group, SyncGroup};
use warpwire_device::kernel;
use warpwire_device::memory_channel::MemoryChannel;
use warpwire_device::packet::{self, Source, Wire};
use warpwire_device::semaphore::Semaphore;
use warpwire_device::spin::Policy;

use crate::message::{count_wrong, fill};

/// Arguments of [`SemaphorePingPong`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SemaphorePingPongArgs {
    /// The two ends. Block `b` plays end `first_end + b`: both in one launch of two blocks, or one a launch.
    pub ends: [SemaphoreHandle; 2],
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// The end that block 0 plays: 0 or 1. End 0 begins.
    pub first_end: u32,
    /// Round trips.
    pub rounds: u32,
    /// Not 0: the relaxed forms.
    pub relaxed: u32,
    /// Padding, 0.
    pub reserved: u32,
}
const_assert_eq!(size_of::<SemaphorePingPongArgs>(), 104);
const_assert_eq!(offset_of!(SemaphorePingPongArgs, policy), 64);

kernel! {
    /// Signals to and fro between two ends, `rounds` times: 2 hops a round. One thread a block; one or two blocks.
    pub struct SemaphorePingPong = "warpwire_semaphore_ping_pong", max_threads = 32, min_blocks = 1;
    unsafe fn(args: SemaphorePingPongArgs) {
        // Where the assembler sees that one thread signals, it adds no code that gathers a warp's signals into one.
        if !Block.is_leader() {
            return;
        }
        let end = args.first_end + arch::block_index();
        let handle = if end == 0 { args.ends[0] } else { args.ends[1] };
        // SAFETY: the launch's contract: both ends' words, and the board, are mapped and live.
        let (semaphore, policy) = unsafe { (Semaphore::new(handle), Policy::new(args.policy)) };
        // A failed wait has left its report; the kernel just ends.
        let _ = if args.relaxed == 0 {
            bounce(args.rounds, end == 0, || semaphore.signal(), || semaphore.wait(policy.patience()))
        } else {
            bounce(args.rounds, end == 0, || semaphore.signal_relaxed(), || semaphore.wait_relaxed(policy.patience()))
        };
    }
}

#[inline(always)]
fn bounce(
    rounds: u32,
    begins: bool,
    signal: impl Fn(),
    wait: impl Fn() -> Result<(), WaitError>,
) -> Result<(), WaitError> {
    for _ in 0..rounds {
        if begins {
            signal();
            wait()?;
        } else {
            wait()?;
            signal();
        }
    }
    Ok(())
}

/// Arguments of [`PacketPingPong8`] and [`PacketPingPong16`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacketPingPongArgs {
    /// Each end's inbound slots, one for each of the block's threads: those of end 0, those of end 1.
    pub slots: [Global<u8>; 2],
    /// Where each end's threads leave the payload that came last, 8 bytes a thread.
    pub received: [Global<u64>; 2],
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// The end that block 0 plays: 0 or 1. End 0 begins.
    pub first_end: u32,
    /// Round trips.
    pub rounds: u32,
    /// The flag of the first round; the rounds after it count on.
    pub flag: u32,
    /// Padding, 0.
    pub reserved: u32,
}
const_assert_eq!(size_of::<PacketPingPongArgs>(), 72);
const_assert_eq!(offset_of!(PacketPingPongArgs, policy), 32);

kernel! {
    /// Sends LL8 packets to and fro between two ends, one slot a thread: end 0 sends numbers, end 1 sends them back plus 1.
    /// One or two blocks, any number of threads.
    pub struct PacketPingPong8 = "warpwire_ll8_ping_pong", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: PacketPingPongArgs) {
        // SAFETY: the launch's contract, passed on.
        unsafe { packets::<Ll8>(&args, u64::from, |value| value as u32) }
    }
}

kernel! {
    /// As [`PacketPingPong8`] with LL16 packets.
    pub struct PacketPingPong16 = "warpwire_ll16_ping_pong", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: PacketPingPongArgs) {
        // SAFETY: the launch's contract, passed on.
        unsafe { packets::<Ll16>(&args, |payload| payload, |value| value) }
    }
}

/// The number that a thread of end 0 sends first: both halves of an LL16 payload differ, and from thread to thread.
#[inline(always)]
#[must_use]
pub const fn first_payload(thread: u32) -> u64 {
    (thread as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 << 32 | 1
}

/// # Safety
///
/// The slots, the received words and the board are mapped and live.
#[inline(always)]
unsafe fn packets<P: Wire>(
    args: &PacketPingPongArgs,
    widen: impl Fn(P::Payload) -> u64,
    narrow: impl Fn(u64) -> P::Payload,
) {
    let end = args.first_end + arch::block_index();
    let (own, peer, received) = if end == 0 {
        (args.slots[0], args.slots[1], args.received[0])
    } else {
        (args.slots[1], args.slots[0], args.received[1])
    };
    let thread = arch::thread_index();
    let (own, peer) = (own.cast::<P>().add(u64::from(thread)), peer.cast::<P>().add(u64::from(thread)));
    // SAFETY: the caller's contract.
    let policy = unsafe { Policy::new(args.policy) };
    let source = Source { policy: &policy, peer: Rank(1 - end), channel: ChannelId(0) };
    let mut flag = Flag::from_counter(args.flag);
    let mut value = first_payload(thread);
    for _ in 0..args.rounds {
        if end == 0 {
            // SAFETY: the caller's contract, here and below.
            unsafe { P::write(peer, narrow(value), flag) };
        }
        // SAFETY: as above.
        let payload = unsafe { packet::read(own, flag, source) };
        let Ok(payload) = payload else { return };
        value = widen(payload);
        if end == 1 {
            value = value.wrapping_add(1);
            // SAFETY: as above.
            unsafe { P::write(peer, narrow(value), flag) };
        }
        flag = flag.next();
    }
    // SAFETY: the caller's contract: one word a thread.
    unsafe { arch::store_weak_u64(received.add(u64::from(thread)), value) };
}

/// Arguments of [`PutPingPong`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PutPingPongArgs {
    /// The two ends' channels: `local` is what an end sends, `remote` the other's inbox, `packets` its own inbox.
    pub ends: [MemoryChannelHandle; 2],
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// Bytes of the message: where it is checked, a multiple of 4.
    pub bytes: u64,
    /// How many 32-bit words each end saw that were not this round's, two counts. Null: nothing is checked, the messages
    /// are sent as they are.
    pub wrong: Global<u32>,
    /// The end that block 0 plays: 0 or 1. End 0 begins.
    pub first_end: u32,
    /// Round trips.
    pub rounds: u32,
}
const_assert_eq!(size_of::<PutPingPongArgs>(), 160);
const_assert_eq!(offset_of!(PutPingPongArgs, policy), 112);

kernel! {
    /// Puts a message to and fro between two ends, `rounds` times: each end copies its own, syncs its block and signals, and
    /// the other waits; 2 hops a round. One or two blocks, any number of threads. Where it checks, each message is filled
    /// anew before it is sent, and looked at when it has come.
    pub struct PutPingPong = "warpwire_put_ping_pong", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: PutPingPongArgs) {
        let end = args.first_end + arch::block_index();
        let handle = if end == 0 { args.ends[0] } else { args.ends[1] };
        // SAFETY: the launch's contract: the channel's words and buffers and the board are mapped and live.
        let (channel, policy) = unsafe { (MemoryChannel::new(handle), Policy::new(args.policy)) };
        let checks = !args.wrong.is_null();
        let words = if checks { args.bytes / 4 } else { 0 };
        let mut wrong = 0;
        let mut receive = |round: u32| -> Result<(), WaitError> {
            channel.wait_all(Block, &policy)?;
            // SAFETY: the inbox, whose writer's signal has been waited for.
            wrong += unsafe { count_wrong(handle.packets.cast(), words, round) };
            Ok(())
        };
        for round in 1..=args.rounds {
            if end == 1 && receive(round).is_err() {
                return;
            }
            if checks {
                // SAFETY: the launch's contract: the end's own buffer, which no put reads any more: its last one was
                // answered.
                unsafe { fill(handle.local.cast(), words, round) };
                Block.sync();
            }
            // SAFETY: the launch's contract: the message lies inside both buffers, and the other end looks at its inbox
            // between a wait and its own signal alone.
            unsafe { channel.put_signal(Block, 0, 0, args.bytes) };
            if end == 0 && receive(round).is_err() {
                return;
            }
        }
        if wrong != 0 {
            // SAFETY: the launch's contract: two counts, 0 at first.
            unsafe { arch::red_add_u32::<Relaxed, Gpu>(args.wrong.add(u64::from(end)), wrong) };
        }
    }
}
