//! C15: order and scope cannot change places.

use warpwire_device::arch::{AcqRel, Gpu, fence};

fn main() {
    fence::<Gpu, AcqRel>();
}
