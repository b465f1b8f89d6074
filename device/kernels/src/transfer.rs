//! Plain transfers over a memory channel, and the argument block of all transfers.

use core::mem::offset_of;

use static_assertions::const_assert_eq;
use warpwire_device::abi::{MemoryChannelHandle, PolicyHandle};
use warpwire_device::coop::{Block, Grid, Group, SyncGroup};
use warpwire_device::kernel;
use warpwire_device::memory_channel::MemoryChannel;
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
    /// begins (get), so the peer has to wait, or signal, as often as there are blocks. [`packets`](crate::packets): the flag.
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
