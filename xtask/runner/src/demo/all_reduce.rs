//! The all-reduce among ranks of one process: checked, then timed.

use std::time::Duration;

use warpwire::device::Device;

use super::table::Row;
use super::timing;
use crate::group::{Enqueue, Group};
use crate::size::Size;

/// The ranks, for messages up to the largest size.
pub struct Threads {
    device: Device,
    group: Group,
    ranks: usize,
}

/// Rounds by warpwire's kernel.
const ENQUEUE: &Enqueue<'static> = &|group, rank, operands| {
    // SAFETY: the operands are the group's own buffers, which live as long as it does, and it synchronizes before it looks at
    // them.
    unsafe { group.enqueue(rank, operands) }
};

impl Threads {
    /// `ranks` ranks that share `device`.
    pub fn new(device: &Device, ranks: usize, sizes: &[Size], timeout: Duration) -> anyhow::Result<Self> {
        let largest = sizes.iter().map(|size| size.0 / size_of::<f32>()).max().unwrap_or(1);
        let group = Group::new(device, ranks, largest, timeout)?;
        Ok(Self { device: device.clone(), group, ranks })
    }

    /// Runs and times one size.
    pub fn row(&mut self, size: Size) -> anyhow::Result<Row> {
        let count = size.0 / size_of::<f32>();
        let checked = self.group.check(count, ENQUEUE)?;
        let graphs = self.group.record(count, timing::rounds(&self.device), ENQUEUE)?;
        let time = timing::median(&self.device, || self.group.play(&graphs))?;
        let device = &self.device.properties().name;
        Ok(Row::new(device, self.ranks, size.0, time, checked.largest_error, checked.right))
    }
}
