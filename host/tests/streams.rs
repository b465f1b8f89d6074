//! Order in a stream, marks of the time, recordings.

mod support;

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use support::{Ends, LONG, builtin, cpu, filled};
use warpwire::Error;
use warpwire::abi::{Global, Rank};
use warpwire::device::{Buffer, LaunchConfig, Stream};
use warpwire_kernels::ping_pong::{SemaphorePingPong, SemaphorePingPongArgs};

/// Queues a copy of a whole buffer.
fn copy(stream: &Stream, to: &Buffer<u8>, from: &Buffer<u8>) -> warpwire::Result<()> {
    // SAFETY: every caller synchronizes before it touches or drops either buffer.
    unsafe { stream.copy(to.address(), from.address(), from.len()) }
}

#[test]
fn work_runs_in_order_and_marks_stand_in_it() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let from = filled(&device, &[7u8; 10_000]);
    let buffers: Vec<Buffer<u8>> = (0..50).map(|_| device.allocate(10_000).unwrap()).collect();
    let first = stream.record().unwrap();
    // A mark has the time at which the stream comes to it.
    first.synchronize().unwrap();
    thread::sleep(Duration::from_millis(20));
    let mut last = &from;
    for buffer in &buffers {
        copy(&stream, buffer, last).unwrap();
        last = buffer;
    }
    let second = stream.record().unwrap();
    assert!(second.elapsed_since(&first).unwrap() >= Duration::from_millis(20));
    assert_eq!(first.elapsed_since(&second).unwrap(), Duration::ZERO);
    second.synchronize().unwrap();
    stream.synchronize().unwrap();
    assert!(stream.is_idle().unwrap());
    assert_eq!(last.read().unwrap(), [7; 10_000]);
    let other = cpu().stream().unwrap().record().unwrap();
    assert!(matches!(second.elapsed_since(&other), Err(Error::ForeignObject { what: "event" })));
}

/// Whoever sees a word that a stream has set sees what was queued before it.
#[test]
fn words_are_set_behind_what_was_queued_before() {
    const ROUNDS: u64 = 3000;
    let device = cpu();
    let stream = device.stream().unwrap();
    let (from, to) = (device.allocate::<u64>(500).unwrap(), device.allocate::<u64>(500).unwrap());
    let words = device.allocate_host::<u64>(3).unwrap();
    // SAFETY: the middle word, live and aligned, touched by atomics alone.
    let word = unsafe { AtomicU64::from_ptr(words.as_ptr().add(1)) };
    for round in 1..=ROUNDS {
        from.write(&[round; 500]).unwrap();
        // SAFETY: the buffers live until the stream is synchronized, and are touched when its word has come.
        unsafe {
            stream.copy(to.address().cast(), from.address().cast(), 4000).unwrap();
            stream.write_word(words.address().add(1), round).unwrap();
        }
        while word.load(Ordering::Acquire) < round {
            thread::yield_now();
        }
        assert_eq!(to.read().unwrap(), [round; 500]);
    }
    stream.synchronize().unwrap();
    assert_eq!(words.read().unwrap(), [0, ROUNDS, 0]);
    // SAFETY: it is refused.
    let refused = unsafe { stream.write_word(Global::from_address(words.address().address() + 4), 1) };
    assert!(matches!(refused, Err(Error::Misaligned { what: "word", .. })), "{refused:?}");
}

/// A word is recorded like other work, and a mark says when it has passed.
#[test]
fn words_are_recorded_and_marks_pass() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let words = device.allocate_host::<u64>(1).unwrap();
    // SAFETY: the word outlives the graph's launches.
    let graph = stream.capture(|stream| unsafe { stream.write_word(words.address(), 7) }).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(words.read().unwrap(), [0]);
    // SAFETY: as above.
    unsafe { graph.launch(&stream) }.unwrap();
    let mark = stream.record().unwrap();
    mark.synchronize().unwrap();
    assert!(mark.has_passed().unwrap());
    assert_eq!(words.read().unwrap(), [7]);

    // A mark behind a kernel that waits has not passed until that ends.
    let ends = Ends::new(&device, 0);
    let function = builtin(&device).function::<SemaphorePingPong>().unwrap();
    let args = SemaphorePingPongArgs {
        ends: ends.handles(),
        policy: stream.policy(Rank(1), LONG),
        first_end: 1,
        rounds: 1,
        relaxed: 0,
        reserved: 0,
    };
    // SAFETY: words and board live until the stream is synchronized.
    unsafe { stream.launch(&function, LaunchConfig::new(1, 1).concurrent(1), args) }.unwrap();
    let mark = stream.record().unwrap();
    assert!(!mark.has_passed().unwrap());
    stream.abort();
    assert!(stream.synchronize().is_err());
    assert!(mark.has_passed().unwrap());
}

#[test]
fn a_recording_runs_as_often_as_it_is_launched_and_not_before() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let ends = Ends::new(&device, 0);
    let graph = {
        let function = builtin(&device).function::<SemaphorePingPong>().unwrap();
        let policy = stream.policy(Rank(0), LONG);
        let args = SemaphorePingPongArgs {
            ends: ends.handles(),
            policy,
            first_end: 0,
            rounds: 3,
            relaxed: 0,
            reserved: 0,
        };
        // SAFETY: the words and the board outlive the graph's launches, which run one after another.
        stream.capture(|stream| unsafe {
            stream.launch(&function, LaunchConfig::new(2, 1).concurrent(1), args)
        })
    }
    .unwrap();
    stream.synchronize().unwrap();
    assert_eq!(ends.tokens.read().unwrap(), [0, 0]);
    for replay in 1..=5 {
        // SAFETY: as above.
        unsafe { graph.launch(&stream) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(ends.tokens.read().unwrap(), [3 * replay; 2]);
    }
    let other = cpu().stream().unwrap();
    // SAFETY: it is refused.
    let error = unsafe { graph.launch(&other) }.unwrap_err();
    assert!(matches!(error, Error::ForeignObject { what: "graph" }), "{error}");
}

#[test]
fn a_recording_ends_whatever_happens_in_it() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let (from, to) = (filled(&device, &[1u8]), device.allocate::<u8>(1).unwrap());
    let error = stream.capture(|_| Err(Error::EmptyAllocation)).unwrap_err();
    assert!(matches!(error, Error::EmptyAllocation), "{error}");
    let panicked = panic::catch_unwind(AssertUnwindSafe(|| stream.capture(|_| panic!("planted"))));
    assert!(panicked.is_err());
    copy(&stream, &to, &from).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(to.read().unwrap(), [1]);
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let device = cpu();
    let stream = device.stream().unwrap();
    stream
        .capture(|stream| {
            assert!(matches!(stream.synchronize(), Err(Error::CaptureActive { .. })));
            assert!(matches!(stream.record(), Err(Error::CaptureActive { .. })));
            assert!(matches!(stream.reset(), Err(Error::CaptureActive { .. })));
            assert!(matches!(stream.is_idle(), Err(Error::CaptureActive { .. })));
            assert!(matches!(stream.capture(|_| Ok(())), Err(Error::CaptureActive { .. })));
            Ok(())
        })
        .unwrap();
}
