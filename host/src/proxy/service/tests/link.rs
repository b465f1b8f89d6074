//! A connection within the process that does what is asked of it at once, and can be told to stall or to fail.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use warpwire_device::abi::Rank;

use crate::connection::{Link, Mark, Place, Transport};
use crate::error::{ConnectionError, Error, Result};

#[derive(Debug)]
pub(super) struct LocalLink {
    peer: Rank,
    transport: Transport,
    marks: AtomicU64,
    completed: AtomicU64,
    /// Completes nothing, as long as it is set.
    pub(super) stalled: AtomicBool,
    /// Fails every call, as long as it is set.
    pub(super) broken: AtomicBool,
    /// Copies that were asked for.
    pub(super) writes: AtomicU64,
    /// Threads that it says its copies need.
    room: u32,
}

impl LocalLink {
    pub(super) fn new(peer: Rank, transport: Transport) -> Self {
        Self {
            peer,
            transport,
            marks: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            stalled: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            writes: AtomicU64::new(0),
            room: 0,
        }
    }

    /// With copies that need room for so many threads.
    pub(super) fn with_room(self, room: u32) -> Self {
        Self { room, ..self }
    }

    /// Marks that were taken.
    pub(super) fn marks(&self) -> u64 {
        self.marks.load(Ordering::Relaxed)
    }

    fn address(&self, place: &Place<'_>) -> Result<u64> {
        if self.broken.load(Ordering::Relaxed) {
            let reason = "it was told to".to_owned();
            let transport = self.transport().name();
            return Err(ConnectionError::Failed { peer: self.peer, transport, reason }.into());
        }
        let here = place.memory.address().ok_or(Error::EmptyAllocation)?;
        Ok(here.byte_add(place.offset).address())
    }
}

impl Link for LocalLink {
    fn transport(&self) -> Transport {
        self.transport
    }

    fn peer(&self) -> Rank {
        self.peer
    }

    fn room(&self) -> u32 {
        self.room
    }

    fn write(&self, destination: Place<'_>, source: Place<'_>, bytes: u64) -> Result<()> {
        let (to, from) = (self.address(&destination)?, self.address(&source)?);
        self.writes.fetch_add(1, Ordering::Relaxed);
        // SAFETY: both ranges lie in their memories, which the caller has checked; the tests' kernels touch neither between a
        // put and its completion.
        unsafe { ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes as usize) };
        Ok(())
    }

    fn update(&self, word: Place<'_>, value: u64) -> Result<()> {
        let at = self.address(&word)?;
        // SAFETY: an aligned word of its memory, touched by atomics only.
        unsafe { AtomicU64::from_ptr(at as *mut u64) }.store(value, Ordering::Release);
        Ok(())
    }

    fn mark(&self) -> Result<Mark> {
        Ok(Mark(self.marks.fetch_add(1, Ordering::Relaxed) + 1))
    }

    fn completed(&self) -> Result<Mark> {
        if !self.stalled.load(Ordering::Relaxed) {
            self.completed.store(self.marks.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        Ok(Mark(self.completed.load(Ordering::Relaxed)))
    }

    fn close(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }
}
