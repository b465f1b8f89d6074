//! The rows, a file each. A new row is a file here and a line in [`ALL`].

mod all_reduce;
mod barrier;
mod bulk;
mod exchange;
mod fifo;
mod fp8;
mod get;
mod hop;
mod multi;
mod packets;
mod port;
mod processes;
mod put;
mod start;

use super::case::Row;

pub use multi::ALL as MULTI;
pub use start::FirstLaunch;

/// Every row on one device, in the order in which they run.
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
    processes::ROW,
    start::ROW,
];
