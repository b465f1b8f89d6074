//! The all-reduce among processes: what each rank says of a size, and what comes of it.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::table::Row;
use crate::launch::{Devices, Job, Launch, Placement};
use crate::size::Size;

/// What a rank found for one size: a line of JSON for the launcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankRow {
    /// Of its message.
    pub bytes: usize,
    /// Its device.
    pub device: String,
    /// Of one round.
    pub microseconds: f64,
    /// The largest difference from the reference.
    pub largest_error: f64,
    /// Whether every element of its results is right, and nothing else was touched.
    pub right: bool,
    /// Of its result's bits: all ranks have the same.
    pub digest: u64,
}

/// The ranks, each in a process of its own.
pub struct Processes {
    job: Job,
    ranks: usize,
}

impl Processes {
    /// Starts `ranks` ranks for messages of `sizes`, whose waits may last `timeout` each, and all of it `limit`.
    pub fn start(
        devices: Devices,
        ranks: usize,
        sizes: &[Size],
        timeout: Duration,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        let placement = Placement::of(devices, ranks)?;
        let sizes: Vec<String> = sizes.iter().map(|size| size.0.to_string()).collect();
        let arguments = placement.selectors.iter().map(|selector| {
            let words = ["demo-rank".to_owned(), "--device".to_owned(), selector.to_string()];
            let more = [
                "--timeout".to_owned(),
                timeout.as_secs_f64().to_string(),
                "--size".to_owned(),
                sizes.join(","),
            ];
            words.into_iter().chain(more).map(OsString::from).collect()
        });
        let launch = Launch::this_program(arguments.collect())?.limit(limit);
        Ok(Self { job: launch.placed(&placement)?.start()?, ranks })
    }

    /// What comes of the next size.
    pub fn row(&mut self, size: Size) -> anyhow::Result<Row> {
        let rows: Vec<RankRow> = self.job.hear()?;
        ensure!(rows.iter().all(|row| row.bytes == size.0), "the ranks speak of other sizes than {size}");
        merged(&rows, self.ranks).context("no rank says anything")
    }

    /// Waits until all ranks have ended.
    pub fn finish(self) -> anyhow::Result<()> {
        Ok(self.job.finish()?)
    }
}

/// One row of all ranks': the slowest one's time, the largest error, right where all are.
fn merged(rows: &[RankRow], ranks: usize) -> Option<Row> {
    let first = rows.first()?;
    let largest = |of: fn(&RankRow) -> f64| rows.iter().map(of).fold(0.0, f64::max);
    let right = rows.iter().all(|row| row.right && row.digest == first.digest);
    let time = Duration::from_secs_f64(largest(|row| row.microseconds) / 1e6);
    Some(Row::new(&first.device, ranks, first.bytes, time, largest(|row| row.largest_error), right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_counts_and_one_wrong_rank_makes_all_wrong() {
        let rank = |microseconds, largest_error| RankRow {
            bytes: 4096,
            device: "a device".to_owned(),
            microseconds,
            largest_error,
            right: true,
            digest: 7,
        };
        let rows = [rank(2.0, 1e-7), rank(4.0, 0.0)];
        let row = merged(&rows, 2).unwrap();
        assert!(row.right && row.elements == 1024 && row.largest_error == 1e-7);
        assert!((row.microseconds - 4.0).abs() < 1e-9 && (row.algorithm_bandwidth - 1.024).abs() < 1e-9);
        for wrong in [RankRow { right: false, ..rank(2.0, 0.0) }, RankRow { digest: 8, ..rank(2.0, 0.0) }] {
            assert!(!merged(&[rank(2.0, 0.0), wrong], 2).unwrap().right);
        }
        assert!(merged(&[], 2).is_none());
    }
}
