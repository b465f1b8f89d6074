//! A ring of triggers from many threads of a device to one consumer, the host: both halves of the protocol.
//!
//! A producer takes the next position from `head`, waits until the ring has room for it, and writes its trigger into the
//! slot with that position (modulo the capacity). The top bit of *each* word of the slot is a mark that changes from lap to
//! lap: 1 in the first, 0 in the second, and so on, so a slot of the lap before, or one half written, is never taken. The
//! consumer looks at the next slot until both words carry this lap's mark, uses the trigger, and then moves `tail`.
//!
//! # Where the words lie
//!
//! Slots and tail lie in the host's memory: a push is one posted write over the bus, and the host polls its own cache.
//! Head and the cached tail lie in the device's: a push reads nothing over the bus as long as the cached tail shows room.
//!
//! # One asks, the others look on
//!
//! Loads of one line over the bus go one after the other, however many threads there are (an H200 does a million of them a
//! second): were each thread that waits to ask the tail, each would wait for all. So whoever finds that the cached tail does not
//! do claims the question, by a word of the device's next to the cache; it asks once, leaves what it saw in the cache, and gives
//! the question back. The others look at the cache meanwhile. A lane that asks does so together with the lanes of its warp that
//! wait with it: that is still one load, and none of them is held up by another way through the code.
//!
//! The claim only saves loads, and orders nothing: were two to ask at once, the tail would be asked twice. It is never held from
//! one look to the next, so whoever gives up, or stands still, keeps nobody from asking.
//!
//! # Ordering
//!
//! A push publishes the pushing thread's writes before it to the consumer that takes its trigger: a fence at system scope, then
//! one 16-byte store, whose words the consumer acquires both. What the consumer did before it moved the tail is visible to a
//! thread whose [`Producer::poll`] or [`Producer::sync`] says so. Positions are taken one by one, so triggers are used in the
//! order in which their positions were taken; two pushes of one thread are in that order.
//!
//! The same fence makes a slot's stores come in the order of their laps. A push reads the cached tail before it, and whoever
//! wrote the cache had acquired the tail and then released the cache, so the consumer's loads of the slot, and through them the
//! store of the lap before, are ordered before the push's store. Who has waited for room has acquired the cache or the tail
//! behind the fence, which does the same. The position is on its way while the fence waits.
//!
//! A plain release store would publish as well, but not order the laps, and its fence could not begin before the position is known.
//!
//! # A push that fails
//!
//! has lost its position: its slot is never written, so the consumer comes no further. The host has to reset the FIFO, with no
//! kernel running, before it is used again. That a wait for room fails at all means that the consumer has stood still for the
//! policy's whole limit, or that the launch was aborted.

use crate::abi::{FifoHandle, Global, Position, Trigger, WaitError, WaitKind, WaitSite};
use crate::arch::{self, AcqRel, Acquire, Gpu, Relaxed, Release, Sys};
use crate::mem::{Mapped, Pairs, Word};
use crate::spin::{self, Patience, reached};

/// The bit that both words of the slot with this position carry once they are written.
#[inline(always)]
const fn mark(position: u64, capacity: u64) -> u64 {
    // The lap's lowest bit is 0 in the first lap, in which memory still holds zeros: the mark is its opposite.
    if position & capacity == 0 { Trigger::MARK } else { 0 }
}

/// The device's half, over words `W` and slots `P`.
#[derive(Clone, Copy, Debug)]
pub struct Producer<W, P> {
    slots: P,
    head: W,
    tail: W,
    tail_cache: W,
    /// Not 0: a thread has claimed the question for the tail.
    asking: W,
    capacity: u64,
    site: WaitSite,
}

/// The device's half over real memory.
pub type DeviceProducer = Producer<Mapped<u64>, Mapped<[u64; 2]>>;

impl DeviceProducer {
    /// The half that `handle` describes.
    ///
    /// # Safety
    ///
    /// The handle's slots and words are mapped to this device and live while this value is used, and only this protocol
    /// touches them.
    #[inline(always)]
    pub unsafe fn new(handle: FifoHandle) -> Self {
        let site = WaitSite { kind: WaitKind::Fifo, peer: handle.rank, channel: handle.id };
        let words = [handle.head, handle.tail, handle.tail_cache, handle.tail_cache.add(1)];
        // SAFETY: the caller's contract; `tail_cache` is two words.
        unsafe {
            Self::over(Mapped::new(handle.slots), words.map(|word| Mapped::new(word)), handle.capacity, site)
        }
    }
}

impl<W: Word<Value = u64>, P: Pairs> Producer<W, P> {
    /// The half over these slots, `capacity` of them, a power of two, and these words: head, tail, cached tail, and whether it is
    /// being asked for (0 at first).
    #[inline(always)]
    pub const fn over(
        slots: P,
        [head, tail, tail_cache, asking]: [W; 4],
        capacity: u64,
        site: WaitSite,
    ) -> Self {
        Self { slots, head, tail, tail_cache, asking, capacity, site }
    }

    /// Pushes a trigger, and publishes the calling thread's writes before it to the consumer. Called by a thread, any number of
    /// them at once. Waits while the ring is full.
    ///
    /// # Errors
    ///
    /// [`WaitError`], with a report on the board; the FIFO has to be reset then (see the module).
    #[inline(always)]
    pub fn push(&self, trigger: Trigger, patience: impl Patience) -> Result<Position, WaitError> {
        let (cached, position) = self.reserve(1);
        self.write(position, cached, trigger, patience)?;
        Ok(Position(position))
    }

    /// As [`Producer::push`], with another trigger right ahead of it where there is one: no other's comes between the two.
    /// The position is that of `trigger`.
    ///
    /// # Errors
    ///
    /// As for [`Producer::push`].
    #[inline(always)]
    pub fn push_behind(
        &self,
        ahead: Option<Trigger>,
        trigger: Trigger,
        patience: impl Patience + Copy,
    ) -> Result<Position, WaitError> {
        let mut left = if ahead.is_some() { 2 } else { 1 };
        let (cached, mut position) = self.reserve(left);
        let mut next = ahead.unwrap_or(trigger);
        loop {
            self.write(position, cached, next, patience)?;
            // Counted so that the compiler makes no second copy of the write for the second trigger.
            left = arch::advance(left, u64::MAX);
            if left == 0 {
                return Ok(Position(position));
            }
            position = position.wrapping_add(1);
            next = trigger;
        }
    }

    /// Takes `count` positions in a row, and publishes the calling thread's writes before to whoever sees its slots written
    /// behind. Gives the cached tail and the first position.
    #[inline(always)]
    fn reserve(&self, count: u64) -> (u64, u64) {
        let cached = self.tail_cache.load::<Relaxed, Gpu>();
        // The fence releases what the thread wrote before, and acquires what the cached tail stands for: see the module.
        let position = self.head.fetch_add_fence::<Relaxed, Gpu, AcqRel, Sys>(count);
        (cached, position)
    }

    /// Writes the slot with a position that is the caller's, when the ring has room for it.
    #[inline(always)]
    fn write(
        &self,
        position: u64,
        cached: u64,
        trigger: Trigger,
        patience: impl Patience,
    ) -> Result<(), WaitError> {
        // The tail that says that the slot's trigger of the lap before has been taken.
        let room = position.wrapping_add(1).wrapping_sub(self.capacity);
        // A lane stores before it waits for others of its warp where their ways meet again: they may wait for its trigger to be
        // taken. Hence a store on each way, and on the second one within the wait.
        let store = || {
            let (mark, [low, high]) = (mark(position, self.capacity), trigger.words());
            let slot = position & (self.capacity - 1);
            self.slots.store::<Relaxed, Sys>(slot, [low | mark, high | mark]);
        };
        if reached(cached, room) {
            store();
            return Ok(());
        }
        self.wait_for_tail(room, cached, store, patience)
    }

    /// Whether the consumer has taken the trigger at `position`, as far as is known here; what it did before is then visible to
    /// the calling thread. Called by a thread. While another thread asks for the tail it says what is known without, so a call
    /// later may say yes where this one could have.
    #[inline(always)]
    pub fn poll(&self, position: Position) -> bool {
        let behind = position.behind();
        let known = self.tail_cache.load::<Acquire, Gpu>();
        reached(known, behind) || reached(self.look(View::at_first(known), behind).tail, behind)
    }

    /// Waits until the consumer has taken the trigger at `position`; what it did before is then visible to the calling thread.
    /// Called by a thread.
    ///
    /// # Errors
    ///
    /// [`WaitError`], with a report on the board; nothing is lost by it.
    #[inline(always)]
    pub fn sync(&self, position: Position, patience: impl Patience) -> Result<(), WaitError> {
        let behind = position.behind();
        // Also where the trigger has just been pushed: a question that leaves right behind it comes to the tail before the
        // consumer has moved that.
        let known = self.tail_cache.load::<Acquire, Gpu>();
        if reached(known, behind) { Ok(()) } else { self.wait_for_tail(behind, known, || (), patience) }
    }

    /// Waits until the tail has come to `expected`, which the cache had not when it held `known`, and then calls `go_on`; what the
    /// consumer did before is visible to it. Called by a thread.
    #[inline(always)]
    fn wait_for_tail(
        &self,
        expected: u64,
        known: u64,
        go_on: impl Fn(),
        patience: impl Patience,
    ) -> Result<(), WaitError> {
        let mut view = View::at_first(known);
        let look = || {
            view = self.look(view, expected);
            if reached(view.tail, expected) {
                go_on();
            }
            // A sum that the compiler does not see through: it would call `go_on` behind the loop.
            arch::advance(view.tail, 0)
        };
        let ready = |seen| reached(seen, expected).then_some(());
        // One look to a turn: none begins before the one before it is judged, so `go_on` is called once.
        spin::wait::<1, _, _, _>(patience, self.site, look, ready, |seen| (expected, seen))
    }

    /// One look of a thread whose last `view` was not enough: it asks if nobody does, and else sees what the cache holds. Called by
    /// a thread.
    #[inline(always)]
    fn look(&self, mut view: View, expected: u64) -> View {
        let lanes = arch::lanes_here();
        let claimed = view.unasked && self.asking.fetch_add::<Relaxed, Gpu>(1) == 0;
        if arch::any_of(lanes, claimed) {
            let tail = self.tail.load::<Acquire, Sys>();
            if tail != view.tail {
                // An older value that another thread stores later only makes somebody look again.
                self.tail_cache.store::<Release, Gpu>(tail);
                view.tail = tail;
            }
        }
        // Within the look: a lane whose wait is over may stand still until those of its warp's other lanes are, and they have to
        // ask.
        if claimed {
            self.asking.store::<Relaxed, Gpu>(0);
        }
        if !reached(view.tail, expected) {
            view.unasked = self.asking.load::<Relaxed, Gpu>() == 0;
            view.tail = self.tail_cache.load::<Acquire, Gpu>();
        }
        view
    }
}

/// What a thread that waits knows of the tail.
#[derive(Clone, Copy)]
struct View {
    /// A tail, acquired; there may be a newer one.
    tail: u64,
    /// Whether nobody seemed to be asking for a newer one.
    unasked: bool,
}

impl View {
    /// Before the first look, which is a question where nobody else asks.
    #[inline(always)]
    const fn at_first(known: u64) -> Self {
        Self { tail: known, unasked: true }
    }
}

/// The host's half, over words `W` and slots `P`. There is one at a time.
#[derive(Debug)]
pub struct Consumer<W, P> {
    slots: P,
    tail: W,
    capacity: u64,
    position: u64,
}

/// The host's half over real memory.
pub type HostConsumer = Consumer<Mapped<u64>, Mapped<[u64; 2]>>;

impl HostConsumer {
    /// The half over these slots, `capacity` of them, a power of two, and this tail, as the calling code reaches them. It goes
    /// on where the last one has stopped.
    ///
    /// # Safety
    ///
    /// Slots and tail are live while this value is used, and touched by this protocol only; no other consumer of them is used
    /// meanwhile.
    pub unsafe fn new(slots: Global<[u64; 2]>, tail: Global<u64>, capacity: u64) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Self::over(Mapped::new(slots), Mapped::new(tail), capacity) }
    }
}

impl<W: Word<Value = u64>, P: Pairs> Consumer<W, P> {
    /// The half over these slots, `capacity` of them, a power of two, and this tail. It goes on where the last one has stopped.
    pub fn over(slots: P, tail: W, capacity: u64) -> Self {
        Self { slots, tail, capacity, position: tail.load::<Relaxed, Sys>() }
    }

    /// The position of the trigger that is next.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position(self.position)
    }

    /// The next trigger, if it has been written; its pusher's writes before it are then visible to the caller. It stays the
    /// next until [`Consumer::take`].
    #[must_use]
    pub fn next(&self) -> Option<Trigger> {
        let words = self.slots.load::<Acquire, Sys>(self.position & (self.capacity - 1));
        let mark = mark(self.position, self.capacity);
        words.iter().all(|word| word & Trigger::MARK == mark).then(|| Trigger::new(words))
    }

    /// Goes on to the next trigger but one, without telling anybody yet: the one that [`Consumer::next`] has given counts as
    /// taken from the next [`Consumer::publish`] on.
    pub fn advance(&mut self) {
        self.position = self.position.wrapping_add(1);
    }

    /// Moves the tail: the slots of all triggers that were passed are free, and whoever waits for their positions sees the
    /// caller's writes before.
    pub fn publish(&mut self) {
        self.tail.store::<Release, Sys>(self.position);
    }

    /// Takes the next trigger, which [`Consumer::next`] has given: the two in one.
    pub fn take(&mut self) {
        self.advance();
        self.publish();
    }
}
