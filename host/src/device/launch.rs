//! A launch's shape, and what is wrong with it before it is launched.

use warpwire_device::abi::LaunchLimits;

use super::room::blocks_beside;
use super::{Function, Properties};
use crate::error::{LaunchError, Result, ThreadLimit};

/// A launch's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchConfig {
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// How many grids of this shape have to be resident on the device at the same time, this one counted: 0 where its blocks
    /// wait for nobody; 1 where they wait for each other (a grid barrier) or for another device; N where N ranks that wait
    /// for each other share the device. Where 1 or more, the grids also leave room for the copies of the ports of ranks that share
    /// the device ([`ProxyService`](crate::proxy::ProxyService)). The CPU devices of one process share its threads, and count as one here.
    pub concurrent: u32,
    /// How many of them other processes launch: they take places on the device, but none of this process' queues.
    pub elsewhere: u32,
}

impl LaunchConfig {
    /// `blocks` blocks of `threads` threads, without shared memory, that wait for nobody.
    #[must_use]
    pub const fn new(blocks: u32, threads: u32) -> Self {
        Self { blocks, threads, shared_bytes: 0, concurrent: 0, elsewhere: 0 }
    }

    /// With this much dynamic shared memory a block.
    #[must_use]
    pub const fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// With this many grids that have to be resident together: see [`LaunchConfig::concurrent`](#structfield.concurrent).
    #[must_use]
    pub const fn concurrent(mut self, grids: u32) -> Self {
        self.concurrent = grids;
        self
    }

    /// With this many of the concurrent grids launched by other processes: see
    /// [`LaunchConfig::elsewhere`](#structfield.elsewhere).
    #[must_use]
    pub const fn elsewhere(mut self, grids: u32) -> Self {
        self.elsewhere = grids;
        self
    }

    /// Fails where no launch of `function` can have this shape.
    pub(super) fn check<K>(&self, function: &Function<K>) -> Result<()> {
        let (name, properties) = (function.driver().name(), function.device().properties());
        self.check_block(name, function.driver().limits(), properties)?;
        self.check_grid(name, properties)?;
        if self.concurrent == 0 {
            return Ok(());
        }
        self.check_streams(name, properties)?;
        let places = function.resident_blocks(self.threads, self.shared_bytes)?;
        let (room, multiprocessors) = (function.device().reserved().threads(), properties.multiprocessors);
        self.check_resident(name, blocks_beside(room, places, multiprocessors, self.threads), room)
    }

    /// The checks of one block.
    pub(super) fn check_block(&self, kernel: &str, limits: LaunchLimits, device: &Properties) -> Result<()> {
        let kernel = || kernel.to_owned();
        let Self { blocks, threads, shared_bytes, .. } = *self;
        if blocks == 0 || threads == 0 {
            return Err(LaunchError::Empty { kernel: kernel(), blocks, threads }.into());
        }
        let limits =
            [(limits.max_threads, ThreadLimit::Kernel), (device.max_threads_per_block, ThreadLimit::Device)];
        for (limit, limited_by) in limits {
            if threads > limit {
                return Err(LaunchError::TooManyThreads {
                    kernel: kernel(),
                    asked: threads,
                    limit,
                    limited_by,
                }
                .into());
            }
        }
        let limit = device.max_shared_bytes_per_block;
        if shared_bytes > limit {
            return Err(LaunchError::SharedTooLarge { kernel: kernel(), asked: shared_bytes, limit }.into());
        }
        Ok(())
    }

    /// The checks of the grid's size. A grid's threads are numbered in 32 bits.
    fn check_grid(&self, kernel: &str, device: &Properties) -> Result<()> {
        let Self { blocks, threads, .. } = *self;
        if blocks <= device.max_blocks && blocks.checked_mul(threads).is_some() {
            return Ok(());
        }
        Err(LaunchError::GridTooLarge {
            kernel: kernel.to_owned(),
            blocks,
            threads,
            max_blocks: device.max_blocks,
        }
        .into())
    }

    /// The check of the queues: those of other processes are their own.
    fn check_streams(&self, kernel: &str, device: &Properties) -> Result<()> {
        let asked = self.concurrent.saturating_sub(self.elsewhere);
        match device.max_concurrent_streams {
            Some(limit) if asked > limit => {
                Err(LaunchError::TooManyStreams { kernel: kernel.to_owned(), asked, limit }.into())
            }
            _ => Ok(()),
        }
    }

    /// The check of blocks that wait for each other: all have to be resident, or they wait for ever. `limit` of them may be, beside
    /// a block of `room` threads.
    fn check_resident(&self, kernel: &str, limit: u32, room: u32) -> Result<()> {
        let Self { blocks, threads, shared_bytes, concurrent, .. } = *self;
        let asked = u64::from(blocks) * u64::from(concurrent);
        if asked <= u64::from(limit) {
            return Ok(());
        }
        let kernel = kernel.to_owned();
        Err(LaunchError::TooManyBlocks {
            kernel,
            asked,
            limit,
            blocks,
            concurrent,
            threads,
            shared_bytes,
            room,
        }
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, DeviceSelector};
    use crate::error::Error;

    #[test]
    fn launches_of_other_processes_take_places_and_no_queues() {
        let device = Device::open(DeviceSelector::Cpu).unwrap();
        let properties = Properties { max_concurrent_streams: Some(7), ..device.properties().clone() };
        let config = LaunchConfig::new(2, 64);
        assert!(config.concurrent(7).check_streams("k", &properties).is_ok());
        let error = config.concurrent(8).check_streams("k", &properties).unwrap_err();
        assert!(
            matches!(error, Error::Launch(LaunchError::TooManyStreams { asked: 8, limit: 7, .. })),
            "{error}"
        );
        assert!(config.concurrent(8).elsewhere(1).check_streams("k", &properties).is_ok());
        assert!(config.concurrent(64).elsewhere(63).check_streams("k", &properties).is_ok());
        // Their places count all the same.
        let error = config.concurrent(8).elsewhere(7).check_resident("k", 15, 0).unwrap_err();
        assert!(
            matches!(error, Error::Launch(LaunchError::TooManyBlocks { asked: 16, limit: 15, .. })),
            "{error}"
        );
    }
}
