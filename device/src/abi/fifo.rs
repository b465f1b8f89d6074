//! What device and host share of a FIFO.

use super::{ChannelId, Global, Rank};

/// What a kernel tells the host: two words of 63 bits. The top bit of each belongs to the FIFO, which marks with it that the
/// word has been written in this lap.
///
/// Any 63 bits may stand in either word, zeros among them.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    words: [u64; 2],
}

impl Trigger {
    /// The bit of each word that the FIFO takes for itself.
    pub const MARK: u64 = 1 << 63;

    /// A trigger of these two words, without their top bits.
    #[inline(always)]
    #[must_use]
    pub const fn new(words: [u64; 2]) -> Self {
        Self { words: [words[0] & !Self::MARK, words[1] & !Self::MARK] }
    }

    /// The two words; their top bits are 0.
    #[inline(always)]
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        self.words
    }
}

/// A trigger's number in its FIFO: 0 for the first, one more for each, for ever. It may wrap.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position(pub u64);

impl Position {
    /// What the tail stands at when the trigger with this number has been taken.
    #[inline(always)]
    #[must_use]
    pub const fn behind(self) -> u64 {
        self.0.wrapping_add(1)
    }
}

/// A FIFO's memory, as one of its sides reaches it: the device's addresses in a handle for kernels, the host's in one for the
/// consumer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FifoHandle {
    /// `capacity` triggers in the consumer's memory (the host's), zeroed at first, aligned to 16.
    pub slots: Global<[u64; 2]>,
    /// The next position to be taken by a producer: the producers' memory.
    pub head: Global<u64>,
    /// The next position that the consumer takes: the consumer's memory, which it alone writes.
    pub tail: Global<u64>,
    /// Two words of the producers' memory, zeroed at first: what a producer last saw at the tail, never past it; and, not 0,
    /// that one is asking for the tail.
    pub tail_cache: Global<u64>,
    /// Slots: a power of two.
    pub capacity: u64,
    /// Whose host consumes it: what reports name as the rank that was waited for.
    pub rank: Rank,
    /// The FIFO's number there, for reports.
    pub id: ChannelId,
}
