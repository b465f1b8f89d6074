//! The rows of `bench multi`: between devices, one process each.

mod all_reduce;
mod hop;
mod put;

use crate::bench::case::Row;

/// Every row between devices, in the order in which they run.
pub const ALL: &[Row] = &[hop::ROW, put::ROW, all_reduce::ROW];
