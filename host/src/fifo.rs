//! The memory of a FIFO, and its one consumer. The protocol is [`warpwire_device::fifo`]'s.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use warpwire_device::abi::{ChannelId, FifoHandle, Global, Position, Rank, Trigger};
use warpwire_device::fifo::HostConsumer;

use crate::device::{Buffer, Device, HostBuffer};
use crate::error::{ProxyError, Result};

/// The most slots of a ring: 16 MiB of pinned memory.
const MOST_SLOTS: usize = 1 << 20;

/// Where in the device's words the head and the cached tail lie, in 8-byte words: each on a cache line (128 bytes) of its own. The
/// word behind the cached tail belongs to it.
const HEAD: u64 = 0;
const TAIL_CACHE: u64 = 16;
const WORDS: usize = 32;

/// A ring of triggers from a device's kernels to the host.
///
/// Slots and tail lie in pinned host memory, where the host polls them; head and cached tail in the device's.
#[derive(Debug)]
pub struct Fifo {
    slots: HostBuffer<[u64; 2]>,
    tail: HostBuffer<u64>,
    words: Buffer<u64>,
    consumed: AtomicBool,
}

impl Fifo {
    /// An empty ring of `capacity` slots for `device`'s kernels.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Capacity`] where that is no power of two or too many; the allocations'.
    pub fn new(device: &Device, capacity: usize) -> Result<Self> {
        if !capacity.is_power_of_two() || capacity > MOST_SLOTS {
            return Err(ProxyError::Capacity { asked: capacity, most: MOST_SLOTS }.into());
        }
        Ok(Self {
            slots: device.allocate_host(capacity)?,
            // A line to itself, whatever the allocator puts behind it.
            tail: device.allocate_host(WORDS)?,
            words: device.allocate(WORDS)?,
            consumed: AtomicBool::new(false),
        })
    }

    /// Slots.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// What a kernel pushes through; reports name `rank`, whose host consumes it, and `id`.
    #[must_use]
    pub fn handle(&self, rank: Rank, id: ChannelId) -> FifoHandle {
        FifoHandle {
            slots: self.slots.address(),
            head: self.words.address().add(HEAD),
            tail: self.tail.address(),
            tail_cache: self.words.address().add(TAIL_CACHE),
            capacity: self.capacity() as u64,
            rank,
            id,
        }
    }

    /// The consumer, which goes on where the last one has stopped.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Consumed`] while there is another.
    pub fn consumer(self: &Arc<Self>) -> Result<FifoConsumer> {
        self.claim("consume the FIFO")?;
        // SAFETY: pinned host memory at the host's own addresses, aligned by the allocation.
        let (slots, tail) = unsafe {
            (
                Global::from_address(self.slots.as_ptr() as u64),
                Global::from_address(self.tail.as_ptr() as u64),
            )
        };
        // SAFETY: the consumer keeps this ring, so its memory is live; `claim` has made it the only one; kernels touch the
        // memory by the protocol, as each launch's contract has it.
        let half = unsafe { HostConsumer::new(slots, tail, self.capacity() as u64) };
        Ok(FifoConsumer { half, fifo: Arc::clone(self), seen: false, unpublished: 0 })
    }

    /// Forgets every trigger, and positions that a failed push has left without one. No kernel that pushes may be running.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Consumed`] while there is a consumer; the driver's.
    pub fn reset(&self) -> Result<()> {
        self.claim("reset the FIFO")?;
        let cleared = self.slots.fill_bytes(0).and_then(|()| self.words.fill_bytes(0));
        // SAFETY: the host's view of the word, which is aligned and live as long as `self`.
        unsafe { AtomicU64::from_ptr(self.tail.as_ptr()) }.store(0, Ordering::Release);
        self.release();
        cleared
    }

    fn claim(&self, operation: &'static str) -> Result<()> {
        match self.consumed.swap(true, Ordering::AcqRel) {
            false => Ok(()),
            true => Err(ProxyError::Consumed { operation }.into()),
        }
    }

    fn release(&self) {
        self.consumed.store(false, Ordering::Release);
    }
}

/// A ring's one consumer. Any thread may own it.
#[derive(Debug)]
pub struct FifoConsumer {
    half: HostConsumer,
    fifo: Arc<Fifo>,
    /// Whether the next trigger was seen to be there.
    seen: bool,
    /// Triggers passed since the tail was last moved.
    unpublished: usize,
}

impl FifoConsumer {
    /// Slots of the ring.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.fifo.capacity()
    }

    /// The position of the trigger that is next.
    #[must_use]
    pub fn position(&self) -> Position {
        self.half.position()
    }

    /// The next trigger, if it has been pushed; its pusher's writes before it are then visible. It stays the next until
    /// [`FifoConsumer::take`].
    #[must_use]
    pub fn peek(&mut self) -> Option<Trigger> {
        let next = self.half.next();
        self.seen = next.is_some();
        next
    }

    /// Takes the next trigger, which [`FifoConsumer::peek`] has given: its slot is free, and whoever waits for its position
    /// sees this thread's writes before. Where `peek` has given none it does nothing.
    pub fn take(&mut self) {
        self.pass();
        self.publish();
    }

    /// As [`FifoConsumer::take`], told to nobody before [`FifoConsumer::publish`]. Gives how many are to be told.
    pub(crate) fn pass(&mut self) -> usize {
        if std::mem::take(&mut self.seen) {
            self.half.advance();
            self.unpublished += 1;
        }
        self.unpublished
    }

    /// Tells of every trigger that was passed.
    pub(crate) fn publish(&mut self) {
        if self.unpublished > 0 {
            self.half.publish();
            self.unpublished = 0;
        }
    }
}

impl Drop for FifoConsumer {
    fn drop(&mut self) {
        self.publish();
        self.fifo.release();
    }
}
