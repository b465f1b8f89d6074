//! The all-reduce of the demo: checked, then timed.

use std::time::Duration;

use warpwire::device::{Device, DeviceKind};

use super::table::Row;
use crate::group::{Enqueue, Group};
use crate::size::Size;

/// The ranks, for messages up to the largest size.
pub struct Bench {
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

impl Bench {
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
        let time = self.time(count)?;
        let algorithm_bandwidth = size.0 as f64 / time.as_secs_f64() / 1e9;
        Ok(Row {
            collective: "allreduce",
            algorithm: "all-pair",
            device: self.device.properties().name.clone(),
            ranks: self.ranks,
            bytes: size.0,
            elements: count,
            microseconds: time.as_secs_f64() * 1e6,
            algorithm_bandwidth,
            bus_bandwidth: algorithm_bandwidth * 2.0 * (self.ranks - 1) as f64 / self.ranks as f64,
            largest_error: checked.largest_error,
            right: checked.right,
        })
    }

    /// The time of one round: many are recorded and played at once; the median of several plays.
    fn time(&self, count: usize) -> anyhow::Result<Duration> {
        let (rounds, plays) = match self.device.properties().kind {
            DeviceKind::Cuda => (50, 11),
            DeviceKind::Cpu => (4, 3),
        };
        let graphs = self.group.record(count, rounds, ENQUEUE)?;
        self.group.play(&graphs)?; // warms up
        let mut times = (0..plays).map(|_| self.group.play(&graphs)).collect::<anyhow::Result<Vec<_>>>()?;
        times.sort_unstable();
        Ok(times[times.len() / 2] / rounds)
    }
}
