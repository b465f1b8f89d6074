//! One launch, repeated with other arguments.

use std::slice;

use warpwire_device::kernel::Kernel;

use super::driver::DriverRelaunch;
use super::{Function, LaunchConfig, Stream};
use crate::error::Result;

/// A launch of `K` that is made ready once and queued many times, each time with arguments of its own: for small launches whose
/// way to the device counts. A driver may take less than half as long over one as over [`Stream::launch`].
#[derive(Debug)]
pub(crate) struct Relaunch<K> {
    function: Function<K>,
    config: LaunchConfig,
    /// `None`: the driver has nothing quicker than a launch.
    driver: Option<Box<dyn DriverRelaunch>>,
}

impl<K: Kernel> Relaunch<K> {
    /// A launch of `function` of this shape, made ready in the order of `stream`.
    ///
    /// # Errors
    ///
    /// As for [`Stream::launch`]; the driver's.
    pub(crate) fn new(stream: &Stream, function: Function<K>, config: LaunchConfig) -> Result<Self> {
        stream.device().expect_own(function.device(), "function")?;
        config.check(&function)?;
        let driver = stream.driver().relaunch(&**function.driver(), config)?;
        Ok(Self { function, config, driver })
    }

    /// Queues it. The arguments are copied before this returns.
    ///
    /// # Errors
    ///
    /// As for [`Stream::launch`].
    ///
    /// # Safety
    ///
    /// As for [`Stream::launch`], and `self` lives until the launch has ended.
    pub(crate) unsafe fn launch(&self, stream: &Stream, args: K::Args) -> Result<()> {
        stream.device().expect_own(self.function.device(), "function")?;
        let Some(driver) = &self.driver else {
            // SAFETY: the caller's contract.
            return unsafe { stream.launch(&self.function, self.config, args) };
        };
        // SAFETY: a live value without padding (the caller's contract), so all its bytes are initialised.
        let bytes = unsafe { slice::from_raw_parts((&raw const args).cast::<u8>(), size_of::<K::Args>()) };
        // SAFETY: the bytes are a `K::Args`, the type of the function; the kernel's contract is the caller's.
        unsafe { driver.launch(stream.driver(), bytes) }
    }
}
