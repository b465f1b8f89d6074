//! Setting 64-bit words, so that kernels that wait for them see everything that was placed before.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::{Device, DeviceKind, Stream};
use crate::error::Result;
use crate::memory::Region;

/// What sets words.
#[derive(Debug)]
pub(super) struct Words {
    /// One for each device that has memory which the host does not see.
    streams: Vec<Stream>,
}

impl Words {
    /// For `device`, and for others whose memory may come.
    pub(super) fn new(device: &Device) -> Result<Self> {
        // Made now: later it might have to wait for the very kernel that waits for the first word.
        let streams = match device.properties().kind {
            DeviceKind::Cpu => Vec::new(),
            DeviceKind::Cuda => vec![device.stream()?],
        };
        Ok(Self { streams })
    }

    /// Sets a word, and returns when it is set. Everything that this thread has placed before is then visible to whoever
    /// acquires the value at system scope.
    pub(super) fn set(&mut self, region: &Region, offset: u64, value: u64) -> Result<()> {
        let (address, seen) = region.word(offset)?;
        if let Some(word) = seen {
            // SAFETY: aligned (`Region::word`) and live, since the region is kept; a word that peers update is touched by
            // ordered accesses alone.
            unsafe { AtomicU64::from_ptr(word.as_ptr()) }.store(value, Ordering::Release);
            return Ok(());
        }
        let stream = self.stream(region.device())?;
        // SAFETY: as above. The copies before it have ended: `Region::write` waits for them.
        match unsafe { stream.write_word(address, value) } {
            Ok(()) => stream.synchronize(),
            Err(error) => {
                // An old driver, or one that is set so. The eight bytes of an aligned word arrive as a whole.
                tracing::debug!(%error, "a stream writes no words here: they are copied");
                region.write(offset, &value.to_ne_bytes())
            }
        }
    }

    fn stream(&mut self, device: &Device) -> Result<&Stream> {
        let place = match self.streams.iter().position(|stream| stream.device().is_same(device)) {
            Some(place) => place,
            None => {
                self.streams.push(device.stream()?);
                self.streams.len() - 1
            }
        };
        Ok(&self.streams[place])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::driver::{Allocated, DriverMemory};
    use crate::device::{Buffer, DeviceSelector, MemoryKind};
    use crate::error::Error;
    use crate::memory::{RegisteredMemory, Transports};

    /// Memory that the host does not see, as most of a GPU's.
    #[derive(Debug)]
    struct Hidden(Arc<dyn DriverMemory>);

    impl DriverMemory for Hidden {
        fn address(&self) -> u64 {
            self.0.address()
        }

        fn kind(&self) -> MemoryKind {
            self.0.kind()
        }

        fn allocation(&self) -> Allocated {
            self.0.allocation()
        }
    }

    #[test]
    fn words_are_set_by_the_host_or_by_a_stream_of_their_device() {
        let devices = [(); 2].map(|()| Device::open(DeviceSelector::Cpu).unwrap());
        let mut words = Words::new(&devices[0]).unwrap();
        for round in 1..=3 {
            for device in &devices {
                let buffer = device.allocate::<u64>(4).unwrap();
                let hidden: Arc<dyn DriverMemory> = Arc::new(Hidden(Arc::clone(buffer.memory().0)));
                let offset = buffer.memory().1;
                let behind = Buffer::<u64>::of_memory(device, hidden, offset, 4).unwrap();
                for (at, memory) in [&buffer, &behind].into_iter().enumerate() {
                    let registered = RegisteredMemory::of(memory, Transports::ETHERNET).unwrap();
                    let region = registered.region().unwrap();
                    words.set(region, 8 * at as u64, round + at as u64).unwrap();
                    assert!(matches!(words.set(region, 9, 1), Err(Error::Misaligned { .. })));
                    assert!(matches!(words.set(region, 32, 1), Err(Error::OutsideMemory { .. })));
                }
                assert_eq!(buffer.read().unwrap(), [round, round + 1, 0, 0]);
            }
        }
        assert_eq!(words.streams.len(), devices.len(), "one for each device, and no more");
    }
}
