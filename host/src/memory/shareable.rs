//! The owner of what is shared.

use std::sync::Arc;

use warpwire_device::abi::{Global, Pod};

use super::export::{HandleChoice, Object, Publication};
use super::handle::{Origin, Part, SharedHandle};
use crate::device::driver::{Allocated, DriverMemory};
use crate::device::{AddressRange, Buffer, Device};
use crate::error::{MemoryError, Result};

/// Memory that other processes may map: it keeps the memory, and answers those who open its handles, until it is dropped.
/// A cheap clone.
///
/// Whoever has mapped the memory by then keeps it as well: the owner may drop its buffer and the `Shareable` first. (An
/// importer on another host, by a fabric handle, cannot: there the owner has to outlast it.) A process that ends takes its
/// memory with it, except where it is mapped by file descriptor.
///
/// ```
/// use warpwire::device::{Device, DeviceSelector};
/// use warpwire::memory::{HandleChoice, Shareable, SharedHandle};
///
/// # fn main() -> warpwire::Result<()> {
/// let device = Device::open(DeviceSelector::Cpu)?;
/// let buffer = device.allocate_shareable::<u32>(4)?;
/// let shareable = Shareable::of(&buffer, HandleChoice::Auto)?;
/// let message = shareable.handle().to_bytes()?;
/// // Another process, which has been sent the message, writes to the same memory:
/// SharedHandle::from_bytes(&message)?.open::<u32>(&device)?.write(&[7])?;
/// assert_eq!(buffer.read()?, [7, 0, 0, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Shareable {
    _publication: Arc<Publication>,
    /// The export is of an allocation, and keeps one piece of it; this keeps the piece that is shared here.
    _memory: Arc<dyn DriverMemory>,
    handle: SharedHandle,
}

impl Shareable {
    /// Shares a buffer.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NotShareable`] for memory of a kind that has no handles: allocate it with
    /// [`Device::allocate_shareable`]. [`MemoryError::HandleUnavailable`] where the kind that was chosen does not work here,
    /// with the driver's reason. [`MemoryError::DescriptorLimit`], and the driver's.
    pub fn of<T: Pod>(buffer: &Buffer<T>, choice: HandleChoice) -> Result<Self> {
        let (memory, offset) = buffer.memory();
        Self::new(buffer.device(), Arc::clone(memory), offset, buffer.bytes(), choice)
    }

    /// Shares memory that the program has from elsewhere: `bytes` bytes at `address`, inside one allocation.
    ///
    /// # Errors
    ///
    /// As for [`Shareable::of`], and [`MemoryError::NotOneAllocation`]. Memory that cannot be shared is named with its kind:
    /// a pool's, managed, pinned or ordinary host memory, virtual memory made without a handle type.
    ///
    /// # Safety
    ///
    /// Unless it is virtual memory, of which a reference is taken, the allocation stays until this is dropped and nobody has
    /// the memory mapped.
    pub unsafe fn of_address(
        device: &Device,
        address: Global<u8>,
        bytes: u64,
        choice: HandleChoice,
    ) -> Result<Self> {
        let address = address.address();
        if bytes == 0 {
            return Err(MemoryError::NotOneAllocation { address, bytes, allocation: None }.into());
        }
        // SAFETY: the caller's contract.
        let memory = unsafe { device.driver().adopt(AddressRange { address, bytes }) }?;
        let offset = address - memory.address();
        Self::new(device, memory, offset, bytes, choice)
    }

    /// Shares all of what a buffer lies in.
    pub(super) fn whole(device: &Device, memory: &Arc<dyn DriverMemory>) -> Result<Self> {
        let Allocated { bytes, offset, .. } = memory.allocation();
        Self::new(device, Arc::clone(memory), 0, bytes - offset, HandleChoice::Auto)
    }

    fn new(
        device: &Device,
        memory: Arc<dyn DriverMemory>,
        offset: u64,
        bytes: u64,
        choice: HandleChoice,
    ) -> Result<Self> {
        let publication = Publication::of(device, &Object::Memory(Arc::clone(&memory)), choice)?;
        let allocation = memory.allocation();
        let part = Part {
            origin: Origin::of(publication.export())?,
            allocation_bytes: allocation.bytes,
            offset: allocation.offset + offset,
            bytes,
        };
        Ok(Self { _publication: publication, _memory: memory, handle: SharedHandle::new(part) })
    }

    /// What another process opens.
    #[must_use]
    pub fn handle(&self) -> &SharedHandle {
        &self.handle
    }
}
