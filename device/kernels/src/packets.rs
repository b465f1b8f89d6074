//! Transfers by packets: each carries its flag, so nobody has to signal.

use warpwire_device::abi::{Flag, Ll8, Ll16};
use warpwire_device::coop::Grid;
use warpwire_device::kernel;
use warpwire_device::mem::Element;
use warpwire_device::memory_channel::MemoryChannel;
use warpwire_device::packet::Wire;
use warpwire_device::spin::Policy;

use crate::transfer::TransferArgs;

/// # Safety
///
/// As for the kernels' launches.
#[inline(always)]
unsafe fn put_packets<P: Wire<Payload: Element>>(args: &TransferArgs) {
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
unsafe fn unpack_packets<P: Wire<Payload: Element>>(args: &TransferArgs) {
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
