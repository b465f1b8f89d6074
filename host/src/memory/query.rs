//! Questions about memory, and setting it.

use warpwire_device::abi::Global;

use crate::device::{AddressRange, Device, Stream};
use crate::error::Result;

/// Whether `address` lies in memory that was mapped through the virtual-memory API (`cuMemMap`). Any number may be asked
/// about: host pointers, plain device memory and 0 are false, and so is every address where the driver has no such API.
#[must_use]
pub fn is_cu_mem_map_allocated(device: &Device, address: u64) -> bool {
    device.driver().is_virtual(address)
}

/// Whether `device` can take part in multicast objects (NVLink SHARP). The driver is asked once for each device.
#[must_use]
pub fn is_nvls_supported(device: &Device) -> bool {
    device.has_multicast()
}

/// The allocation that `address` lies in; `None` for an address that lies in none of the device's.
#[must_use]
pub fn allocation_of(device: &Device, address: u64) -> Option<AddressRange> {
    device.driver().range_of(address)
}

/// Sets `bytes` bytes to `value`, and returns when they are.
///
/// # Errors
///
/// The driver's.
///
/// # Safety
///
/// The range is the device's and live, and no work in flight touches it.
pub unsafe fn gpu_memset(device: &Device, destination: Global<u8>, value: u8, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller's contract.
    unsafe { device.driver().fill(destination.address(), value, bytes) }
}

/// Queues setting `bytes` bytes to `value`.
///
/// # Errors
///
/// The driver's.
///
/// # Safety
///
/// The range is the stream's device's, live and touched by nobody else until that has ended.
pub unsafe fn gpu_memset_async(
    stream: &Stream,
    destination: Global<u8>,
    value: u8,
    bytes: usize,
) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { stream.fill(destination, value, bytes) }
}
