//! The demo's table.

use std::time::Duration;

use serde::Serialize;

use crate::size::Size;

/// One size's outcome.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The collective.
    pub collective: &'static str,
    /// The algorithm.
    pub algorithm: &'static str,
    /// Where it ran.
    pub device: String,
    /// Ranks.
    pub ranks: usize,
    /// Bytes of each rank's message.
    pub bytes: usize,
    /// Elements.
    pub elements: usize,
    /// Microseconds of one round: the slowest rank's.
    pub microseconds: f64,
    /// Bytes of the message over time, in GB/s.
    pub algorithm_bandwidth: f64,
    /// What each link would have to carry for that, in GB/s.
    pub bus_bandwidth: f64,
    /// The largest difference from the reference.
    pub largest_error: f64,
    /// Whether every element of every rank is right, and nothing else was touched.
    pub right: bool,
}

impl Row {
    /// Of an all-reduce of `bytes` bytes of f32 among `ranks` ranks, one round of which takes `time`.
    pub fn new(
        device: &str,
        ranks: usize,
        bytes: usize,
        time: Duration,
        largest_error: f64,
        right: bool,
    ) -> Self {
        let algorithm_bandwidth = bytes as f64 / time.as_secs_f64() / 1e9;
        Self {
            collective: "allreduce",
            algorithm: "all-pair",
            device: device.to_owned(),
            ranks,
            bytes,
            elements: bytes / size_of::<f32>(),
            microseconds: time.as_secs_f64() * 1e6,
            algorithm_bandwidth,
            bus_bandwidth: algorithm_bandwidth * 2.0 * (ranks - 1) as f64 / ranks as f64,
            largest_error,
            right,
        }
    }
}

/// Prints the rows.
pub fn print(rows: &[Row]) {
    println!(
        "{:>10}  {:<9}  {:<8}  {:>5}  {:>11}  {:>9}  {:>9}  {:>10}  verdict",
        "size", "what", "by", "ranks", "time (us)", "alg GB/s", "bus GB/s", "error"
    );
    for row in rows {
        println!(
            "{:>10}  {:<9}  {:<8}  {:>5}  {:>11.2}  {:>9.3}  {:>9.3}  {:>10.1e}  {}",
            Size(row.bytes),
            row.collective,
            row.algorithm,
            row.ranks,
            row.microseconds,
            row.algorithm_bandwidth,
            row.bus_bandwidth,
            row.largest_error,
            if row.right { "right" } else { "WRONG" }
        );
    }
}
