//! warpwire's own kernels: entries over the device crate.
//!
//! Each module has the argument block (asserted `repr(C)`), the kernel's declaration and its body. The same source is
//! compiled to PTX by `cargo xtask build-ptx` and run by the CPU device through [`MODULE`]. Each module's kernels are a PTX
//! file of their own, which a driver compiles when the first of them is asked for: what is used together stands together.
#![no_std]
#![allow(
    clippy::needless_range_loop,
    reason = "an index unrolls, and the array stays in registers; an iterator may not"
)]

pub mod all_pair;
pub mod barrier;
#[cfg(any(warpwire_sm90, not(target_arch = "nvptx64")))]
pub mod bulk;
pub mod convert;
pub mod deliver;
pub mod fifo;
pub mod packets;
pub mod ping_pong;
pub mod port;
pub mod transfer;

mod message;

use warpwire_device::module;

module! {
    /// The kernels of this crate, for the CPU device.
    pub static MODULE = [
        all_pair::AllReduceAllPair,
        barrier::BarrierRounds,
        convert::E4m3B15ExtendedToF16,
        convert::E4m3B15ExtendedToF32,
        convert::E4m3B15ToF16,
        convert::E4m3B15ToF32,
        convert::F16ToE4m3B15,
        convert::F16ToE4m3B15Extended,
        convert::F32ToE4m3B15,
        convert::F32ToE4m3B15Extended,
        ping_pong::PacketPingPong8,
        ping_pong::PacketPingPong16,
        ping_pong::PutPingPong,
        ping_pong::SemaphorePingPong,
        deliver::Deliver,
        fifo::FifoPush,
        port::PortAllGather,
        port::PortPingPong,
        port::PortRequests,
        transfer::Get,
        transfer::Put,
        bulk::PutBulk,
        packets::PutPackets8,
        packets::PutPackets16,
        packets::UnpackPackets8,
        packets::UnpackPackets16,
    ];
}
