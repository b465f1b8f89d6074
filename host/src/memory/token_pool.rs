//! Slots for semaphores' counts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpwire_device::abi::Global;

use super::registered::{RegisteredMemory, Transports};
use crate::device::{Buffer, Device};
use crate::error::{Error, Result};

/// Slots of a block where nothing else is asked for: 32 KiB.
const BLOCK_SLOTS: usize = 4096;

/// 8-byte slots in a device's memory, for semaphores' counts. Each begins at 0, whatever its former owner has left in it;
/// other processes can map them. The pool grows by blocks when all slots are taken, and keeps its blocks.
///
/// A cheap clone; any thread may take and drop tokens.
#[derive(Clone, Debug)]
pub struct TokenPool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    block_slots: usize,
    blocks: Mutex<Vec<Arc<Block>>>,
}

impl TokenPool {
    /// An empty pool.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        Self::with_block_slots(device, BLOCK_SLOTS)
    }

    /// An empty pool that grows by blocks of `slots` slots, at least 1.
    #[must_use]
    pub fn with_block_slots(device: &Device, slots: usize) -> Self {
        let (device, block_slots) = (device.clone(), slots.max(1));
        Self { inner: Arc::new(Inner { device, block_slots, blocks: Mutex::default() }) }
    }

    /// The device that the slots are in.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// A slot that holds 0, for as long as the token is kept.
    ///
    /// # Errors
    ///
    /// Where the pool has to grow, those of [`Device::allocate_shareable`]: [`Error::OutOfMemory`] when the device is full.
    pub fn take(&self) -> Result<Token> {
        let mut blocks = self.inner.lock();
        if let Some(token) = blocks.iter().find_map(Block::take) {
            return Ok(token);
        }
        let block = Arc::new(Block::new(&self.inner.device, self.inner.block_slots)?);
        let token = Block::take(&block).ok_or(Error::EmptyAllocation)?;
        blocks.push(block);
        Ok(token)
    }

    /// Slots that the pool has so far, taken or free.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.inner.lock().len() * self.inner.block_slots
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Block>>> {
        // The one change is a push: a panic elsewhere leaves the list whole.
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Slots that were allocated together.
#[derive(Debug)]
struct Block {
    words: Buffer<u64>,
    /// A bit for each slot: 1 where it is taken.
    taken: Mutex<Vec<u64>>,
}

impl Block {
    fn new(device: &Device, slots: usize) -> Result<Self> {
        let mut taken = vec![0u64; slots.div_ceil(64)];
        if let Some(last) = taken.last_mut() {
            // Slots that a whole word would have beyond the last.
            *last = u64::MAX.checked_shl((slots - 1) as u32 % 64 + 1).unwrap_or(0);
        }
        Ok(Self { words: device.allocate_shareable(slots)?, taken: Mutex::new(taken) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        // Each change is of one bit: a panic elsewhere leaves the map whole.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>) -> Option<Token> {
        let mut taken = self.lock();
        let (at, word) = taken.iter_mut().enumerate().find(|(_, word)| **word != u64::MAX)?;
        let bit = word.trailing_ones();
        *word |= 1 << bit;
        Some(Token { block: Arc::clone(self), slot: at * 64 + bit as usize, retired: AtomicBool::new(false) })
    }
}

/// A slot, handed back on drop. By then nobody may signal it any more: a signal that comes later counts for the next owner.
#[derive(Debug)]
pub struct Token {
    block: Arc<Block>,
    slot: usize,
    /// Whether the slot is given up.
    retired: AtomicBool,
}

impl Token {
    /// Where the device finds the slot.
    #[must_use]
    pub fn address(&self) -> Global<u64> {
        self.block.words.address().add(self.slot as u64)
    }

    /// What it holds.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn read(&self) -> Result<u64> {
        let mut value = [0];
        self.block.words.read_at(self.slot, &mut value)?;
        Ok(value[0])
    }

    /// Sets it to 0, while nobody signals it or waits on it.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn reset(&self) -> Result<()> {
        self.block.words.write_at(self.slot, &[0])
    }

    /// The slot as memory that a peer can be told of. All tokens of a block are in one allocation, which a peer maps once.
    ///
    /// # Errors
    ///
    /// As for [`RegisteredMemory::of`].
    pub fn register(&self, transports: Transports) -> Result<RegisteredMemory> {
        RegisteredMemory::of(&self.block.words.part(self.slot, 1)?, transports)
    }

    /// Gives the slot up: for one that somebody may still signal when the token is dropped. The pool does not hand it out
    /// again.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if *self.retired.get_mut() {
            return;
        }
        // Zeroed before it is free: from then on another thread may have it.
        match self.reset() {
            Ok(()) => self.block.lock()[self.slot / 64] &= !(1 << (self.slot % 64)),
            // A slot that may not be 0 is lost rather than handed out.
            Err(error) => {
                tracing::warn!(%error, slot = self.slot, "zeroing a token failed: its slot is given up")
            }
        }
    }
}
