//! Transfers by bulk asynchronous copies (sm_90 and newer).

use warpwire_device::coop::{Block, Group};
use warpwire_device::kernel;
use warpwire_device::memory_channel::MemoryChannel;

use crate::transfer::TransferArgs;

kernel! {
    /// As [`Put`](crate::transfer::Put), by bulk asynchronous copies: one thread a block drives the copy engine. The block's
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
