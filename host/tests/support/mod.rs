//! What the tests of the CPU device share.
#![allow(dead_code, reason = "each test file uses a part")]

use std::time::Duration;

use warpwire::abi::{ChannelId, Global, InboundHandle, OutboundHandle, Pod, Rank, SemaphoreHandle};
use warpwire::device::{Buffer, Device, DeviceSelector, Module, builtin_module};

/// Longer than any wait of a test that goes well.
pub const LONG: Duration = Duration::from_secs(60);

pub fn cpu() -> Device {
    Device::open(DeviceSelector::Cpu).expect("the CPU device is always there")
}

pub fn builtin(device: &Device) -> Module {
    device.load(builtin_module()).expect("the CPU device takes every module")
}

/// A buffer that holds `values`.
pub fn filled<T: Pod>(device: &Device, values: &[T]) -> Buffer<T> {
    let buffer = device.allocate(values.len()).unwrap();
    buffer.write(values).unwrap();
    buffer
}

/// The words of a semaphore between two ends: end `e` plays rank `e`.
pub struct Ends {
    pub tokens: Buffer<u64>,
    pub expected: Buffer<u64>,
    pub channel: ChannelId,
}

impl Ends {
    pub fn new(device: &Device, channel: u32) -> Self {
        let allocate = || device.allocate(2).unwrap();
        Self { tokens: allocate(), expected: allocate(), channel: ChannelId(channel) }
    }

    pub fn handle(&self, end: u32) -> SemaphoreHandle {
        let word = |words: &Buffer<u64>, end: u32| -> Global<u64> { words.address().add(u64::from(end)) };
        SemaphoreHandle {
            inbound: InboundHandle {
                token: word(&self.tokens, end),
                expected: word(&self.expected, end),
                peer: Rank(1 - end),
                channel: self.channel,
            },
            outbound: OutboundHandle { token: word(&self.tokens, 1 - end) },
        }
    }

    pub fn handles(&self) -> [SemaphoreHandle; 2] {
        [self.handle(0), self.handle(1)]
    }
}
