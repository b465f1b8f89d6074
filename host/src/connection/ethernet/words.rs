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
