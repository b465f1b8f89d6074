//! The rows, a file each. A new row is a file here and a line in [`ALL`].

mod all_reduce;
mod barrier;
mod bulk;
mod exchange;
mod fifo;
mod fp8;
mod get;
mod hop;
mod packets;
mod port;
mod put;
mod start;

use super::case::Row;

pub use start::FirstLaunch;

/// Every row, in the order in which they run.
pub const ALL: &[Row] = &[
    hop::ROW,
    exchange::ROW,
    put::ROW,
    get::ROW,
    bulk::ROW,
    packets::ROW,
    fp8::ROW,
    barrier::ROW,
    fifo::ROW,
    port::ROW,
    all_reduce::ROW,
    start::ROW,
];
