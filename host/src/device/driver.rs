//! What a device has to be able to do. The CPU device and the CUDA device each implement these traits; everything above
//! them is written once.
//!
//! Addresses are `u64`s of the device's own address space. The typed, owning forms are in the sibling modules.

mod memory;

use std::ffi::c_void;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use warpwire_device::abi::LaunchLimits;

pub(crate) use memory::{
    Allocated, AllocationId, DriverMemory, DriverMulticast, DriverMulticastMapping, MemoryDriver,
    MemoryRequest, MulticastPlace, MulticastShape, OPAQUE_BYTES, OpenMember, Payload, ShareMember,
};

use super::{LaunchConfig, ModuleSource, Properties};
use crate::error::Result;

/// One device.
pub(crate) trait Driver: MemoryDriver {
    /// What it is.
    fn properties(&self) -> &Properties;

    /// A new stream: work on it runs in order, beside the work of other streams.
    fn stream(&self) -> Result<Arc<dyn DriverStream>>;

    /// Makes the device the calling thread's own, for the thread's whole life: what the thread calls by itself then goes to
    /// this device, and no context is made on another.
    fn bind_thread(&self) -> Result<()>;

    /// Whether the device is the calling thread's own.
    fn is_bound_to_thread(&self) -> Result<bool>;

    /// Lets the calling thread make any call while a stream is captured, its own or another thread's, without harm to the
    /// capture.
    fn relax_capture(&self) -> Result<()>;

    /// Loads the module's code for this device.
    fn load(&self, source: &ModuleSource) -> Result<Arc<dyn DriverModule>>;
}

/// A module's code on one device.
pub(crate) trait DriverModule: Debug + Send + Sync {
    /// The kernel with this entry; an error that names what there is where there is none, or where its argument block is
    /// not of this size.
    fn function(&self, name: &str, args_size: usize) -> Result<Arc<dyn DriverFunction>>;
}

/// A kernel's code on one device.
pub(crate) trait DriverFunction: Debug + Send + Sync {
    /// Its entry's name.
    fn name(&self) -> &str;

    /// The bounds that it was compiled for.
    fn limits(&self) -> LaunchLimits;

    /// How many blocks of this shape the whole device holds at once.
    fn resident_blocks(&self, threads: u32, shared_bytes: u32) -> Result<u32>;

    /// Its own type, for the driver that made it.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A queue of work.
pub(crate) trait DriverStream: Debug + Send + Sync {
    /// Queues a launch. The shape has been checked by the caller; the argument block is copied before this returns.
    ///
    /// # Safety
    ///
    /// `args` is a value of the kernel's argument type, and the kernel's own contract holds until the launch has ended.
    unsafe fn launch(&self, function: &dyn DriverFunction, config: LaunchConfig, args: &[u8]) -> Result<()>;

    /// Makes a launch ready to be repeated with other arguments, where that is quicker than [`DriverStream::launch`]; `None` where
    /// it is not. The shape has been checked by the caller.
    fn relaunch(
        &self,
        _function: &dyn DriverFunction,
        _config: LaunchConfig,
    ) -> Result<Option<Box<dyn DriverRelaunch>>> {
        Ok(None)
    }

    /// Queues a copy within the device.
    ///
    /// # Safety
    ///
    /// Both ranges are the device's and live until the copy has ended; they do not overlap.
    unsafe fn copy(&self, destination: u64, source: u64, bytes: usize) -> Result<()>;

    /// Queues setting `bytes` bytes to `value`.
    ///
    /// # Safety
    ///
    /// The range is the device's and live until that has ended.
    unsafe fn fill(&self, destination: u64, value: u8, bytes: usize) -> Result<()>;

    /// Queues setting a 64-bit word: what was queued before is done, and visible to whoever acquires the value at system scope.
    ///
    /// # Safety
    ///
    /// The word is aligned, reached by the device, and live until that has ended; others touch it by ordered accesses only.
    unsafe fn write_word(&self, destination: u64, value: u64) -> Result<()>;

    /// Queues setting two words, each an address and a value, the first before the second; in one call where there is one.
    ///
    /// # Safety
    ///
    /// As for [`DriverStream::write_word`], of both.
    unsafe fn write_words(&self, words: [(u64, u64); 2]) -> Result<()> {
        // SAFETY: the caller's contract.
        words.into_iter().try_for_each(|(address, value)| unsafe { self.write_word(address, value) })
    }

    /// Waits for everything queued so far.
    fn synchronize(&self) -> Result<()>;

    /// Whether everything queued so far has ended.
    fn is_idle(&self) -> Result<bool>;

    /// Queues a mark of the time.
    fn record(&self) -> Result<Box<dyn DriverEvent>>;

    /// Begins to record what is queued instead of running it.
    fn begin_capture(&self) -> Result<()>;

    /// Ends that and gives what was recorded. Ends the recording also where it fails.
    fn end_capture(&self) -> Result<Arc<dyn DriverGraph>>;

    /// Hands over the driver's own handle, with what it belongs to current on the calling thread. False where there is none.
    fn with_native(&self, _take: &mut dyn FnMut(*mut c_void)) -> Result<bool> {
        Ok(false)
    }

    /// Its own type, for the driver that made it.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A launch that is repeated with other arguments.
pub(crate) trait DriverRelaunch: Debug + Send + Sync {
    /// Queues it on `stream`. The argument block is copied before this returns.
    ///
    /// # Safety
    ///
    /// As for [`DriverStream::launch`], and `self` lives until the launch has ended.
    unsafe fn launch(&self, stream: &dyn DriverStream, args: &[u8]) -> Result<()>;
}

/// A mark of the time in a stream.
pub(crate) trait DriverEvent: Debug + Send + Sync {
    /// Waits until it has passed.
    fn synchronize(&self) -> Result<()>;

    /// Whether it has passed.
    fn has_passed(&self) -> Result<bool>;

    /// The time from `earlier`, a mark of the same device, to this one; waits for both.
    fn elapsed_since(&self, earlier: &dyn DriverEvent) -> Result<Duration>;

    /// Its own type, for the driver that made it.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// Recorded work.
pub(crate) trait DriverGraph: Debug + Send + Sync {
    /// Queues all of it on `stream`.
    ///
    /// # Safety
    ///
    /// The contracts of all that was recorded hold again.
    unsafe fn launch(&self, stream: &dyn DriverStream) -> Result<()>;
}
