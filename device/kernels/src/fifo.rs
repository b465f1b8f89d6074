//! Triggers from every thread of a grid: the rate of pushes, and the latency from push to sync.

use core::mem::offset_of;

use static_assertions::const_assert_eq;
use warpwire_device::abi::{FifoHandle, PolicyHandle, Trigger};
use warpwire_device::coop::{Grid, Group};
use warpwire_device::fifo::DeviceProducer;
use warpwire_device::kernel;
use warpwire_device::spin::Policy;

/// Arguments of [`FifoPush`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FifoPushArgs {
    /// The FIFO.
    pub fifo: FifoHandle,
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// Triggers of each thread.
    pub count: u32,
    /// Not 0: each waits until it has been taken before the next is pushed.
    pub sync: u32,
}
const_assert_eq!(size_of::<FifoPushArgs>(), 80);
const_assert_eq!(offset_of!(FifoPushArgs, policy), 48);

kernel! {
    /// Each thread pushes `count` triggers: the first word is the thread's number in the grid, the second counts from 0. Any
    /// number of blocks and threads.
    pub struct FifoPush = "warpwire_fifo_push", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: FifoPushArgs) {
        // SAFETY: the launch's contract: the FIFO's memory and the board are mapped and live.
        let (fifo, policy) = unsafe { (DeviceProducer::new(args.fifo), Policy::new(args.policy)) };
        let thread = u64::from(Grid.rank());
        for i in 0..args.count {
            // A failed wait has left its report; the kernel just ends.
            let Ok(position) = fifo.push(Trigger::new([thread, u64::from(i)]), policy.patience()) else { return };
            if args.sync != 0 && fifo.sync(position, policy.patience()).is_err() {
                return;
            }
        }
    }
}
