//! Devices, their memory, and launches on them.
//!
//! `driver` is what a device has to be able to do; `cpu` and `cuda` are the two that can. The rest is written once, over
//! that: [`Device`] and [`Buffer`] own things, [`Module`] and [`Function`] tie code to argument types, [`Stream`] queues
//! work and turns what went wrong into errors.
//!
//! ```
//! use warpwire::device::{Device, DeviceSelector};
//!
//! # fn main() -> warpwire::Result<()> {
//! let device = Device::open(DeviceSelector::Cpu)?;
//! let buffer = device.allocate::<u32>(4)?;
//! buffer.write(&[1, 2, 3, 4])?;
//! assert_eq!(buffer.read()?, [1, 2, 3, 4]);
//! # Ok(())
//! # }
//! ```

mod board;
mod buffer;
mod capabilities;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
pub(crate) mod driver;
mod graph;
mod identity;
mod launch;
mod memory_kind;
mod module;
mod properties;
mod relaunch;
mod room;
mod selector;
mod stream;

pub use buffer::{Buffer, HostBuffer};
pub use graph::Graph;
pub use identity::{DeviceUuid, PciAddress};
pub use launch::LaunchConfig;
pub use memory_kind::{AddressRange, HandleKinds, MemoryInfo, MemoryKind, MemoryOptions};
pub use module::{Function, Module, ModuleSource, builtin_module};
pub use properties::{DeviceKind, Properties};
pub(crate) use relaunch::Relaunch;
pub(crate) use room::Room;
pub use selector::DeviceSelector;
pub use stream::{AbortHandle, Event, Stream};
pub(crate) use stream::{StreamWatch, WeakAbortHandle};

use std::sync::{Arc, Mutex, PoisonError};

use warpwire_device::abi::Pod;

use crate::error::{Error, HandleKind, MemoryError, Result};
use capabilities::Capabilities;
use driver::{Driver, DriverModule};
use room::Reserved;

/// A device that runs kernels. A cheap clone: all clones are the same device.
#[derive(Clone, Debug)]
pub struct Device {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    driver: Arc<dyn Driver>,
    selection_note: Option<String>,
    capabilities: Capabilities,
    /// warpwire's own kernels, once they are asked for.
    builtin: Mutex<Option<Arc<dyn DriverModule>>>,
    reserved: Reserved,
}

impl Device {
    /// Opens a device. Each opening of the CPU device gives another one; a GPU is the same however often it is opened.
    ///
    /// With [`DeviceSelector::Auto`], GPU 0 where the build has CUDA and the machine a driver and a GPU, else the CPU device;
    /// [`Device::selection_note`] and the log say why.
    ///
    /// # Errors
    ///
    /// Of kind [`Unavailable`](crate::ErrorKind::Unavailable) where a GPU is asked for and the build, the driver or the GPU
    /// is missing; [`Error::NoSuchDevice`] for a number beyond the last GPU; [`Error::InvalidVariable`].
    pub fn open(selector: DeviceSelector) -> Result<Self> {
        let (driver, selection_note) = match selector {
            DeviceSelector::Cpu => (cpu::open()?, None),
            DeviceSelector::Cuda(ordinal) => (open_cuda(ordinal)?, None),
            DeviceSelector::Auto => match open_cuda(0) {
                Ok(driver) => (driver, Some("took GPU 0".to_owned())),
                Err(why) => (cpu::open()?, Some(format!("took the CPU device: {why}"))),
            },
        };
        if let Some(note) = &selection_note {
            tracing::info!(device = %driver.properties().name, "{note}");
        }
        Ok(Self::of_driver(driver, selection_note))
    }

    pub(crate) fn of_driver(driver: Arc<dyn Driver>, selection_note: Option<String>) -> Self {
        Self {
            inner: Arc::new(Inner {
                driver,
                selection_note,
                capabilities: Capabilities::default(),
                builtin: Mutex::default(),
                reserved: Reserved::default(),
            }),
        }
    }

    /// Its name and limits.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        self.inner.driver.properties()
    }

    /// Why [`DeviceSelector::Auto`] took this one; `None` where it was asked for by name.
    #[must_use]
    pub fn selection_note(&self) -> Option<&str> {
        self.inner.selection_note.as_deref()
    }

    /// `len` zeroed elements of the device's own memory.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyAllocation`], [`Error::SizeOverflow`], [`Error::OutOfMemory`].
    pub fn allocate<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::new(self, len)
    }

    /// `len` elements of the device's memory, of the kind and in the state that `options` ask for. Virtual memory is rounded
    /// up to whole granules, and can be exported by every kind of handle that works here ([`Device::handle_kinds`]).
    ///
    /// ```
    /// use warpwire::device::{Device, DeviceSelector, MemoryKind, MemoryOptions};
    ///
    /// # fn main() -> warpwire::Result<()> {
    /// let device = Device::open(DeviceSelector::Cpu)?;
    /// let private = MemoryOptions::new(MemoryKind::Virtual).exportable(false);
    /// let buffer = device.allocate_with::<f32>(1000, private)?;
    /// assert_eq!(buffer.kind(), MemoryKind::Virtual);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Device::allocate`]; [`Error::NoSuchMemory`] for [`MemoryKind::Host`] (see [`Device::allocate_host`]),
    /// [`MemoryKind::Imported`], and what the device has not.
    pub fn allocate_with<T: Pod>(&self, len: usize, options: MemoryOptions) -> Result<Buffer<T>> {
        let remedy = match options.kind {
            MemoryKind::Device | MemoryKind::Plain | MemoryKind::Virtual => {
                return Buffer::with(self, len, options);
            }
            MemoryKind::Host => "call Device::allocate_host",
            MemoryKind::Imported => "open a handle of it (memory::SharedHandle)",
        };
        Err(Error::NoSuchMemory {
            device: self.properties().name.clone(),
            memory: options.kind.words(),
            remedy,
        })
    }

    /// `len` zeroed elements that other processes can map: virtual memory where it can be exported, else plain memory.
    ///
    /// # Errors
    ///
    /// As [`Device::allocate`]; [`MemoryError::HandleUnavailable`] where no kind of handle works.
    pub fn allocate_shareable<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        self.allocate_with(len, MemoryOptions::new(self.shareable_kind()?))
    }

    /// The kind of memory that other processes can map.
    pub(crate) fn shareable_kind(&self) -> Result<MemoryKind> {
        if !self.virtual_handles().is_empty() {
            return Ok(MemoryKind::Virtual);
        }
        match self.try_handle(HandleKind::CudaIpc) {
            Ok(()) => Ok(MemoryKind::Plain),
            Err(reason) => {
                let (kind, device) = (HandleKind::CudaIpc, self.properties().name.clone());
                Err(MemoryError::HandleUnavailable { kind, device, reason }.into())
            }
        }
    }

    /// How much memory there is, and how much of it is free. For the CPU device, the host's.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.driver().memory_info()
    }

    /// `len` zeroed elements of host memory that the device reaches too.
    ///
    /// # Errors
    ///
    /// As [`Device::allocate`].
    pub fn allocate_host<T: Pod>(&self, len: usize) -> Result<HostBuffer<T>> {
        HostBuffer::new(self, len)
    }

    /// Loads a module's kernels. On a GPU its driver compiles them now, where the module has one text for the GPU, and each
    /// part by itself when [`Module::function`] first asks for a kernel in it, where it has several.
    ///
    /// # Errors
    ///
    /// On a GPU a [`ModuleError`](crate::error::ModuleError). The CPU device takes every module.
    pub fn load(&self, source: &ModuleSource) -> Result<Module> {
        Module::load(self, source)
    }

    /// warpwire's own kernels, loaded when they are first asked for, and kept as long as the device.
    ///
    /// # Errors
    ///
    /// As [`Device::load`].
    pub(crate) fn builtin(&self) -> Result<Module> {
        // Held over the load: ranks that ask for it at once wait for one load instead of each making its own.
        let mut builtin = self.inner.builtin.lock().unwrap_or_else(PoisonError::into_inner);
        let driver = match &*builtin {
            Some(driver) => Arc::clone(driver),
            None => Arc::clone(builtin.insert(self.driver().load(builtin_module())?)),
        };
        Ok(Module::of_driver(self, driver))
    }

    /// A new stream: its work runs in order, beside that of other streams.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], or the driver's or the operating system's.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }

    /// Whether this is the device that the calling thread's own CUDA calls go to. Always so for the CPU device.
    ///
    /// Nothing in warpwire needs it: each call enters the device's context by itself. It is for programs that call CUDA in a
    /// proxy's handler, and for tests.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn is_bound_to_thread(&self) -> Result<bool> {
        self.driver().is_bound_to_thread()
    }

    /// Whether both are one device.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// A number that no other device has as long as this one is open.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    /// Fails where `owner` is another device.
    pub(crate) fn expect_own(&self, owner: &Self, what: &'static str) -> Result<()> {
        if self.is_same(owner) { Ok(()) } else { Err(Error::ForeignObject { what }) }
    }

    /// Room that is to be left on it.
    fn reserved(&self) -> &Reserved {
        &self.inner.reserved
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.inner.driver
    }
}

#[cfg(feature = "cuda")]
fn open_cuda(ordinal: u32) -> Result<Arc<dyn Driver>> {
    cuda::open(ordinal)
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(_ordinal: u32) -> Result<Arc<dyn Driver>> {
    Err(Error::CudaDisabled)
}

/// The names of the GPUs, and for each pair, by rows, whether the first reaches the second's memory.
#[cfg(feature = "cuda")]
pub(crate) fn cuda_peers() -> Result<(Vec<String>, Vec<bool>)> {
    cuda::peers()
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn cuda_peers() -> Result<(Vec<String>, Vec<bool>)> {
    Err(Error::CudaDisabled)
}
