//! Support for the tests across crates: checks that every device has to pass, memory with a known surrounding, groups that run
//! one thread after the other, a board for waits without a device, and the flow of a kernel's PTX.

pub mod accuracy;
pub mod board;
pub mod bytes;
pub mod checks;
pub mod gfx942;
pub mod group;
pub mod ptx;
pub mod reference;
pub mod region;
pub mod skip;
pub mod tables;
