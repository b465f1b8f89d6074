//! Collectives: operations that all ranks of a group take part in.

mod all_reduce;
mod shape;

pub use all_reduce::{AllReduce, Operands};
