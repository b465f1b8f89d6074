//! Every size, alignment and offset of the shared types. The host's compiler and the PTX compiler both check these, so
//! the two sides cannot disagree without one of them refusing to build.

use core::mem::offset_of;

use static_assertions::{assert_eq_align, assert_eq_size, const_assert_eq};

use super::{
    BarrierHandle, ChannelId, FifoHandle, Flag, Global, HostSemaphoreHandle, InboundHandle, Ll8, Ll16,
    MemoryChannelBaseHandle, MemoryChannelHandle, MemoryId, OutboundHandle, PolicyHandle,
    PortChannelBaseHandle, PortChannelHandle, PortId, Position, Rank, SemaphoreHandle, Trigger, WaitBoard,
    WaitError, WaitSite,
};

macro_rules! layout {
    ($t:ty: $size:literal bytes, align $align:literal; $($($field:ident).+ @ $offset:literal),* $(,)?) => {
        const_assert_eq!(size_of::<$t>(), $size);
        const_assert_eq!(align_of::<$t>(), $align);
        $( const_assert_eq!(offset_of!($t, $($field).+), $offset); )*
    };
}

assert_eq_size!(Global<u8>, u64);
assert_eq_align!(Global<u8>, u64);
assert_eq_size!(Rank, u32);
assert_eq_size!(ChannelId, u32);
assert_eq_size!(Option<Flag>, u32);
assert_eq_size!(MemoryId, u32);
assert_eq_size!(PortId, u32);
assert_eq_size!(Position, u64);

layout!(Ll8: 8 bytes, align 8; data @ 0, flag @ 4);
// Each flag lies in the same 64-bit word as its data: what a reader may rely on.
layout!(Ll16: 16 bytes, align 16; low.data @ 0, low.flag @ 4, high.data @ 8, high.flag @ 12);

layout!(WaitSite: 12 bytes, align 4; kind @ 0, peer @ 4, channel @ 8);
// The host's line and the device's line are 64 bytes apart: neither side's stores disturb the other's polling. The report
// is three aligned 16-byte stores.
// A report's error is `Timeout` and the abort word added up.
const_assert_eq!(WaitError::Timeout as u32 + 1, WaitError::Aborted as u32);
layout!(WaitBoard: 128 bytes, align 128;
    abort @ 0, error @ 64, kind @ 68, peer @ 72, channel @ 76, block @ 80, thread @ 84, expected @ 88,
    seen @ 96, rank @ 104, state @ 108);

layout!(PolicyHandle: 24 bytes, align 8; board @ 0, timeout_ns @ 8, rank @ 16);
layout!(InboundHandle: 24 bytes, align 8; token @ 0, expected @ 8, peer @ 16, channel @ 20);
layout!(OutboundHandle: 8 bytes, align 8; token @ 0);
layout!(SemaphoreHandle: 32 bytes, align 8; inbound @ 0, outbound @ 24);
layout!(HostSemaphoreHandle: 24 bytes, align 8; inbound @ 0);
layout!(BarrierHandle: 8 bytes, align 8; word @ 0);
layout!(MemoryChannelBaseHandle: 32 bytes, align 8; semaphore @ 0);
layout!(MemoryChannelHandle: 56 bytes, align 8; base @ 0, remote @ 32, local @ 40, packets @ 48);

layout!(Trigger: 16 bytes, align 16;);
layout!(FifoHandle: 48 bytes, align 8;
    slots @ 0, head @ 8, tail @ 16, tail_cache @ 24, capacity @ 32, rank @ 40, id @ 44);
layout!(PortChannelBaseHandle: 88 bytes, align 8; fifo @ 0, inbound @ 48, flushed @ 72, port @ 80, reserved @ 84);
layout!(PortChannelHandle: 96 bytes, align 8; base @ 0, destination @ 88, source @ 92);
