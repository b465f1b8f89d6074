//! The model's memory: words for the protocols, payloads that they publish, and how the waits are bounded.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;

use warpwire_device::abi::{WaitError, WaitSite};
use warpwire_device::arch::{
    FenceKind, FenceOrder, LoadKind, LoadOrder, RmwKind, RmwOrder, Scope, StoreKind, StoreOrder,
};
use warpwire_device::mem::{Pairs, Word};
use warpwire_device::spin::Patience;

/// A word of the model's memory.
pub struct LoomWord<A: 'static>(&'static A);

impl<A> Clone for LoomWord<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for LoomWord<A> {}

macro_rules! loom_word {
    ($Atomic:ty: $t:ty) => {
        impl LoomWord<$Atomic> {
            /// Made inside the model: loom ties an atomic to the execution that makes it. Leaked, since a word of global memory
            /// has no owner either; a few bytes an execution.
            pub fn new(value: $t) -> Self {
                Self(Box::leak(Box::new(<$Atomic>::new(value))))
            }

            /// The value when all others have ended.
            pub fn last(self) -> $t {
                self.0.load(Ordering::Relaxed)
            }
        }

        impl Word for LoomWord<$Atomic> {
            type Value = $t;

            fn load<O: LoadOrder, S: Scope>(self) -> $t {
                self.0.load(load_ordering::<O>())
            }

            fn store<O: StoreOrder, S: Scope>(self, value: $t) {
                self.0.store(value, store_ordering::<O>());
            }

            fn add<O: StoreOrder, S: Scope>(self, value: $t) {
                self.0.fetch_add(value, store_ordering::<O>());
            }

            fn fetch_add<O: RmwOrder, S: Scope>(self, value: $t) -> $t {
                self.0.fetch_add(
                    value,
                    match O::KIND {
                        RmwKind::Relaxed => Ordering::Relaxed,
                        RmwKind::Acquire => Ordering::Acquire,
                        RmwKind::Release => Ordering::Release,
                        RmwKind::AcqRel => Ordering::AcqRel,
                    },
                )
            }

            fn fence<O: FenceOrder, S: Scope>() {
                fence(match O::KIND {
                    FenceKind::AcqRel => Ordering::AcqRel,
                    FenceKind::SeqCst => Ordering::SeqCst,
                });
            }
        }
    };
}

pub fn load_ordering<O: LoadOrder>() -> Ordering {
    match O::KIND {
        LoadKind::Relaxed => Ordering::Relaxed,
        LoadKind::Acquire => Ordering::Acquire,
    }
}

pub fn store_ordering<O: StoreOrder>() -> Ordering {
    match O::KIND {
        StoreKind::Relaxed => Ordering::Relaxed,
        StoreKind::Release => Ordering::Release,
    }
}

loom_word!(AtomicU32: u32);
loom_word!(AtomicU64: u64);

pub type Token = LoomWord<AtomicU64>;

/// Pairs of the model's words. A store writes the high word first and a load reads it first, so that either word may be seen
/// without the other.
#[derive(Clone, Copy)]
pub struct LoomPairs(&'static [[AtomicU64; 2]]);

impl LoomPairs {
    /// `count` pairs whose words hold `value`, leaked like the words.
    pub fn new(count: usize, value: u64) -> Self {
        let pair = || [AtomicU64::new(value), AtomicU64::new(value)];
        Self(Box::leak((0..count).map(|_| pair()).collect()))
    }
}

impl Pairs for LoomPairs {
    fn load<O: LoadOrder, S: Scope>(self, index: u64) -> [u64; 2] {
        let [low, high] = &self.0[index as usize];
        let high = high.load(load_ordering::<O>());
        [low.load(load_ordering::<O>()), high]
    }

    fn store<O: StoreOrder, S: Scope>(self, index: u64, value: [u64; 2]) {
        let [low, high] = &self.0[index as usize];
        high.store(value[1], store_ordering::<O>());
        low.store(value[0], store_ordering::<O>());
    }
}

/// Waits as long as it takes. Every vain look lets another thread of the model run, so a loop ends.
#[derive(Clone, Copy)]
pub struct Endless;

impl Patience for Endless {
    const LOOKS: u32 = 1;

    fn exhausted(&mut self) -> bool {
        thread::yield_now();
        false
    }

    fn report(&self, _: WaitSite, _: u64, _: u64) -> WaitError {
        unreachable!("an endless wait does not fail");
    }
}

/// Gives up after so many vain looks, at least 1.
#[derive(Clone, Copy)]
pub struct Looks(pub u32);

impl Patience for Looks {
    const LOOKS: u32 = 1;

    fn exhausted(&mut self) -> bool {
        thread::yield_now();
        self.0 -= 1;
        self.0 == 0
    }

    fn report(&self, _: WaitSite, expected: u64, seen: u64) -> WaitError {
        assert_ne!(expected, seen, "a wait that had what it waited for failed");
        WaitError::Timeout
    }
}

/// Memory that no protocol word guards by itself: loom fails the model where two accesses race. Leaked, as the words are.
#[derive(Clone, Copy)]
pub struct Payload(&'static UnsafeCell<u64>);

// SAFETY: loom reports a race instead of letting it happen.
unsafe impl Send for Payload {}

impl Payload {
    pub fn new() -> Self {
        Self(Box::leak(Box::new(UnsafeCell::new(0))))
    }

    pub fn write(self, value: u64) {
        // SAFETY: loom checks that no other access is concurrent, which is what the model is about.
        self.0.with_mut(|at| unsafe { *at = value });
    }

    pub fn read(self) -> u64 {
        // SAFETY: as above.
        self.0.with(|at| unsafe { *at })
    }
}

/// Preemptions of an execution, where a test does not say otherwise.
pub const PREEMPTIONS: usize = 3;

/// Runs `model` in every interleaving with at most [`PREEMPTIONS`].
pub fn check(model: impl Fn() + Sync + Send + 'static) {
    check_within(PREEMPTIONS, model);
}

fn check_within(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// As [`check`] with at most `preemptions`, and gives how many executions said that they were complete.
pub fn check_counting(preemptions: usize, model: impl Fn() -> bool + Sync + Send + 'static) -> usize {
    // Not loom's: it counts across executions.
    let complete = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&complete);
    check_within(preemptions, move || {
        if model() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    complete.load(Ordering::Relaxed)
}
