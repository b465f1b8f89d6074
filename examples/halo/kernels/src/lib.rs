//! The kernels of the halo example: what a user of warpwire writes.
//!
//! A field of `f32` is cut into strips of rows, one a rank, and the strips form a ring. A step smooths each element with
//! those above and below it, so a strip needs its neighbours' edge rows: [`Exchange`] puts them over, [`Smooth`] uses them.
//!
//! The field and the halo have two halves, used by turns: a fast rank's next exchange never writes the half that a slow
//! neighbour still reads, and the one after that waits for the neighbour's signal of the next.
#![no_std]

use warpwire_device::abi::{Global, MemoryChannelHandle, PolicyHandle};
use warpwire_device::coop::{Block, Grid, Group};
use warpwire_device::memory_channel::MemoryChannel;
use warpwire_device::spin::Policy;
use warpwire_device::{arch, kernel, module};

/// Arguments of both kernels.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HaloArgs {
    /// To the rank above; its remote buffer is that rank's halo, its local one this rank's field.
    pub above: MemoryChannelHandle,
    /// To the rank below, likewise.
    pub below: MemoryChannelHandle,
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// Two halves of `rows` rows of `width` elements.
    pub field: Global<f32>,
    /// Two halves of two rows: the one that comes from above, the one that comes from below.
    pub halo: Global<f32>,
    /// Elements of a row.
    pub width: u32,
    /// Rows of the strip.
    pub rows: u32,
    /// The half that holds the field before this step: 0 or 1.
    pub half: u32,
    /// Padding, 0.
    pub reserved: u32,
}

kernel! {
    /// Exchanges the edge rows. Two blocks: the first deals with the rank above, the second with the rank below.
    pub struct Exchange = "halo_exchange", max_threads = 256, min_blocks = 1;
    unsafe fn(args: HaloArgs) {
        let to_above = arch::block_index() == 0;
        let row_bytes = u64::from(args.width) * 4;
        // This rank's first row is the row that comes from below for the rank above.
        let (channel, row, slot) = if to_above { (args.above, 0, 1) } else { (args.below, args.rows - 1, 0) };
        let from = (u64::from(args.half) * u64::from(args.rows) + u64::from(row)) * row_bytes;
        let to = (u64::from(args.half) * 2 + slot) * row_bytes;
        // SAFETY: the launch's contract: the channels' words and buffers and the board are mapped and live, and hold two
        // halves of the rows said.
        unsafe {
            let (channel, policy) = (MemoryChannel::new(channel), Policy::new(args.policy));
            channel.put_signal(Block, to, from, row_bytes);
            // A failed wait has left its report for the host; there is nothing to undo here.
            let _ = channel.wait_all(Block, &policy);
        }
    }
}

kernel! {
    /// Replaces each element by the mean of itself and the two above and below it, from one half into the other. Any grid.
    pub struct Smooth = "halo_smooth", max_threads = 256, min_blocks = 1;
    unsafe fn(args: HaloArgs) {
        let (width, rows) = (u64::from(args.width), u64::from(args.rows));
        let halo = args.halo.add(u64::from(args.half) * 2 * width);
        let before = args.field.add(u64::from(args.half) * rows * width);
        let after = args.field.add(u64::from(1 - args.half) * rows * width);
        let mut i = u64::from(Grid.rank());
        while i < rows * width {
            let (first, last) = (i < width, i >= (rows - 1) * width);
            let above = if first { halo.add(i) } else { before.add(i - width) };
            let below = if last { halo.add(width + i - (rows - 1) * width) } else { before.add(i + width) };
            // SAFETY: the launch's contract; the halo was filled by the exchange before.
            unsafe {
                let load = |at: Global<f32>| f32::from_bits(arch::load_weak_u32(at.cast()));
                let mean = (load(above) + load(before.add(i)) + load(below)) / 3.0;
                arch::store_weak_u32(after.add(i).cast(), mean.to_bits());
            }
            i += u64::from(Grid.size());
        }
    }
}

module! {
    /// The kernels of this crate.
    pub static KERNELS = [Exchange, Smooth];
}
