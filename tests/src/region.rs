//! Heap memory of a chosen alignment, with poison around.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::slice;

use warpwire_device::abi::Global;

/// What memory holds that nobody has written.
pub const POISON: u8 = 0xA5;

/// The base's alignment: that of the widest access.
const ALIGNMENT: usize = 16;

/// `len` bytes of the heap that the device code works on, in a larger allocation that it must leave alone.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    lead: usize,
    len: usize,
    tail: usize,
}

// SAFETY: plain memory, owned; what other threads do to it through `address` is each access' own contract.
unsafe impl Send for Region {}
// SAFETY: as above; the methods that read take care that nobody writes meanwhile, as they say.
unsafe impl Sync for Region {}

impl Region {
    /// `len` bytes whose address is `offset` modulo 16, with at least 32 bytes of poison on each side.
    #[must_use]
    pub fn poisoned(offset: usize, len: usize) -> Self {
        Self::new(2 * ALIGNMENT + offset % ALIGNMENT, len, 2 * ALIGNMENT)
    }

    /// `len` bytes whose address is `offset` modulo 16 and behind whose end the allocation ends: a sanitizer sees an access
    /// behind them.
    #[must_use]
    pub fn exact(offset: usize, len: usize) -> Self {
        Self::new(offset % ALIGNMENT, len, 0)
    }

    /// `len` bytes with `lead` bytes before and `tail` behind, from an address that is a multiple of 16.
    #[must_use]
    pub fn new(lead: usize, len: usize, tail: usize) -> Self {
        let layout = Self::layout(lead, len, tail);
        // SAFETY: the layout's size is not 0.
        let base = unsafe { alloc(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        // SAFETY: freshly allocated, `layout.size()` bytes.
        unsafe { base.write_bytes(POISON, layout.size()) };
        Self { base, lead, len, tail }
    }

    fn layout(lead: usize, len: usize, tail: usize) -> Layout {
        Layout::from_size_align((lead + len + tail).max(1), ALIGNMENT).expect("a small size")
    }

    /// A region with these bytes in it.
    #[must_use]
    pub fn filled(mut self, bytes: &[u8]) -> Self {
        self.write(bytes);
        self
    }

    /// Sets everything, inside and around, to poison.
    pub fn clear(&mut self) {
        // SAFETY: the whole allocation, borrowed mutably.
        unsafe { self.base.write_bytes(POISON, self.lead + self.len + self.tail) };
    }

    /// Writes the inside.
    ///
    /// # Panics
    ///
    /// Where the lengths differ.
    pub fn write(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.len);
        // SAFETY: the inside, borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.base.add(self.lead).as_ptr(), self.len) }
            .copy_from_slice(bytes);
    }

    /// The inside. Nobody may write it meanwhile.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the inside, initialised when it was allocated.
        unsafe { slice::from_raw_parts(self.base.add(self.lead).as_ptr(), self.len) }
    }

    /// What lies before the inside and behind it.
    #[must_use]
    pub fn around(&self) -> [&[u8]; 2] {
        // SAFETY: the two rests of the allocation, initialised when it was allocated.
        unsafe {
            let behind = self.base.add(self.lead + self.len);
            [
                slice::from_raw_parts(self.base.as_ptr(), self.lead),
                slice::from_raw_parts(behind.as_ptr(), self.tail),
            ]
        }
    }

    /// Whether all that lies around still is poison.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.around().iter().all(|rest| rest.iter().all(|&byte| byte == POISON))
    }

    /// Where device code finds the inside.
    #[must_use]
    pub fn address(&self) -> Global<u8> {
        // SAFETY: heap memory, which is what the CPU device's global memory is to the code that runs here; no alignment.
        unsafe { Global::from_address(self.base.as_ptr() as u64 + self.lead as u64) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated with this very layout.
        unsafe { dealloc(self.base.as_ptr(), Self::layout(self.lead, self.len, self.tail)) };
    }
}
