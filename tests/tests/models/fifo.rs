//! FIFOs: both halves, with the ring as short as it can be.

use loom::sync::atomic::{Ordering, fence};
use loom::thread;

use warpwire_device::abi::{ChannelId, Position, Rank, Trigger, WaitError, WaitKind, WaitSite};
use warpwire_device::arch::{FenceOrder, LoadOrder, Relaxed, RmwOrder, Scope, StoreOrder, Sys};
use warpwire_device::fifo::{Consumer, Producer};
use warpwire_device::mem::{Pairs, Word};

use super::memory::{Endless, Looks, LoomPairs, Payload, Token, check, check_counting};

const SITE: WaitSite = WaitSite { kind: WaitKind::Fifo, peer: Rank(0), channel: ChannelId(0) };

/// The halves of a FIFO of `capacity` slots that is about to take position `start`.
fn halves(capacity: usize, start: u64) -> (Producer<Token, LoomPairs>, Consumer<Token, LoomPairs>) {
    // What the lap before has left: the other mark.
    let stale = if start & capacity as u64 == 0 { 0 } else { Trigger::MARK };
    let slots = LoomPairs::new(capacity, stale);
    let words = [Token::new(start), Token::new(start), Token::new(start), Token::new(0)];
    (Producer::over(slots, words, capacity as u64, SITE), Consumer::over(slots, words[1], capacity as u64))
}

fn trigger(low: u64, high: u64) -> Trigger {
    Trigger::new([low, high])
}

/// The next trigger, however long it takes.
fn next<W: Word<Value = u64>, P: Pairs>(consumer: &Consumer<W, P>) -> Trigger {
    loop {
        match consumer.next() {
            Some(trigger) => return trigger,
            None => thread::yield_now(),
        }
    }
}

#[test]
fn a_push_publishes_what_was_written_before() {
    check(|| {
        let (producer, mut consumer) = halves(1, 0);
        let payload = Payload::new();
        let pusher = thread::spawn(move || {
            payload.write(7);
            producer.push(trigger(1, 2), Endless).unwrap()
        });
        assert_eq!(next(&consumer), trigger(1, 2));
        assert_eq!(payload.read(), 7);
        consumer.take();
        assert_eq!(consumer.next(), None);
        assert_eq!(pusher.join().unwrap(), Position(0));
    });
}

/// C05: zeros are as good as any other trigger.
#[test]
fn a_trigger_of_zeros_is_seen() {
    check(|| {
        let (producer, mut consumer) = halves(2, 0);
        let all = [trigger(0, 0), trigger(0, 1), trigger(1, 0)];
        let pusher = thread::spawn(move || {
            for trigger in all {
                producer.push(trigger, Endless).unwrap();
            }
        });
        for trigger in all {
            assert_eq!(next(&consumer), trigger);
            consumer.take();
        }
        assert_eq!(consumer.next(), None);
        pusher.join().unwrap();
    });
}

#[test]
fn a_full_ring_makes_the_pusher_wait_and_overwrites_nothing() {
    // Over the wrap of the positions too.
    for start in [0, u64::MAX - 1] {
        check(move || {
            let (producer, mut consumer) = halves(1, start);
            let payloads = [Payload::new(), Payload::new(), Payload::new()];
            let pusher = thread::spawn(move || {
                for (i, payload) in payloads.into_iter().enumerate() {
                    payload.write(i as u64 + 10);
                    let position = producer.push(trigger(i as u64, !0), Endless).unwrap();
                    assert_eq!(position, Position(start.wrapping_add(i as u64)));
                }
            });
            for (i, payload) in payloads.into_iter().enumerate() {
                assert_eq!(next(&consumer), trigger(i as u64, !0));
                assert_eq!(payload.read(), i as u64 + 10);
                consumer.take();
            }
            assert_eq!(consumer.next(), None);
            pusher.join().unwrap();
        });
    }
}

/// Two producers share two slots, so each comes to a full ring and to a new lap. Each gives up after a few looks; then what it
/// would have pushed, and what came behind, is missing, and nothing else.
#[test]
fn two_producers_lose_nothing() {
    // Two preemptions: three take minutes. This is about the counting; orders are the other models' business.
    let complete = check_counting(2, || {
        let (producer, mut consumer) = halves(2, 0);
        let pushers = [0, 1].map(|who| {
            thread::spawn(move || {
                let push = |i| producer.push(trigger(who, i), Looks(3));
                push(0).is_ok() && push(1).is_ok()
            })
        });
        let (mut came, mut vain) = ([0, 0], 0);
        while came != [2, 2] && vain < 4 {
            let Some(taken) = consumer.next() else {
                vain += 1;
                thread::yield_now();
                continue;
            };
            let [who, i] = taken.words();
            assert_eq!(i, came[who as usize], "producer {who}'s triggers came twice or out of order");
            came[who as usize] += 1;
            consumer.take();
        }
        let all = pushers.map(|pusher| pusher.join().unwrap()) == [true, true];
        if all {
            while let Some(taken) = consumer.next() {
                came[taken.words()[0] as usize] += 1;
                consumer.take();
            }
            assert_eq!(came, [2, 2], "a trigger was lost");
        }
        all
    });
    assert!(complete > 0);
}

/// No other producer's trigger comes between two that were pushed as one.
#[test]
fn two_pushed_as_one_stay_together() {
    check(|| {
        let (producer, mut consumer) = halves(4, 0);
        let pusher = thread::spawn(move || {
            let position = producer.push_behind(Some(trigger(1, 0)), trigger(2, 0), Endless).unwrap();
            assert!(position.0 == 1 || position.0 == 2);
        });
        producer.push(trigger(9, 0), Endless).unwrap();
        let mut order = Vec::new();
        for _ in 0..3 {
            order.push(next(&consumer).words()[0]);
            consumer.take();
        }
        assert!(order == [1, 2, 9] || order == [9, 1, 2], "{order:?}");
        pusher.join().unwrap();
    });
}

/// One that needs two slots of a ring that has one.
#[test]
fn two_pushed_as_one_fit_any_ring() {
    check(|| {
        let (producer, mut consumer) = halves(1, 0);
        let pusher =
            thread::spawn(move || producer.push_behind(Some(trigger(1, 0)), trigger(2, 0), Endless).unwrap());
        for expected in [1, 2] {
            assert_eq!(next(&consumer).words()[0], expected);
            consumer.take();
        }
        assert_eq!(pusher.join().unwrap(), Position(1));
    });
}

#[test]
fn a_sync_sees_what_the_consumer_did() {
    check(|| {
        let (producer, mut consumer) = halves(2, 0);
        let payload = Payload::new();
        let pusher = thread::spawn(move || {
            let position = producer.push(trigger(1, 1), Endless).unwrap();
            if producer.poll(position) {
                assert_eq!(payload.read(), 7);
            }
            producer.sync(position, Endless).unwrap();
            assert!(producer.poll(position));
            payload.read()
        });
        next(&consumer);
        payload.write(7);
        consumer.take();
        assert_eq!(pusher.join().unwrap(), 7);
    });
}

/// Two threads wait for one tail: one asks, and the other sees in the cache what the first has left there, and what the consumer
/// did before.
fn two_that_wait<W: Word<Value = u64> + Send + 'static>(words: [W; 4]) -> bool {
    let slots = LoomPairs::new(2, 0);
    let (producer, mut consumer) =
        (Producer::over(slots, words, 2, SITE), Consumer::over(slots, words[1], 2));
    let payload = Payload::new();
    let waiters = [0, 1].map(|who| {
        thread::spawn(move || {
            let position = producer.push(trigger(who, 0), Endless).unwrap();
            let told = producer.sync(position, Looks(2)).is_ok();
            // The consumer writes once, and before both.
            told && payload.read() == 7
        })
    });
    next(&consumer);
    consumer.advance();
    next(&consumer);
    consumer.advance();
    payload.write(7);
    consumer.publish();
    waiters.map(|waiter| waiter.join().unwrap()) == [true, true]
}

#[test]
fn of_two_that_wait_both_are_told() {
    let complete = check_counting(2, || two_that_wait([0; 4].map(Token::new)));
    assert!(complete > 0);
}

/// A slot's stores of two laps, by two producers: the second knows by the cached tail alone that there is room.
fn two_laps<W: Word<Value = u64> + Send + 'static>(words: [W; 4], begin: Token) {
    let slots = LoomPairs::new(1, 0);
    let (producer, mut consumer) =
        (Producer::over(slots, words, 1, SITE), Consumer::over(slots, words[1], 1));
    let first = thread::spawn(move || {
        let position = producer.push(trigger(1, 0), Endless).unwrap();
        producer.sync(position, Endless).unwrap();
        begin.store::<Relaxed, Sys>(1);
    });
    let second = thread::spawn(move || {
        // Relaxed: it says that the first lap is over, and nothing of what was seen in it.
        while begin.load::<Relaxed, Sys>() == 0 {
            thread::yield_now();
        }
        producer.push(trigger(2, 0), Endless).unwrap();
    });
    assert_eq!(next(&consumer), trigger(1, 0));
    consumer.take();
    first.join().unwrap();
    second.join().unwrap();
    assert_eq!(consumer.next(), Some(trigger(2, 0)), "the first lap's store came behind the second's");
}

#[test]
fn laps_of_a_slot_stay_in_order() {
    check(|| two_laps([0; 4].map(Token::new), Token::new(0)));
}

/// A wait that fails, and a look in vain, have given the question back: the next one asks.
#[test]
fn a_wait_that_fails_keeps_nobody_from_asking() {
    check(|| {
        let (producer, mut consumer) = halves(2, 0);
        let position = producer.push(trigger(1, 0), Endless).unwrap();
        assert_eq!(producer.sync(position, Looks(1)), Err(WaitError::Timeout));
        assert!(!producer.poll(position));
        let waiter = thread::spawn(move || producer.sync(position, Endless).unwrap());
        next(&consumer);
        consumer.take();
        waiter.join().unwrap();
    });
}

/// A consumer stops between two triggers, and another one goes on.
#[test]
fn a_consumer_that_stops_leaves_the_rest_to_the_next() {
    check(|| {
        let (slots, words) = (LoomPairs::new(1, 0), [0; 4].map(Token::new));
        let producer = Producer::over(slots, words, 1, SITE);
        let mut consumer = Consumer::over(slots, words[1], 1);
        let pusher = thread::spawn(move || {
            for i in 0..2 {
                producer.push(trigger(i, 0), Endless).unwrap();
            }
        });
        assert_eq!(next(&consumer), trigger(0, 0));
        consumer.take();
        let mut successor = Consumer::over(slots, words[1], 1);
        assert_eq!(successor.position(), Position(1));
        assert_eq!(next(&successor), trigger(1, 0));
        successor.take();
        pusher.join().unwrap();
    });
}

/// Without a consumer a push ends with its patience, and says what it waited for.
#[test]
fn a_push_into_a_full_ring_gives_up() {
    check(|| {
        let (producer, _consumer) = halves(1, 0);
        producer.push(trigger(0, 0), Looks(1)).unwrap();
        assert_eq!(producer.push(trigger(1, 0), Looks(2)), Err(WaitError::Timeout));
    });
}

/// Words whose stores are all relaxed, and whose fences do nothing.
#[derive(Clone, Copy)]
struct Weakened(Token);

impl Word for Weakened {
    type Value = u64;

    fn load<O: LoadOrder, S: Scope>(self) -> u64 {
        self.0.load::<O, S>()
    }

    fn store<O: StoreOrder, S: Scope>(self, value: u64) {
        self.0.store::<Relaxed, S>(value);
    }

    fn add<O: StoreOrder, S: Scope>(self, value: u64) {
        self.0.add::<Relaxed, S>(value);
    }

    fn fetch_add<O: RmwOrder, S: Scope>(self, value: u64) -> u64 {
        self.0.fetch_add::<Relaxed, S>(value)
    }

    fn fence<O: FenceOrder, S: Scope>() {}
}

/// Words whose fences release, and acquire nothing.
#[derive(Clone, Copy)]
struct HalfFenced(Token);

impl Word for HalfFenced {
    type Value = u64;

    fn load<O: LoadOrder, S: Scope>(self) -> u64 {
        self.0.load::<O, S>()
    }

    fn store<O: StoreOrder, S: Scope>(self, value: u64) {
        self.0.store::<O, S>(value);
    }

    fn add<O: StoreOrder, S: Scope>(self, value: u64) {
        self.0.add::<O, S>(value);
    }

    fn fetch_add<O: RmwOrder, S: Scope>(self, value: u64) -> u64 {
        self.0.fetch_add::<O, S>(value)
    }

    fn fence<O: FenceOrder, S: Scope>() {
        fence(Ordering::Release);
    }
}

/// A word that may be one whose stores are all relaxed. Its fences are what they should be.
#[derive(Clone, Copy)]
struct Leaky {
    word: Token,
    leaks: bool,
}

impl Word for Leaky {
    type Value = u64;

    fn load<O: LoadOrder, S: Scope>(self) -> u64 {
        self.word.load::<O, S>()
    }

    fn store<O: StoreOrder, S: Scope>(self, value: u64) {
        if self.leaks { self.word.store::<Relaxed, S>(value) } else { self.word.store::<O, S>(value) }
    }

    fn add<O: StoreOrder, S: Scope>(self, value: u64) {
        self.word.add::<O, S>(value);
    }

    fn fetch_add<O: RmwOrder, S: Scope>(self, value: u64) -> u64 {
        self.word.fetch_add::<O, S>(value)
    }

    fn fence<O: FenceOrder, S: Scope>() {
        Token::fence::<O, S>();
    }
}

/// Slots of whose two marks only one counts.
#[derive(Clone, Copy)]
struct OneMark(LoomPairs);

impl Pairs for OneMark {
    fn load<O: LoadOrder, S: Scope>(self, index: u64) -> [u64; 2] {
        let [low, high] = self.0.load::<O, S>(index);
        [low & !Trigger::MARK | high & Trigger::MARK, high]
    }

    fn store<O: StoreOrder, S: Scope>(self, index: u64, value: [u64; 2]) {
        self.0.store::<O, S>(index, value);
    }
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_push_publishes_nothing() {
    check(|| {
        let (slots, words) = (LoomPairs::new(1, 0), [0; 4].map(|zero| Weakened(Token::new(zero))));
        let (producer, consumer) =
            (Producer::over(slots, words, 1, SITE), Consumer::over(slots, words[1], 1));
        let payload = Payload::new();
        thread::spawn(move || {
            payload.write(7);
            producer.push(trigger(1, 1), Endless).unwrap();
        });
        next(&consumer);
        payload.read();
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_tail_publishes_nothing() {
    check(|| {
        let words = [0; 4].map(|zero| Weakened(Token::new(zero)));
        let slots = LoomPairs::new(1, 0);
        let (producer, mut consumer) =
            (Producer::over(slots, words, 1, SITE), Consumer::over(slots, words[1], 1));
        let payload = Payload::new();
        thread::spawn(move || {
            let position = producer.push(trigger(1, 1), Endless).unwrap();
            producer.sync(position, Endless).unwrap();
            payload.read();
        });
        next(&consumer);
        payload.write(7);
        consumer.take();
    });
}

/// A push's fence acquires what the cached tail stands for: a release store alone would not do.
#[test]
#[should_panic(expected = "the first lap's store came behind the second's")]
fn a_fence_that_only_releases_mixes_laps() {
    check(|| two_laps([0; 4].map(|zero| HalfFenced(Token::new(zero))), Token::new(0)));
}

/// The cached tail passes on what the consumer did, so it has to be released.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_cache_publishes_nothing() {
    check_counting(2, || {
        two_that_wait([false, false, true, false].map(|leaks| Leaky { word: Token::new(0), leaks }))
    });
}

#[test]
#[should_panic(expected = "half a trigger")]
fn one_mark_for_both_words_takes_half_a_trigger() {
    check(|| {
        let (slots, words) = (OneMark(LoomPairs::new(1, 0)), [0; 4].map(Token::new));
        let (producer, consumer) =
            (Producer::over(slots, words, 1, SITE), Consumer::over(slots, words[1], 1));
        thread::spawn(move || producer.push(trigger(5, 5), Endless).unwrap());
        assert_eq!(next(&consumer), trigger(5, 5), "half a trigger");
    });
}
