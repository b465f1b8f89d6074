//! The words of one side: the token that signals arrive on, and the count of waits.

use warpwire_device::abi::{ChannelId, Global, InboundHandle, OutboundHandle, Rank, SemaphoreHandle};

use crate::device::{Buffer, Device};
use crate::error::Result;
use crate::memory::{RegisteredMemory, Token, TokenPool, Transports};

/// Where in a buffer of its own a side's words lie, in 8-byte words: the token, which peers write, and the count of waits,
/// which the side itself writes, each on a cache line (128 bytes) of its own.
const TOKEN: u64 = 0;
const EXPECTED: u64 = 16;
const WORDS: usize = 32;

/// One rank's side of a semaphore between devices: the token that the peer signals, and this side's count of waits.
#[derive(Debug)]
pub struct SemaphoreSide {
    words: Words,
}

#[derive(Debug)]
enum Words {
    /// A buffer of the side's own, in this process alone.
    Own(Buffer<u64>),
    /// Slots of a pool, which peers in other processes can map.
    Pooled { token: Token, expected: Token },
}

impl SemaphoreSide {
    /// A side in `device`'s memory that no signal has reached, for peers in this process.
    ///
    /// # Errors
    ///
    /// The allocation's.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { words: Words::Own(device.allocate(WORDS)?) })
    }

    /// A side that no signal has reached, for peers in other processes too: its token in a slot of `tokens`, its count of waits
    /// in one of `counts`. The slots go back to their pools when it is dropped: by then nobody may signal it.
    ///
    /// Two pools, so that the two words lie on different cache lines: a peer adds to the one while this side adds to the other.
    ///
    /// # Errors
    ///
    /// As for [`TokenPool::take`].
    pub fn in_pools(tokens: &TokenPool, counts: &TokenPool) -> Result<Self> {
        Ok(Self { words: Words::Pooled { token: tokens.take()?, expected: counts.take()? } })
    }

    /// The token: what a peer's outbound side adds to.
    #[must_use]
    pub fn token(&self) -> Global<u64> {
        match &self.words {
            Words::Own(words) => words.address().add(TOKEN),
            Words::Pooled { token, .. } => token.address(),
        }
    }

    /// The token as memory that a peer in another process can be told of.
    ///
    /// # Errors
    ///
    /// As for [`RegisteredMemory::of`]; the token of a side that is in no pool cannot be mapped by others.
    pub fn register_token(&self, transports: Transports) -> Result<RegisteredMemory> {
        match &self.words {
            Words::Own(words) => RegisteredMemory::of(&words.part(TOKEN as usize, 1)?, transports),
            Words::Pooled { token, .. } => token.register(transports),
        }
    }

    /// What a kernel waits through for signals of `peer`.
    #[must_use]
    pub fn inbound(&self, peer: Rank, channel: ChannelId) -> InboundHandle {
        let expected = match &self.words {
            Words::Own(words) => words.address().add(EXPECTED),
            Words::Pooled { expected, .. } => expected.address(),
        };
        InboundHandle { token: self.token(), expected, peer, channel }
    }

    /// What a kernel of this side needs: waits on this side's token, signals the peer's at `peer_token`, mapped here.
    #[must_use]
    pub fn handle(&self, peer_token: Global<u64>, peer: Rank, channel: ChannelId) -> SemaphoreHandle {
        SemaphoreHandle {
            inbound: self.inbound(peer, channel),
            outbound: OutboundHandle { token: peer_token },
        }
    }

    /// Forgets all signals and waits. Both ranks have to do so, with no kernel running, or the two sides' counts part.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn reset(&self) -> Result<()> {
        match &self.words {
            Words::Own(words) => words.fill_bytes(0),
            Words::Pooled { token, expected } => token.reset().and_then(|()| expected.reset()),
        }
    }

    /// Gives its slots up: for those that somebody may still signal. They are not handed out again.
    pub(super) fn retire(&self) {
        if let Words::Pooled { token, expected } = &self.words {
            token.retire();
            expected.retire();
        }
    }
}
