//! One kernel for each primitive, and nothing else in it: what the golden tests read as PTX and `cargo xtask sass` as SASS.
#![no_std]

pub mod fp8;
pub mod instructions;

use warpwire_device::abi::{
    BarrierHandle, Flag, Global, InboundHandle, Ll8, Ll16, MemoryChannelHandle, OutboundHandle, PolicyHandle,
    PortChannelHandle, Position, Trigger,
};
use warpwire_device::arch;
use warpwire_device::barrier::GridBarrier;
use warpwire_device::coop::{Block, Group};
use warpwire_device::copy::copy;
use warpwire_device::fifo::DeviceProducer;
use warpwire_device::kernel;
use warpwire_device::memory_channel::MemoryChannel;
use warpwire_device::packet::{self, Source, Wire};
use warpwire_device::port_channel::PortChannel;
use warpwire_device::semaphore::{Inbound, Outbound};
use warpwire_device::spin::Policy;

/// Arguments of the probes: each takes what it needs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProbeArgs {
    /// The signalling side.
    pub outbound: OutboundHandle,
    /// The waiting side.
    pub inbound: InboundHandle,
    /// The waits.
    pub policy: PolicyHandle,
    /// The channel.
    pub channel: MemoryChannelHandle,
    /// The barrier.
    pub barrier: BarrierHandle,
    /// Packets, or a source.
    pub from: Global<u8>,
    /// Payload, or a destination.
    pub to: Global<u8>,
    /// Bytes.
    pub bytes: u64,
    /// The flag.
    pub flag: u32,
    /// Payload.
    pub value: u32,
    /// The port channel, and its FIFO.
    pub port: PortChannelHandle,
}

macro_rules! probe {
    ($($(#[$meta:meta])* $Name:ident = $entry:literal: |$args:ident| $body:block)*) => { $(
        kernel! {
            $(#[$meta])*
            pub struct $Name = $entry, max_threads = 1024, min_blocks = 1;
            unsafe fn($args: ProbeArgs) {
                // SAFETY: compiled and looked at, never launched.
                unsafe { $body }
            }
        }
    )* };
}

probe! {
    /// `signal`, by the block's leader.
    Signal = "probe_signal": |args| {
        if Block.is_leader() {
            Outbound::new(args.outbound).signal();
        }
    }
    /// `signal_relaxed`, likewise.
    SignalRelaxed = "probe_signal_relaxed": |args| {
        if Block.is_leader() {
            Outbound::new(args.outbound).signal_relaxed();
        }
    }
    /// `wait`, likewise.
    Wait = "probe_wait": |args| {
        let policy = Policy::new(args.policy);
        if Block.is_leader() {
            let _ = Inbound::new(args.inbound).wait(policy.patience());
        }
    }
    /// `wait_shared`, likewise.
    WaitShared = "probe_wait_shared": |args| {
        if Block.is_leader() {
            let policy = Policy::new(args.policy);
            let _ = Inbound::new(args.inbound).wait_shared(policy.patience());
        }
    }
    /// `wait_relaxed`, likewise.
    WaitRelaxed = "probe_wait_relaxed": |args| {
        let policy = Policy::new(args.policy);
        if Block.is_leader() {
            let _ = Inbound::new(args.inbound).wait_relaxed(policy.patience());
        }
    }
    /// `poll`.
    Poll = "probe_poll": |args| {
        let ready = Inbound::new(args.inbound).poll();
        arch::store_weak_u32(args.to.cast(), u32::from(ready));
    }
    /// An LL8 packet's write.
    WriteLl8 = "probe_ll8_write": |args| { Ll8::write(args.to.cast(), args.value, Flag::from_counter(args.flag)) }
    /// An LL16 packet's write.
    WriteLl16 = "probe_ll16_write": |args| {
        Ll16::write(args.to.cast(), args.bytes, Flag::from_counter(args.flag))
    }
    /// An LL8 packet's read.
    ReadLl8 = "probe_ll8_read": |args| {
        let policy = Policy::new(args.policy);
        let source = Source { policy: &policy, peer: args.inbound.peer, channel: args.inbound.channel };
        if let Ok(payload) = packet::read::<Ll8>(args.from.cast(), Flag::from_counter(args.flag), source) {
            arch::store_weak_u32(args.to.cast(), payload);
        }
    }
    /// An LL16 packet's read.
    ReadLl16 = "probe_ll16_read": |args| {
        let policy = Policy::new(args.policy);
        let source = Source { policy: &policy, peer: args.inbound.peer, channel: args.inbound.channel };
        if let Ok(payload) = packet::read::<Ll16>(args.from.cast(), Flag::from_counter(args.flag), source) {
            arch::store_weak_u64(args.to.cast(), payload);
        }
    }
    /// A block's copy.
    Copy = "probe_copy": |args| { copy(Block, args.to, args.from, args.bytes) }
    /// The grid barrier.
    Barrier = "probe_barrier": |args| {
        let policy = Policy::new(args.policy);
        let _ = GridBarrier::new(args.barrier).sync(&policy);
    }
    /// `put_packets`, LL16.
    PutPackets = "probe_put_packets": |args| {
        MemoryChannel::new(args.channel).put_packets::<Ll16, _>(Block, 0, 0, args.bytes, Flag::from_counter(args.flag));
    }
    /// `unpack_packets`, LL16.
    UnpackPackets = "probe_unpack_packets": |args| {
        let policy = Policy::new(args.policy);
        let flag = Flag::from_counter(args.flag);
        let _ = MemoryChannel::new(args.channel).unpack_packets::<Ll16, _>(Block, 0, 0, args.bytes, flag, &policy);
    }
    /// One thread's payload, then its signal: the order of the two.
    StoreSignal = "probe_store_signal": |args| {
        arch::store_weak_u32(args.to.cast(), args.value);
        Outbound::new(args.outbound).signal();
    }
    /// A block's `put_signal`.
    PutSignal = "probe_put_signal": |args| { MemoryChannel::new(args.channel).put_signal(Block, 0, 0, args.bytes) }
    /// A wait, then the payload: the order of the two.
    WaitLoad = "probe_wait_load": |args| {
        let policy = Policy::new(args.policy);
        if Inbound::new(args.inbound).wait(policy.patience()).is_ok() && Block.is_leader() {
            arch::store_weak_u32(args.to.cast(), arch::load_weak_u32(args.from.cast()));
        }
    }
    /// A FIFO's `push`.
    FifoPush = "probe_fifo_push": |args| {
        let policy = Policy::new(args.policy);
        let trigger = Trigger::new([args.bytes, u64::from(args.value)]);
        let _ = DeviceProducer::new(args.port.base.fifo).push(trigger, policy.patience());
    }
    /// A FIFO's `sync`.
    FifoSync = "probe_fifo_sync": |args| {
        let policy = Policy::new(args.policy);
        let _ = DeviceProducer::new(args.port.base.fifo).sync(Position(args.bytes), policy.patience());
    }
    /// A port channel's `put_with_signal`, behind a payload of the thread's own: the order of the two.
    PortPut = "probe_port_put": |args| {
        let policy = Policy::new(args.policy);
        arch::store_weak_u32(args.to.cast(), args.value);
        let _ = PortChannel::new(args.port).put_with_signal(args.bytes, args.bytes, args.bytes, &policy);
    }
    /// A port channel's `flush`.
    PortFlush = "probe_port_flush": |args| {
        let policy = Policy::new(args.policy);
        let _ = PortChannel::new(args.port).flush(&policy);
    }
}
