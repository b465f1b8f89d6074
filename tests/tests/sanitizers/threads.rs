//! Threads, and the words that they meet over.

use std::thread;

use warpwire_device::abi::{ChannelId, Global, InboundHandle, OutboundHandle, Rank};
use warpwire_device::mem::{Element, Mapped};
use warpwire_device::semaphore::{Inbound, Outbound};
use warpwire_tests::region::Region;

/// Runs `own` here and each of `others` on a thread of its own, and joins them: the join is what orders their accesses before
/// those that follow here, also for ThreadSanitizer, which does not see how a scope waits.
pub fn together<F: FnOnce() + Send>(others: impl IntoIterator<Item = F>, own: impl FnOnce()) {
    thread::scope(|scope| {
        let others: Vec<_> = others.into_iter().map(|other| scope.spawn(other)).collect();
        own();
        others.into_iter().for_each(|other| other.join().expect("the other thread's checks hold"));
    });
}

/// Rounds of a protocol: enough for two threads to meet in every way that a small machine gives.
pub const ROUNDS: u64 = 5000;

/// Zeroed 64-bit words, each on a cache line of its own.
pub struct Words(Region);

impl Words {
    pub fn new(count: usize) -> Self {
        Self(Region::poisoned(0, count * 64).filled(&vec![0; count * 64]))
    }

    pub fn at<T>(&self, index: u64) -> Global<T> {
        self.0.address().byte_add(index * 64).cast()
    }

    /// The two sides of a semaphore over words `index` and the next.
    pub fn semaphore(&self, index: u64) -> (Outbound<Mapped<u64>>, Inbound<Mapped<u64>>) {
        let (token, expected) = (self.at(index), self.at(index + 1));
        let inbound = InboundHandle { token, expected, peer: Rank(1), channel: ChannelId(index as u32) };
        // SAFETY: zeroed words, aligned, that outlive the threads of each test.
        unsafe { (Outbound::new(OutboundHandle { token }), Inbound::new(inbound)) }
    }
}

pub fn store(at: Global<u64>, value: u64) {
    // SAFETY: a word of `Words`; that nobody else touches it now is what the tests are about.
    unsafe { u64::store_weak(at, value) };
}

pub fn load(at: Global<u64>) -> u64 {
    // SAFETY: as above.
    unsafe { u64::load_weak(at) }
}
