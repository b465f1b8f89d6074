//! Memory that a device reaches.

use std::fmt;
use std::marker::PhantomData;
use std::slice;
use std::sync::Arc;

use warpwire_device::abi::{Global, Pod};

use super::driver::{DriverMemory, MemoryRequest};
use super::{Device, HandleKinds, MemoryKind, MemoryOptions};
use crate::error::{Error, Result};

/// What every driver aligns an allocation to.
const ALIGNMENT: usize = 256;

/// `len` elements of some device's memory, freed on drop.
struct Allocation<T> {
    device: Device,
    memory: Arc<dyn DriverMemory>,
    /// Where in the memory the first element lies, in bytes.
    offset: u64,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Pod> Allocation<T> {
    fn new(device: &Device, len: usize, options: MemoryOptions) -> Result<Self> {
        const { assert!(align_of::<T>() <= ALIGNMENT, "drivers align to 256 bytes") };
        let overflow = Error::SizeOverflow { len, element_bytes: size_of::<T>() };
        let bytes = len
            .checked_mul(size_of::<T>())
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or(overflow)?;
        if bytes == 0 {
            return Err(Error::EmptyAllocation);
        }
        let MemoryOptions { kind, zeroed, exportable } = options;
        let handles = match kind {
            MemoryKind::Virtual if exportable => device.virtual_handles(),
            _ => HandleKinds::empty(),
        };
        let memory = device.driver().allocate(MemoryRequest { bytes, kind, zeroed, handles })?;
        debug_assert!(memory.address().is_multiple_of(ALIGNMENT as u64), "drivers align to 256 bytes");
        Ok(Self { device: device.clone(), memory, offset: 0, len, element: PhantomData })
    }

    fn address(&self) -> Global<T> {
        // SAFETY: the allocation's own address in the device's global memory, aligned for `T`: `new` asserts it, and
        // `Buffer::of_memory` asks for it.
        unsafe { Global::from_address(self.memory.address() + self.offset) }
    }

    /// The address of element `offset`, if `len` elements from there lie inside.
    fn range(&self, operation: &'static str, offset: usize, len: usize) -> Result<u64> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(Error::OutOfRange { operation, offset, len, capacity: self.len });
        }
        Ok(self.address().add(offset as u64).address())
    }

    fn write_at(&self, offset: usize, source: &[T]) -> Result<()> {
        let address = self.range("write", offset, source.len())?;
        if source.is_empty() {
            return Ok(());
        }
        // SAFETY: `Pod`: no padding, so every byte of the slice is initialised; `u8` has no alignment.
        let bytes = unsafe { slice::from_raw_parts(source.as_ptr().cast(), size_of_val(source)) };
        // SAFETY: the range lies inside this live allocation; that no launch touches it meanwhile is each launch's contract.
        unsafe { self.device.driver().write(address, bytes) }
    }

    fn read_at(&self, offset: usize, destination: &mut [T]) -> Result<()> {
        let address = self.range("read", offset, destination.len())?;
        if destination.is_empty() {
            return Ok(());
        }
        let len = size_of_val(destination);
        // SAFETY: `Pod`: no padding, and every bit pattern that may be written to it is valid.
        let bytes = unsafe { slice::from_raw_parts_mut(destination.as_mut_ptr().cast(), len) };
        // SAFETY: as in `write_at`.
        unsafe { self.device.driver().read(address, bytes) }
    }

    fn read(&self) -> Result<Vec<T>> {
        let mut elements: Vec<T> = Vec::new();
        elements.try_reserve_exact(self.len).map_err(|_| Error::OutOfMemory {
            device: "the host".to_owned(),
            bytes: (self.len * size_of::<T>()) as u64,
            detail: String::new(),
        })?;
        // SAFETY: room for `len` elements was reserved, and a `Pod` of zero bytes is valid.
        unsafe {
            elements.as_mut_ptr().write_bytes(0, self.len);
            elements.set_len(self.len);
        }
        self.read_at(0, &mut elements)?;
        Ok(elements)
    }

    fn fill_bytes(&self, value: u8) -> Result<()> {
        // SAFETY: the whole of this live allocation; otherwise as in `write_at`.
        unsafe { self.device.driver().fill(self.address().address(), value, self.len * size_of::<T>()) }
    }

    fn fmt(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name).field("address", &self.address()).field("len", &self.len).finish()
    }
}

macro_rules! buffer {
    ($(#[$meta:meta])* $Buffer:ident, $kind:expr) => {
        $(#[$meta])*
        pub struct $Buffer<T> {
            allocation: Allocation<T>,
        }

        impl<T: Pod> $Buffer<T> {
            pub(super) fn new(device: &Device, len: usize) -> Result<Self> {
                Ok(Self { allocation: Allocation::new(device, len, MemoryOptions::new($kind))? })
            }

            /// The device that reaches it.
            #[must_use]
            pub fn device(&self) -> &Device {
                &self.allocation.device
            }

            /// Elements.
            #[must_use]
            #[allow(clippy::len_without_is_empty, reason = "a buffer is never empty")]
            pub fn len(&self) -> usize {
                self.allocation.len
            }

            /// What memory it is in.
            #[must_use]
            pub fn kind(&self) -> MemoryKind {
                self.allocation.memory.kind()
            }

            /// Where the device's kernels find it. At least 256-byte aligned where this process has allocated it.
            #[must_use]
            pub fn address(&self) -> Global<T> {
                self.allocation.address()
            }

            /// Writes `source` to the front, and returns when it is there.
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`] where it is longer than the buffer, or the driver's.
            pub fn write(&self, source: &[T]) -> Result<()> {
                self.allocation.write_at(0, source)
            }

            /// Writes `source` from element `offset` on, and returns when it is there.
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`] where it reaches past the end, or the driver's.
            pub fn write_at(&self, offset: usize, source: &[T]) -> Result<()> {
                self.allocation.write_at(offset, source)
            }

            /// A copy of all of it.
            ///
            /// # Errors
            ///
            /// [`Error::OutOfMemory`] where the host has no room for it, or the driver's.
            pub fn read(&self) -> Result<Vec<T>> {
                self.allocation.read()
            }

            /// Copies the elements from `offset` on into `destination`.
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`] where `destination` reaches past the end, or the driver's.
            pub fn read_at(&self, offset: usize, destination: &mut [T]) -> Result<()> {
                self.allocation.read_at(offset, destination)
            }

            /// Sets every byte to `value`, and returns when they are.
            ///
            /// # Errors
            ///
            /// The driver's.
            pub fn fill_bytes(&self, value: u8) -> Result<()> {
                self.allocation.fill_bytes(value)
            }
        }

        impl<T: Pod> fmt::Debug for $Buffer<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.allocation.fmt(stringify!($Buffer), f)
            }
        }
    };
}

buffer! {
    /// Elements in a device's own memory, freed on drop: see [`Device::allocate`].
    ///
    /// Reading and writing go round the streams: they neither wait for queued work nor make it wait. A launch's contract says
    /// that nobody else touches what its kernel touches, so synchronize first.
    Buffer, MemoryKind::Device
}

buffer! {
    /// Elements in host memory that the device reaches too, freed on drop: see [`Device::allocate_host`].
    ///
    /// It is what host and kernels talk through while kernels run: through [`HostBuffer::as_ptr`], with atomic accesses. The
    /// other methods are for when no kernel touches it.
    HostBuffer, MemoryKind::Host
}

impl<T: Pod> Buffer<T> {
    pub(super) fn with(device: &Device, len: usize, options: MemoryOptions) -> Result<Self> {
        Ok(Self { allocation: Allocation::new(device, len, options)? })
    }

    /// `len` elements from byte `offset` of `memory` on, which is that long; fails where they are not aligned.
    pub(crate) fn of_memory(
        device: &Device,
        memory: Arc<dyn DriverMemory>,
        offset: u64,
        len: usize,
    ) -> Result<Self> {
        let (address, alignment) = (memory.address() + offset, align_of::<T>() as u64);
        if !address.is_multiple_of(alignment) {
            return Err(Error::Misaligned { what: "buffer", address, alignment });
        }
        let device = device.clone();
        Ok(Self { allocation: Allocation { device, memory, offset, len, element: PhantomData } })
    }

    /// `len` elements from element `offset` on, as a buffer of their own, which keeps the memory as this one does.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Result<Self> {
        let address = self.allocation.range("take", offset, len)?;
        let memory = Arc::clone(&self.allocation.memory);
        let from = address - memory.address();
        Self::of_memory(self.device(), memory, from, len)
    }

    /// What it lies in, and where in that it begins, in bytes.
    pub(crate) fn memory(&self) -> (&Arc<dyn DriverMemory>, u64) {
        (&self.allocation.memory, self.allocation.offset)
    }

    /// Its length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.len() * size_of::<T>()) as u64
    }
}

impl<T: Pod> HostBuffer<T> {
    /// Where the host finds it: `len` elements, live as long as the buffer, zeroed at first.
    ///
    /// What a kernel may touch at the same time has to be accessed with atomics of the word's own size.
    #[must_use]
    pub fn as_ptr(&self) -> *mut T {
        self.allocation.memory.host_pointer().cast()
    }
}
