//! What is asked for is done.

use std::sync::atomic::Ordering;
use std::thread;

use warpwire_device::abi::Rank;
use warpwire_kernels::port::PortCall;

use super::rig::{Calls, LONG, Rig};

/// Sizes from nothing to more than a page, at offsets of any alignment.
#[test]
fn puts_move_just_their_bytes() {
    let rig = Rig::new(8);
    let port = rig.port(Rank(1), 0);
    const LEN: usize = 10_000;
    let source = rig.device.allocate::<u8>(LEN).unwrap();
    let bytes: Vec<u8> = (0..LEN as u32).map(|i| (i.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
    source.write(&bytes).unwrap();
    let destination = rig.device.allocate::<u8>(LEN).unwrap();
    let (from, to) = (rig.add(&source), rig.add(&destination));
    for (to_offset, from_offset, len) in [(0, 0, 0), (0, 3, 1), (7, 1, 4099), (1, 9_000, 1000), (0, 0, LEN)] {
        for call in [PortCall::PutWithSignalAndFlush, PortCall::PutWithSignal, PortCall::Put] {
            destination.fill_bytes(0xA5).unwrap();
            let put = Calls {
                to: (to, to_offset as u64),
                from: (from, from_offset as u64),
                bytes: len as u64,
                ..Calls::of(call, 1, 1)
            };
            rig.run(&port, put).unwrap();
            rig.run(&port, Calls::of(PortCall::Flush, 1, 1)).unwrap();
            let mut expected = vec![0xA5; LEN];
            expected[to_offset..to_offset + len].copy_from_slice(&bytes[from_offset..from_offset + len]);
            assert!(destination.read().unwrap() == expected, "{len} bytes from {from_offset} to {to_offset}");
        }
    }
    assert_eq!(port.signals(), 10);
    assert_eq!(port.link.writes.load(Ordering::Relaxed), 12, "a put of nothing moves nothing");
    rig.service.stop(LONG).unwrap();
}

/// C09: offsets and lengths past 4 GiB, in memory that is there only where it is touched.
#[test]
fn offsets_and_lengths_past_4_gib() {
    let rig = Rig::new(2);
    let port = rig.port(Rank(1), 0);
    const FIVE_GIB: u64 = 5 << 30;
    let (source, destination) = (
        rig.device.allocate::<u8>(FIVE_GIB as usize + 4096).unwrap(),
        rig.device.allocate::<u8>(FIVE_GIB as usize + 4096).unwrap(),
    );
    let (from, to) = (rig.add(&source), rig.add(&destination));
    let message: Vec<u8> = (1..=64).collect();
    source.write_at(FIVE_GIB as usize + 3, &message).unwrap();
    let put = |to_offset, from_offset, bytes| Calls {
        to: (to, to_offset),
        from: (from, from_offset),
        bytes,
        ..Calls::of(PortCall::PutWithSignalAndFlush, 1, 1)
    };
    let at = |offset: u64| {
        let mut bytes = [0; 64];
        destination.read_at(offset as usize, &mut bytes).unwrap();
        bytes.to_vec()
    };
    rig.run(&port, put(FIVE_GIB + 64, FIVE_GIB + 3, 64)).unwrap();
    assert_eq!(at(FIVE_GIB + 64), message);
    // Where it would be, had the upper bits been lost.
    let low = FIVE_GIB % (1 << 32);
    assert_eq!(at(low + 64), [0; 64]);
    rig.run(&port, put(8, FIVE_GIB + 3, 64)).unwrap();
    assert_eq!(at(8), message);
    source.write_at(100, &[7; 64]).unwrap();
    rig.run(&port, put((1 << 32) - 1, 100, 64)).unwrap();
    assert_eq!(at((1 << 32) - 1), [7; 64]);
    // A length past 4 GiB is whole when it is checked: it does not fit.
    let stream = rig.stream();
    rig.launch(&stream, &port, put(8192, 0, FIVE_GIB));
    assert!(stream.synchronize().is_err());
    let failure = rig.service.health().unwrap_err();
    assert!(failure.to_string().contains(&format!("{FIVE_GIB} bytes at offset 8192")), "{failure}");
    assert_eq!(port.signals(), 3);
}

/// Every thread's put is there when its flush returns, whatever the others do.
#[test]
fn many_threads_flush_one_channel() {
    let rig = Rig::new(16);
    let port = rig.port(Rank(1), 0);
    let words = rig.device.allocate::<u8>(4).unwrap();
    let memory = (rig.add(&words), 0);
    rig.run(&port, Calls::of(PortCall::Flush, 200, 5)).unwrap();
    let put = Calls { to: memory, from: memory, ..Calls::of(PortCall::PutWithSignalAndFlush, 100, 3) };
    rig.run(&port, put).unwrap();
    assert_eq!(port.signals(), 300);
}

/// Signals arrive, one for each call, and a wait takes one each.
#[test]
fn signals_are_counted() {
    let rig = Rig::new(4);
    let (port, back) = (rig.port(Rank(1), 0), rig.port(Rank(1), 1));
    rig.run(&port, Calls::of(PortCall::Signal, 7, 30)).unwrap();
    rig.run(&port, Calls::of(PortCall::Flush, 1, 1)).unwrap();
    assert_eq!((port.signals(), back.signals()), (210, 0));
    // The other direction: what the peer's proxy does to this end's token.
    let stream = rig.stream();
    rig.launch(&stream, &port, Calls::of(PortCall::Wait, 1, 10));
    (1..=10).for_each(|count| port.receive(count));
    stream.synchronize().unwrap();
}

/// C85: a thousand flushes of one channel never end, and another's puts, signals and flushes do.
#[test]
fn a_stalled_channel_holds_up_no_other() {
    let rig = Rig::new(64);
    let (stalled, flowing) = (rig.port(Rank(1), 0), rig.port(Rank(2), 1));
    stalled.link.stalled.store(true, Ordering::Relaxed);
    let held = rig.stream();
    rig.launch(&held, &stalled, Calls::of(PortCall::Flush, 1000, 1));
    // All of them have been begun.
    while stalled.link.marks() < 1000 {
        thread::yield_now();
    }
    for round in 1..=10 {
        rig.run(&flowing, Calls::of(PortCall::Signal, 4, 25)).unwrap();
        rig.run(&flowing, Calls::of(PortCall::Flush, 3, 3)).unwrap();
        assert_eq!(flowing.signals(), 100 * round);
        assert!(!held.is_idle().unwrap(), "flushes of a stalled connection have ended");
    }
    stalled.link.stalled.store(false, Ordering::Relaxed);
    held.synchronize().unwrap();
    rig.service.stop(LONG).unwrap();
}

/// C85 again, by one thread that flushes a thousand times while the other's signals flow.
#[test]
fn a_thousand_flushes_beside_signals() {
    let rig = Rig::new(64);
    let (flushed, signalled) = (rig.port(Rank(1), 0), rig.port(Rank(2), 1));
    let (first, second) = (rig.stream(), rig.stream());
    rig.launch(&first, &flushed, Calls::of(PortCall::Flush, 1, 1000));
    rig.launch(&second, &signalled, Calls::of(PortCall::Signal, 10, 500));
    first.synchronize().unwrap();
    second.synchronize().unwrap();
    rig.service.stop(LONG).unwrap();
    assert_eq!((flushed.signals(), signalled.signals()), (0, 5000));
}

/// C20: kernels of two streams ask one channel at once, and each has what it asked for.
#[test]
fn two_streams_share_a_channel() {
    let rig = Rig::new(4);
    let port = rig.port(Rank(1), 0);
    let words = rig.device.allocate::<u8>(64).unwrap();
    let memory = (rig.add(&words), 0);
    let put = Calls { to: memory, from: memory, ..Calls::of(PortCall::PutWithSignalAndFlush, 5, 100) };
    let streams = [rig.stream(), rig.stream()];
    streams.iter().for_each(|stream| rig.launch(stream, &port, put));
    streams.iter().for_each(|stream| stream.synchronize().unwrap());
    assert_eq!(port.signals(), 1000);
}

/// C55: a channel's first use may be recorded, while the proxy runs; each repetition asks anew.
#[test]
fn a_recorded_launch_asks_each_time() {
    let rig = Rig::new(4);
    let port = rig.port(Rank(1), 0);
    let stream = rig.stream();
    let graph = stream
        .capture(|stream| {
            rig.launch(stream, &port, Calls::of(PortCall::Signal, 2, 3));
            rig.launch(stream, &port, Calls::of(PortCall::Flush, 1, 1));
            Ok(())
        })
        .unwrap();
    assert_eq!(port.signals(), 0);
    for repetition in 1..=3 {
        // SAFETY: the service and the stream outlive the graph's launches, which are waited for.
        unsafe { graph.launch(&stream) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(port.signals(), 6 * repetition);
    }
}
