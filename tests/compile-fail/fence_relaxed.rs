//! C15: a fence that orders nothing is none.

use warpwire_device::arch::{Relaxed, Sys, fence};

fn main() {
    fence::<Relaxed, Sys>();
}
