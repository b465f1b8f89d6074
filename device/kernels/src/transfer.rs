//! Plain transfers over a memory channel.

use core::mem::offset_of;

use static_assertions::const_assert_eq;
use warpwire_device::abi::{Flag, Ll8, Ll16, MemoryChannelHandle, PolicyHandle};
use warpwire_device::coop::{Block, Grid, Group, SyncGroup};
use warpwire_device::kernel;
use warpwire_device::memory_channel::MemoryChannel;
use warpwire_device::packet::Wire;
use warpwire_device::spin::Policy;

/// Arguments of the transfers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TransferArgs {
    /// The channel.
    pub channel: MemoryChannelHandle,
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// Where in the peer's buffer (for unpacking: in the packet buffer), in bytes.
    pub remote_offset: u64,
    /// Where in the local buffer, in bytes.
    pub local_offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// [`Put`] and [`Get`]: not 0, each block signals once when its share is done (put) or waits for one signal before it
    /// begins (get), so the peer has to wait, or signal, as often as there are blocks. The packet kernels: the flag.
    pub signal_or_flag: u32,
    /// Padding, 0.
    pub reserved: u32,
}
const_assert_eq!(size_of::<TransferArgs>(), 112);
const_assert_eq!(offset_of!(TransferArgs, policy), 56);
const_assert_eq!(offset_of!(TransferArgs, remote_offset), 80);

kernel! {
    /// Copies from the local buffer into the peer's, with any grid.
    pub struct Put = "warpwire_put", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: TransferArgs) {
        // SAFETY: the launch's contract: the channel's words and buffers are mapped and live, the ranges inside them.
        let channel = unsafe { MemoryChannel::new(args.channel) };
        // SAFETY: as above.
        unsafe { channel.put(Grid, args.remote_offset, args.local_offset, args.bytes) };
        if args.signal_or_flag != 0 {
            Block.sync();
            if Block.is_leader() {
                channel.signal();
            }
        }
    }
}

#[cfg(any(warpwire_sm90, not(target_arch = "nvptx64")))]
kernel! {
    /// As [`Put`], by bulk asynchronous copies (sm_90 and newer): one thread a block drives the copy engine. The block's
    /// dynamic shared memory is the ring that they go through, [`bulk::RING_BYTES`](warpwire_device::bulk::RING_BYTES) of it;
    /// one block a multiprocessor, of 32 threads.
    pub struct PutBulk = "warpwire_put_bulk", max_threads = 32, min_blocks = 1;
    unsafe fn(args: TransferArgs) {
        // SAFETY: the launch's contract: the channel's words and buffers are mapped and live, the ranges inside them.
        let channel = unsafe { MemoryChannel::new(args.channel) };
        // SAFETY: as above; the launch has the shared memory that the ring takes.
        unsafe { channel.put_bulk(args.remote_offset, args.local_offset, args.bytes) };
        if args.signal_or_flag != 0 && Block.is_leader() {
            // The leader has waited for its own copies: its signal publishes them.
            channel.signal();
        }
    }
}

kernel! {
    /// Copies from the peer's buffer into the local one, with any grid.
    pub struct Get = "warpwire_get", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: TransferArgs) {
        // SAFETY: the launch's contract: the channel's words and buffers and the board are mapped and live, the ranges inside.
        let (channel, policy) = unsafe { (MemoryChannel::new(args.channel), Policy::new(args.policy)) };
        if args.signal_or_flag != 0 {
            // Each block of the grid takes a signal of its own.
            let waited = if Block.is_leader() { channel.wait_shared(policy.patience()) } else { Ok(()) };
            if Block.agree(waited).is_err() {
                return;
            }
        }
        // SAFETY: as above.
        unsafe { channel.get(Grid, args.remote_offset, args.local_offset, args.bytes) };
    }
}

/// # Safety
///
/// As for the kernels' launches.
#[inline(always)]
unsafe fn put_packets<P: Wire<Payload: warpwire_device::mem::Element>>(args: &TransferArgs) {
    // SAFETY: the caller's contract.
    unsafe {
        let channel = MemoryChannel::new(args.channel);
        let flag = Flag::from_counter(args.signal_or_flag);
        channel.put_packets::<P, _>(Grid, args.remote_offset, args.local_offset, args.bytes, flag);
    }
}

/// # Safety
///
/// As for the kernels' launches.
#[inline(always)]
unsafe fn unpack_packets<P: Wire<Payload: warpwire_device::mem::Element>>(args: &TransferArgs) {
    // SAFETY: the caller's contract.
    unsafe {
        let (channel, policy) = (MemoryChannel::new(args.channel), Policy::new(args.policy));
        let flag = Flag::from_counter(args.signal_or_flag);
        // A failed wait has left its report; the kernel just ends.
        let _ = channel.unpack_packets::<P, _>(
            Grid,
            args.remote_offset,
            args.local_offset,
            args.bytes,
            flag,
            &policy,
        );
    }
}

kernel! {
    /// Writes the local buffer as LL8 packets into the peer's, with any grid.
    pub struct PutPackets8 = "warpwire_put_packets_ll8", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: TransferArgs) {
        // SAFETY: the launch's contract, passed on.
        unsafe { put_packets::<Ll8>(&args) }
    }
}

kernel! {
    /// Writes the local buffer as LL16 packets into the peer's, with any grid.
    pub struct PutPackets16 = "warpwire_put_packets_ll16", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: TransferArgs) {
        // SAFETY: the launch's contract, passed on.
        unsafe { put_packets::<Ll16>(&args) }
    }
}

kernel! {
    /// Waits for LL8 packets in the packet buffer and unpacks them into the local one, with any grid.
    pub struct UnpackPackets8 = "warpwire_unpack_packets_ll8", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: TransferArgs) {
        // SAFETY: the launch's contract, passed on.
        unsafe { unpack_packets::<Ll8>(&args) }
    }
}

kernel! {
    /// Waits for LL16 packets in the packet buffer and unpacks them into the local one, with any grid.
    pub struct UnpackPackets16 = "warpwire_unpack_packets_ll16", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: TransferArgs) {
        // SAFETY: the launch's contract, passed on.
        unsafe { unpack_packets::<Ll16>(&args) }
    }
}
