//! FIFOs between kernels of the CPU device and the host.

mod support;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use support::{LONG, builtin, cpu};
use warpwire::abi::{ChannelId, Position, Rank, Trigger, WaitError, WaitKind};
use warpwire::device::{Device, LaunchConfig, Stream};
use warpwire::error::ProxyError;
use warpwire::fifo::{Fifo, FifoConsumer};
use warpwire::{Error, ErrorKind};
use warpwire_device::fifo::DeviceProducer;
use warpwire_kernels::fifo::{FifoPush, FifoPushArgs};

const SHORT: Duration = Duration::from_millis(50);

/// Queues a launch that pushes `count` triggers a thread.
fn push(stream: &Stream, fifo: &Fifo, shape: (u32, u32), count: u32, sync: bool, timeout: Duration) {
    let function = builtin(stream.device()).function::<FifoPush>().unwrap();
    let args = FifoPushArgs {
        fifo: fifo.handle(Rank(3), ChannelId(9)),
        policy: stream.policy(Rank(3), timeout),
        count,
        sync: sync.into(),
    };
    // SAFETY: the FIFO and the board outlive the launch: every caller synchronizes the stream.
    unsafe { stream.launch(&function, LaunchConfig::new(shape.0, shape.1), args) }.unwrap();
}

/// Waits for the next trigger and takes it.
fn next(consumer: &mut FifoConsumer) -> Trigger {
    loop {
        if let Some(trigger) = consumer.peek() {
            consumer.take();
            return trigger;
        }
        thread::yield_now();
    }
}

fn ring(device: &Device, capacity: usize) -> Arc<Fifo> {
    Arc::new(Fifo::new(device, capacity).unwrap())
}

/// C07.
#[test]
fn capacities_are_powers_of_two() {
    let device = cpu();
    for bad in [0, 3, 96, 513, (1 << 20) + 1, 1 << 21, usize::MAX] {
        let error = Fifo::new(&device, bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(matches!(error, Error::Proxy(ProxyError::Capacity { asked, .. }) if asked == bad), "{error}");
    }
    for good in [1, 2, 512] {
        assert_eq!(Fifo::new(&device, good).unwrap().capacity(), good);
    }
}

/// C05 and C07: zeros count, and at each lap's beginning a slot of the lap before is not taken again.
#[test]
fn every_entry_is_seen_once_and_stale_slots_are_not() {
    let device = cpu();
    let board = device.stream().unwrap();
    for capacity in [1, 2, 4] {
        let fifo = ring(&device, capacity);
        // SAFETY: the ring's memory outlives the half; a plain thread stands for the kernel.
        let producer = unsafe { DeviceProducer::new(fifo.handle(Rank(0), ChannelId(0))) };
        // SAFETY: the stream, and its board, outlive the policy.
        let policy = unsafe { warpwire_device::spin::Policy::new(board.policy(Rank(0), LONG)) };
        let mut consumer = fifo.consumer().unwrap();
        for entry in 0..9_u64 {
            assert_eq!(consumer.peek(), None, "entry {entry} of a ring of {capacity}");
            let trigger = Trigger::new([entry / 2 % 2, entry % 2]);
            assert_eq!(producer.push(trigger, policy.patience()), Ok(Position(entry)));
            assert!(!producer.poll(Position(entry)));
            assert_eq!(consumer.position(), Position(entry));
            assert_eq!(consumer.peek(), Some(trigger));
            assert_eq!(consumer.peek(), Some(trigger), "looking takes nothing");
            consumer.take();
            assert!(producer.poll(Position(entry)));
            // Nothing is there to take.
            consumer.take();
        }
    }
}

/// 128 producers and a thousand thousand triggers: none is lost, none comes twice, each thread's come in order, and over the
/// bus go whole ones only.
#[test]
fn a_million_triggers_of_128_producers() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 512));
    let mut consumer = fifo.consumer().unwrap();
    push(&stream, &fifo, (8, 16), 7812, false, LONG);
    push(&stream, &fifo, (4, 16), 1, false, LONG);
    let mut seen = [0_u64; 128];
    for _ in 0..128 * 7812 {
        let [thread, i] = next(&mut consumer).words();
        assert_eq!(i, seen[thread as usize], "thread {thread}");
        seen[thread as usize] += 1;
    }
    assert_eq!(seen, [7812; 128]);
    // The second launch comes behind the first.
    let mut last: Vec<u64> = (0..64).map(|_| next(&mut consumer).words()[0]).collect();
    last.sort_unstable();
    assert!(last.into_iter().eq(0..64));
    assert_eq!((consumer.peek(), consumer.position()), (None, Position(1_000_000)));
    stream.synchronize().unwrap();
}

/// C06 and C08: far more threads than slots, and a consumer that takes its time.
#[test]
fn more_threads_than_slots() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 4));
    let mut consumer = fifo.consumer().unwrap();
    push(&stream, &fifo, (1, 1024), 1, true, LONG);
    let mut seen = vec![false; 1024];
    for i in 0..1024 {
        if i % 64 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let [thread, _] = next(&mut consumer).words();
        assert!(!std::mem::replace(&mut seen[thread as usize], true), "thread {thread} came twice");
    }
    stream.synchronize().unwrap();
    assert_eq!(consumer.peek(), None);
}

/// Each push waits until its trigger has been taken, by a consumer that another thread owns.
#[test]
fn a_sync_waits_for_the_consumer() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 2));
    let mut consumer = fifo.consumer().unwrap();
    push(&stream, &fifo, (2, 3), 50, true, LONG);
    let taken = thread::spawn(move || (0..300).map(|_| next(&mut consumer).words()[1]).sum::<u64>());
    stream.synchronize().unwrap();
    assert_eq!(taken.join().unwrap(), 6 * (0..50).sum::<u64>());
}

#[test]
fn a_full_ring_without_a_consumer_is_reported() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 4));
    push(&stream, &fifo, (1, 1), 5, false, SHORT);
    let error = stream.synchronize().unwrap_err();
    assert!(error.to_string().contains("the consumer of a FIFO"), "{error}");
    let Error::WaitFailed { outcome, kind, rank, peer, channel, expected, seen, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((outcome, kind), (WaitError::Timeout, WaitKind::Fifo));
    assert_eq!((rank, peer, channel), (Rank(3), Rank(3), ChannelId(9)));
    // The fifth needs the first to be gone.
    assert_eq!((expected, seen), (1, 0));

    // What was pushed is there, and behind it the place of the push that failed, for ever.
    stream.reset().unwrap();
    let mut consumer = fifo.consumer().unwrap();
    let there: Vec<_> = (0..4).map(|_| next(&mut consumer).words()[1]).collect();
    assert_eq!(there, [0, 1, 2, 3]);
    push(&stream, &fifo, (1, 1), 1, true, SHORT);
    let error = stream.synchronize().unwrap_err();
    assert!(matches!(error, Error::WaitFailed { kind: WaitKind::Fifo, expected: 6, seen: 4, .. }), "{error}");
    assert_eq!(consumer.peek(), None);

    // A reset makes it as new.
    let refused = fifo.reset().unwrap_err();
    assert!(
        matches!(refused, Error::Proxy(ProxyError::Consumed { .. })) && refused.kind() == ErrorKind::State
    );
    drop(consumer);
    fifo.reset().unwrap();
    stream.reset().unwrap();
    let mut consumer = fifo.consumer().unwrap();
    push(&stream, &fifo, (1, 1), 9, false, LONG);
    let there: Vec<_> = (0..9).map(|_| next(&mut consumer).words()[1]).collect();
    assert_eq!(there, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    stream.synchronize().unwrap();
}

#[test]
fn an_abort_ends_a_wait_for_room() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 1));
    push(&stream, &fifo, (1, 64), 1, false, LONG);
    let mut consumer = fifo.consumer().unwrap();
    while consumer.peek().is_none() {
        thread::yield_now();
    }
    stream.abort();
    let error = stream.synchronize().unwrap_err();
    assert!(
        matches!(error, Error::WaitFailed { outcome: WaitError::Aborted, kind: WaitKind::Fifo, .. }),
        "{error}"
    );
}

#[test]
fn there_is_one_consumer_at_a_time() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 2));
    let mut first = fifo.consumer().unwrap();
    assert!(matches!(fifo.consumer(), Err(Error::Proxy(ProxyError::Consumed { .. }))));
    push(&stream, &fifo, (1, 1), 3, false, LONG);
    assert_eq!(next(&mut first).words(), [0, 0]);
    drop(first);
    // The next goes on where the first has stopped.
    let mut second = fifo.consumer().unwrap();
    assert_eq!(second.position(), Position(1));
    assert_eq!([next(&mut second).words(), next(&mut second).words()], [[0, 1], [0, 2]]);
    stream.synchronize().unwrap();
}
