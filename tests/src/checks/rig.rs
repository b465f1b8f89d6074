//! What the checks share.

use std::time::Duration;

use warpwire::abi::{
    ChannelId, Global, InboundHandle, MemoryChannelBaseHandle, MemoryChannelHandle, OutboundHandle, Rank,
    SemaphoreHandle,
};
use warpwire::device::{Buffer, Device, Function, builtin_module};
use warpwire::kernel::Kernel;

/// Longer than any wait that is met.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// Around what is written.
pub(super) const POISON: u8 = 0xA5;

/// One of warpwire's own kernels.
pub(super) fn function<K: Kernel>(device: &Device) -> Function<K> {
    let module = device.load(builtin_module()).expect("the device takes the module");
    module.function::<K>().expect("the module has the kernel")
}

/// Zeroed memory.
pub(super) fn zeroed<T: warpwire::abi::Pod>(device: &Device, len: usize) -> Buffer<T> {
    device.allocate(len).expect("room for a small buffer")
}

/// Memory that holds `values`.
pub(super) fn filled<T: warpwire::abi::Pod>(device: &Device, values: &[T]) -> Buffer<T> {
    let buffer = zeroed(device, values.len());
    buffer.write(values).expect("the buffer is as long");
    buffer
}

/// The words of a semaphore between two ends on one device; end `e` plays rank `e`.
#[derive(Debug)]
pub struct Ends {
    /// Each end's inbound token.
    pub tokens: Buffer<u64>,
    /// Each end's count of waits.
    pub expected: Buffer<u64>,
    channel: ChannelId,
}

impl Ends {
    /// Both counters at `start`; the channel goes into reports.
    ///
    /// # Panics
    ///
    /// Where the device has no room for 4 words.
    #[must_use]
    pub fn new(device: &Device, channel: ChannelId, start: u64) -> Self {
        Self { tokens: filled(device, &[start; 2]), expected: filled(device, &[start; 2]), channel }
    }

    /// End 0 or 1.
    #[must_use]
    pub fn handle(&self, end: u32) -> SemaphoreHandle {
        let (own, peer) = (u64::from(end), u64::from(1 - end));
        SemaphoreHandle {
            inbound: InboundHandle {
                token: self.tokens.address().add(own),
                expected: self.expected.address().add(own),
                peer: Rank(1 - end),
                channel: self.channel,
            },
            outbound: OutboundHandle { token: self.tokens.address().add(peer) },
        }
    }

    /// Both.
    #[must_use]
    pub fn handles(&self) -> [SemaphoreHandle; 2] {
        [self.handle(0), self.handle(1)]
    }

    /// End `end`'s channel over these buffers.
    #[must_use]
    pub fn channel(
        &self,
        end: u32,
        remote: Global<u8>,
        local: Global<u8>,
        packets: Global<u8>,
    ) -> MemoryChannelHandle {
        MemoryChannelHandle {
            base: MemoryChannelBaseHandle { semaphore: self.handle(end) },
            remote,
            local,
            packets,
        }
    }
}
