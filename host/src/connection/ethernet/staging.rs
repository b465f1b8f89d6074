//! Host memory that data goes through on its way between a device and a socket.

use std::ops::{Deref, DerefMut};
use std::slice;

use crate::device::{Device, HostBuffer};
use crate::error::Result;

/// Bytes of the host's that the device copies from and to without a detour: pinned, on a GPU.
#[derive(Debug)]
pub(super) struct Staging {
    buffer: HostBuffer<u8>,
}

impl Staging {
    pub(super) fn new(device: &Device, bytes: usize) -> Result<Self> {
        Ok(Self { buffer: device.allocate_host(bytes)? })
    }
}

impl Deref for Staging {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the buffer's own bytes, zeroed when it was made. Its address is given to nobody, so that they change through
        // this value's borrows alone.
        unsafe { slice::from_raw_parts(self.buffer.as_ptr(), self.buffer.len()) }
    }
}

impl DerefMut for Staging {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `self` is borrowed mutably as long as the slice is.
        unsafe { slice::from_raw_parts_mut(self.buffer.as_ptr(), self.buffer.len()) }
    }
}
