//! A section that so many blocks may be in at once, by a semaphore whose two sides share one token.

use core::mem::offset_of;

use static_assertions::const_assert_eq;
use warpwire_device::abi::{Global, PolicyHandle, SemaphoreHandle};
use warpwire_device::arch::{self, Gpu, Relaxed};
use warpwire_device::coop::{Block, Group};
use warpwire_device::kernel;
use warpwire_device::semaphore::Semaphore;
use warpwire_device::spin::Policy;

/// Arguments of [`BoundedSection`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BoundedSectionArgs {
    /// Both sides' token is one word, which holds `capacity` at first.
    pub entrance: SemaphoreHandle,
    /// The launch's waits.
    pub policy: PolicyHandle,
    /// How many times a block was in the section: one word, 0 at first. With room for one it is counted by plain accesses,
    /// which only the semaphore orders.
    pub visits: Global<u64>,
    /// How many blocks are in the section now: one word, 0 at first.
    pub inside: Global<u32>,
    /// How many times a block found more in it than there may be: one word, 0 at first.
    pub crowded: Global<u32>,
    /// How many blocks may be in it at once.
    pub capacity: u32,
    /// How many times each block enters.
    pub rounds: u32,
}
const_assert_eq!(size_of::<BoundedSectionArgs>(), 88);
const_assert_eq!(offset_of!(BoundedSectionArgs, visits), 56);

kernel! {
    /// Each block's first thread enters the section and leaves it, `rounds` times. Any grid that is resident as a whole.
    pub struct BoundedSection = "check_bounded_section", max_threads = 32, min_blocks = 1;
    unsafe fn(args: BoundedSectionArgs) {
        if !Block.is_leader() {
            return;
        }
        // SAFETY: the launch's contract: the semaphore's words and the board are mapped and live.
        let (entrance, policy) = unsafe { (Semaphore::new(args.entrance), Policy::new(args.policy)) };
        for _ in 0..args.rounds {
            // A failed wait has left its report; the kernel just ends.
            if entrance.wait_shared(policy.patience()).is_err() {
                return;
            }
            // SAFETY: the launch's contract: a word each. The plain accesses are made by one block at a time, each behind
            // the acquire of the signal that the last one released.
            unsafe {
                if arch::atom_add_u32::<Relaxed, Gpu>(args.inside, 1) >= args.capacity {
                    arch::red_add_u32::<Relaxed, Gpu>(args.crowded, 1);
                }
                if args.capacity == 1 {
                    arch::store_weak_u64(args.visits, arch::load_weak_u64(args.visits) + 1);
                } else {
                    arch::red_add_u64::<Relaxed, Gpu>(args.visits, 1);
                }
                arch::red_add_u32::<Relaxed, Gpu>(args.inside, u32::MAX); // minus one
            }
            entrance.signal();
        }
    }
}
