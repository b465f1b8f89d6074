//! What a connection between two ranks of one device asks the device for: a copy, the peer's word and the connection's own mark
//! behind it, in one launch.

use core::mem::offset_of;

use static_assertions::const_assert_eq;
use warpwire_device::abi::Global;
use warpwire_device::arch::{AcqRel, Relaxed, Release, Sys};
use warpwire_device::coop::{Block, Group, SyncGroup};
use warpwire_device::copy::copy;
use warpwire_device::kernel;
use warpwire_device::mem::{Mapped, Word};

/// Arguments of [`Deliver`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeliverArgs {
    /// Where to copy to.
    pub destination: Global<u8>,
    /// Where from.
    pub source: Global<u8>,
    /// How many bytes.
    pub bytes: u64,
    /// The word that is set when they are there. Null: none is.
    pub word: Global<u64>,
    /// What it is set to.
    pub value: u64,
    /// The word that is set behind all of that.
    pub progress: Global<u64>,
    /// What it is set to.
    pub mark: u64,
}
const_assert_eq!(size_of::<DeliverArgs>(), 56);
const_assert_eq!(offset_of!(DeliverArgs, word), 24);
const_assert_eq!(offset_of!(DeliverArgs, progress), 40);

kernel! {
    /// Copies bytes of any number and alignment, then sets the word, then the progress, both at system scope: who acquires the
    /// word sees the bytes, and who acquires the progress sees bytes and word. Waits for nobody. One block, any number of threads.
    pub struct Deliver = "warpwire_deliver", max_threads = 256, min_blocks = 1;
    unsafe fn(args: DeliverArgs) {
        // SAFETY: the launch's contract: both ranges are mapped, live and apart, and nobody else touches them meanwhile.
        unsafe { copy(Block, args.destination, args.source, args.bytes) };
        Block.sync();
        if !Block.is_leader() {
            return;
        }
        // One fence for both words: with each its own, the first would come no sooner, and the second later.
        <Mapped<u64> as Word>::fence::<AcqRel, Sys>();
        if !args.word.is_null() {
            // SAFETY: the launch's contract: an aligned word, mapped and live, that only this connection writes.
            unsafe { Mapped::new(args.word) }.store::<Relaxed, Sys>(args.value);
        }
        // SAFETY: as above, of the progress.
        unsafe { Mapped::new(args.progress) }.store::<Release, Sys>(args.mark);
    }
}
