//! Small writes within one device: copied, signalled and marked by one launch of a kernel.
//!
//! The driver copies within a device by a kernel of its own, whatever call it is asked by: on a GPU that is full of waiting threads
//! neither its copy nor ours runs, and where one finds room the other does. A copy and a word behind it are two calls, though, and
//! what they cost in the host's time is most of what a small write takes (docs/performance.md).

use warpwire_device::abi::Global;
use warpwire_kernels::deliver::{Deliver, DeliverArgs};

use crate::device::{Device, LaunchConfig, Relaunch, Stream};
use crate::error::Result;

/// The longest write that one block makes sooner than the driver's copy does.
const MOST_BYTES: u64 = 64 << 10;
/// Threads of the block.
const THREADS: u32 = 256;

/// The launch, ready to be repeated.
#[derive(Debug)]
pub(super) struct Delivery {
    launch: Relaunch<Deliver>,
}

impl Delivery {
    /// For writes on `stream`. Loads warpwire's kernels, where nobody has yet.
    pub(super) fn new(device: &Device, stream: &Stream) -> Result<Self> {
        let function = device.builtin()?.function()?;
        Ok(Self { launch: Relaunch::new(stream, function, LaunchConfig::new(1, THREADS))? })
    }

    /// Whether a write of this length is better made so.
    pub(super) fn takes(&self, bytes: u64) -> bool {
        bytes <= MOST_BYTES
    }

    /// Queues a write of `bytes` bytes, the setting of `word` behind it, where there is one, and of `progress` to its mark.
    ///
    /// # Safety
    ///
    /// As for [`Stream::copy`] and [`Stream::write_word`]; `self` lives until the stream's work has ended.
    pub(super) unsafe fn queue(
        &self,
        stream: &Stream,
        [destination, source]: [Global<u8>; 2],
        bytes: u64,
        word: Option<(Global<u64>, u64)>,
        (progress, mark): (Global<u64>, u64),
    ) -> Result<()> {
        let (word, value) = word.unwrap_or_default();
        let args = DeliverArgs { destination, source, bytes, word, value, progress, mark };
        // SAFETY: the caller's contract.
        unsafe { self.launch.launch(stream, args) }
    }
}
