//! Code: modules of kernels, and kernels tied to their argument types.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use warpwire_device::kernel::{Kernel, KernelEntry};

use super::Device;
use super::driver::{DriverFunction, DriverModule};
use crate::error::{Error, ModuleError, Result};

/// A module's code in both forms: the table that the CPU device runs, and PTX by architecture.
#[derive(Clone, Copy)]
pub struct ModuleSource {
    /// The module's name, for errors.
    pub name: &'static str,
    /// Its kernels, as the device crate's `module!` declares them.
    pub kernels: &'static [KernelEntry],
    /// Its PTX: each text with the architecture that it was built for, 90 for `sm_90`. Several texts for one architecture are
    /// parts of the module, each with other kernels, as the builder writes them for a crate that it splits.
    pub ptx: &'static [(u32, &'static str)],
}

impl fmt::Debug for ModuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the PTX itself: it has thousands of lines.
        let mut architectures: Vec<u32> = self.ptx.iter().map(|&(architecture, _)| architecture).collect();
        architectures.dedup();
        f.debug_struct("ModuleSource")
            .field("name", &self.name)
            .field("kernels", &self.kernels.len())
            .field("ptx", &architectures)
            .finish()
    }
}

/// For each architecture its texts, each named by the module of `warpwire_kernels` whose kernels are in it.
macro_rules! texts {
    ($($architecture:literal: $($part:literal)*;)*) => {
        &[$($((
            $architecture,
            include_str!(concat!("../../../ptx/sm_", $architecture, "/warpwire_kernels.", $part, ".ptx")),
        ),)*)*]
    };
}

/// warpwire's own kernels. On a GPU those that are used together are compiled together, when [`Module::function`] first asks
/// for one of them: all-reduces, conversions, transfers and so on.
#[must_use]
pub fn builtin_module() -> &'static ModuleSource {
    static MODULE: ModuleSource = ModuleSource {
        name: "warpwire_kernels",
        kernels: warpwire_kernels::MODULE,
        ptx: texts! {
            80: "all_pair" "barrier" "convert" "deliver" "fifo" "packets" "ping_pong" "port" "transfer";
            90: "all_pair" "barrier" "bulk" "convert" "deliver" "fifo" "packets" "ping_pong" "port" "transfer";
            100: "all_pair" "barrier" "bulk" "convert" "deliver" "fifo" "packets" "ping_pong" "port" "transfer";
        },
    };
    &MODULE
}

/// A module, loaded on a device. A cheap clone.
#[derive(Clone, Debug)]
pub struct Module {
    device: Device,
    driver: Arc<dyn DriverModule>,
}

impl Module {
    pub(super) fn load(device: &Device, source: &ModuleSource) -> Result<Self> {
        Ok(Self::of_driver(device, device.driver().load(source)?))
    }

    pub(super) fn of_driver(device: &Device, driver: Arc<dyn DriverModule>) -> Self {
        Self { device: device.clone(), driver }
    }

    /// The kernel `K`.
    ///
    /// Where a module is in parts (see [`ModuleSource::ptx`]), the first kernel that is asked for of a part has the GPU's
    /// driver compile it, with all its kernels. As any loading of code, that takes a while and waits for every kernel that
    /// runs on the GPU: ask for kernels before the first launch that waits for another rank.
    ///
    /// # Errors
    ///
    /// [`ModuleError::UnknownKernel`] where the module has none of that name, [`ModuleError::ArgumentMismatch`] where it takes
    /// another argument block; [`ModuleError::Load`] where its part does not load.
    pub fn function<K: Kernel>(&self) -> Result<Function<K>> {
        let driver = self.driver.function(K::NAME, size_of::<K::Args>())?;
        Ok(Function { device: self.device.clone(), driver, resident: Arc::default(), kernel: PhantomData })
    }

    /// How many blocks of `K` with this shape the device holds at once.
    ///
    /// # Errors
    ///
    /// As [`Module::function`], and as [`Function::resident_blocks`].
    pub fn resident_blocks<K: Kernel>(&self, threads: u32, shared_bytes: u32) -> Result<u32> {
        self.function::<K>()?.resident_blocks(threads, shared_bytes)
    }
}

/// The kernel `K`, loaded on a device. A cheap clone.
pub struct Function<K> {
    device: Device,
    driver: Arc<dyn DriverFunction>,
    /// Answers of the occupancy query, by shape: a launch asks each time, and a driver takes microseconds.
    resident: Arc<Mutex<Vec<(Shape, u32)>>>,
    kernel: PhantomData<fn() -> K>,
}

/// Threads and shared bytes of a block.
type Shape = (u32, u32);

impl<K> Function<K> {
    /// The device that it is loaded on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The most threads of a block: the lower of the kernel's bound and the device's.
    #[must_use]
    pub fn max_threads(&self) -> u32 {
        self.driver.limits().max_threads.min(self.device.properties().max_threads_per_block)
    }

    /// How many blocks of this shape the device holds at once, when nothing else runs on it.
    ///
    /// # Errors
    ///
    /// [`LaunchError`](crate::error::LaunchError) for a shape that no launch can have;
    /// [`Error::Driver`] where the query fails.
    pub fn resident_blocks(&self, threads: u32, shared_bytes: u32) -> Result<u32> {
        super::LaunchConfig::new(1, threads).shared_bytes(shared_bytes).check_block(
            self.driver.name(),
            self.driver.limits(),
            self.device.properties(),
        )?;
        let shape = (threads, shared_bytes);
        // A panic elsewhere leaves the list whole: it only ever grows by a push.
        let mut resident = self.resident.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, blocks)) = resident.iter().find(|(known, _)| *known == shape) {
            return Ok(blocks);
        }
        let blocks = self.driver.resident_blocks(threads, shared_bytes)?;
        resident.push((shape, blocks));
        Ok(blocks)
    }

    pub(super) fn driver(&self) -> &Arc<dyn DriverFunction> {
        &self.driver
    }
}

impl<K> Clone for Function<K> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            driver: Arc::clone(&self.driver),
            resident: Arc::clone(&self.resident),
            kernel: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Function<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.driver.name()).finish()
    }
}

/// The error of a kernel that a module does not have.
pub(super) fn unknown_kernel<'a>(name: &str, module: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known = known.map(str::to_owned).collect();
    Error::Module(ModuleError::UnknownKernel { name: name.to_owned(), module: module.to_owned(), known })
}
