//! A page of registered memory of an end's own.
//!
//! ```text
//! 0    8   greeting: the peer sets it to 1 when it can be spoken to
//! 64   8   credits: how many receives the peer has posted again since the beginning
//! 128  8   where fetch-and-add leaves the old value, which nobody reads
//! 192  24  each: messages, one for each receive
//! ```

use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::verbs::{Adapter, Local, Placement, Region, Remote, Source};

const GREETING: u64 = 0;
const CREDITS: u64 = 64;
const OLD: u64 = 128;
const MESSAGES: u64 = 192;
/// Bytes of a message: what `Work::Send` carries.
pub(super) const MESSAGE_BYTES: u32 = 24;

/// The page, or pages where there are many receives.
#[derive(Debug)]
pub(super) struct Scratch {
    region: Arc<Region>,
    pages: Arc<Pages>,
}

impl Scratch {
    /// Zeroed and registered, with room for so many messages.
    pub(super) fn new(adapter: &Adapter, messages: u32) -> Result<Self> {
        let bytes = MESSAGES + u64::from(messages) * u64::from(MESSAGE_BYTES);
        let pages = Arc::new(Pages::new(bytes)?);
        let none = |_, _| Err(crate::error::VerbsError::NoAdapter.into());
        let source = Source { address: pages.address(), bytes, placement: Placement::Host, dma_buf: &none };
        let keeper = Arc::clone(&pages);
        // SAFETY: the pages stay as long as the keeper is kept.
        let region = unsafe { Region::register(adapter.domain(), &source, keeper) }?;
        Ok(Self { region, pages })
    }

    /// What the peer is told: where it is, and its key.
    pub(super) fn place(&self) -> (u64, u32) {
        (self.pages.address(), self.region.remote_key())
    }

    /// Whether the peer has said that it can be spoken to.
    pub(super) fn is_greeted(&self) -> bool {
        self.word(GREETING).load(Ordering::Acquire) != 0
    }

    /// How many receives the peer has posted again.
    pub(super) fn credits(&self) -> u64 {
        self.word(CREDITS).load(Ordering::Acquire)
    }

    /// Where old values go.
    pub(super) fn old(&self) -> Local {
        Local { address: self.pages.address() + OLD, bytes: 8, key: self.region.local_key() }
    }

    /// Where message `index` goes: its address, and the key of it.
    pub(super) fn message_place(&self, index: u64) -> (u64, u32) {
        (self.pages.address() + MESSAGES + index * u64::from(MESSAGE_BYTES), self.region.local_key())
    }

    /// A message that has arrived.
    pub(super) fn message(&self, index: u64) -> [u64; 3] {
        [0, 8, 16]
            .map(|part| self.word(MESSAGES + index * u64::from(MESSAGE_BYTES) + part).load(Ordering::Acquire))
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        self.pages.word(offset)
    }
}

/// Where a peer's greeting goes.
pub(super) fn greeting_of((address, key): (u64, u32)) -> Remote {
    Remote { address: address + GREETING, key }
}

/// Where a peer's credits go.
pub(super) fn credits_of((address, key): (u64, u32)) -> Remote {
    Remote { address: address + CREDITS, key }
}

/// Whole zeroed pages.
#[derive(Debug)]
struct Pages {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: plain memory, touched by atomics alone, freed once.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    fn new(bytes: u64) -> Result<Self> {
        let full = || Error::OutOfMemory { device: "the host".to_owned(), bytes, detail: String::new() };
        let page = rustix::param::page_size();
        let length = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_next_multiple_of(page));
        let layout = Layout::from_size_align(length.ok_or_else(full)?, page).map_err(|_| full())?;
        // SAFETY: the layout is not empty: a message area begins after the words.
        let base = unsafe { alloc::alloc_zeroed(layout) };
        Ok(Self { base: NonNull::new(base).ok_or_else(full)?, layout })
    }

    fn address(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        let offset = (offset as usize).min(self.layout.size() - size_of::<u64>()) & !7;
        // SAFETY: inside the pages, aligned to 8, live as long as `self`; everybody else that touches it is an adapter.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, freed only here.
        unsafe { alloc::dealloc(self.base.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zeroed_and_whole() {
        let pages = Pages::new(MESSAGES + 24 * 1000).unwrap();
        assert!(pages.address().is_multiple_of(4096) && pages.layout.size().is_multiple_of(4096));
        assert_eq!(pages.word(MESSAGES + 24 * 999).load(Ordering::Relaxed), 0);
        pages.word(CREDITS).store(7, Ordering::Relaxed);
        assert_eq!(pages.word(GREETING).load(Ordering::Relaxed), 0);
        assert_eq!(pages.word(CREDITS).load(Ordering::Relaxed), 7);
    }
}
