//! Waits that end without what they waited for, and what comes after.

mod support;

use std::thread;
use std::time::{Duration, Instant};

use support::{Ends, LONG, builtin, cpu};
use warpwire::abi::{
    BarrierHandle, ChannelId, Global, MemoryChannelBaseHandle, MemoryChannelHandle, PolicyHandle, Rank,
    WaitError, WaitKind,
};
use warpwire::device::{Buffer, Device, Function, LaunchConfig, Stream};
use warpwire::kernel::Kernel;
use warpwire::{Error, ErrorKind};
use warpwire_kernels::barrier::{BarrierRounds, BarrierRoundsArgs};
use warpwire_kernels::packets::UnpackPackets8;
use warpwire_kernels::ping_pong::{
    PacketPingPong16, PacketPingPongArgs, SemaphorePingPong, SemaphorePingPongArgs,
};
use warpwire_kernels::transfer::TransferArgs;

/// Short enough for a test, long enough to be told from 0.
const SHORT: Duration = Duration::from_millis(50);

fn ping_pong(
    ends: &Ends,
    policy: PolicyHandle,
    first_end: u32,
    rounds: u32,
    relaxed: u32,
) -> SemaphorePingPongArgs {
    SemaphorePingPongArgs { ends: ends.handles(), policy, first_end, rounds, relaxed, reserved: 0 }
}

#[test]
fn a_peer_that_never_signals_is_named_and_the_stream_goes_on() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let function = builtin(&device).function::<SemaphorePingPong>().unwrap();
    let ends = Ends::new(&device, 5);
    // Some rounds go well first, so that the numbers in the report are not the first ones.
    let both = LaunchConfig::new(2, 1).concurrent(1);
    // SAFETY: the words and the board outlive the launches, here and below.
    unsafe { stream.launch(&function, both, ping_pong(&ends, stream.policy(Rank(0), LONG), 0, 7, 0)) }
        .unwrap();
    stream.synchronize().unwrap();

    for relaxed in [0, 1] {
        let begun = Instant::now();
        let args = ping_pong(&ends, stream.policy(Rank(1), SHORT), 1, 1, relaxed);
        // SAFETY: as above.
        unsafe { stream.launch(&function, LaunchConfig::new(1, 1).concurrent(1), args) }.unwrap();
        let error = stream.synchronize().unwrap_err();
        assert!(begun.elapsed() >= SHORT, "the wait lasts as long as it was to");
        let Error::WaitFailed { outcome, kind, rank, peer, channel, block, thread, expected, seen } = error
        else {
            panic!("{error}")
        };
        assert_eq!((outcome, kind), (WaitError::Timeout, WaitKind::Semaphore));
        assert_eq!((rank, peer, channel), (Rank(1), Rank(0), ChannelId(5)));
        assert_eq!((block, thread, expected, seen), (0, 0, 8, 7));
        let text = error.to_string();
        for part in ["rank 1 timed out", "a signal from rank 0", "channel 5", "expected 8, seen 7"] {
            assert!(text.contains(part), "{text}");
        }
        // The report stays until the reset.
        assert_eq!(stream.synchronize().unwrap_err().kind(), ErrorKind::Timeout);
        stream.reset().unwrap();
        stream.synchronize().unwrap();
    }

    // The waits that failed took no signal: the next round is as if they had not been.
    // SAFETY: as above.
    unsafe { stream.launch(&function, both, ping_pong(&ends, stream.policy(Rank(0), LONG), 0, 3, 0)) }
        .unwrap();
    stream.synchronize().unwrap();
    assert_eq!(ends.tokens.read().unwrap(), [10, 10]);
    assert_eq!(ends.expected.read().unwrap(), [10, 10]);
}

/// A kernel that waits for ever, on `stream`, and what it needs meanwhile.
type Waiter = (&'static str, WaitKind, Box<dyn Fn(&Stream, PolicyHandle)>);

fn launch_once<K: Kernel>(device: &Device) -> Function<K> {
    builtin(device).function::<K>().unwrap()
}

fn waiters(device: &Device) -> Vec<Waiter> {
    let one = LaunchConfig::new(1, 1).concurrent(1);
    let ends = Ends::new(device, 1);
    let semaphore = launch_once::<SemaphorePingPong>(device);
    let words: Buffer<u64> = device.allocate(1024).unwrap();
    let packet = launch_once::<PacketPingPong16>(device);
    let barrier = launch_once::<BarrierRounds>(device);
    let unpack = launch_once::<UnpackPackets8>(device);
    let channel = Ends::new(device, 2);
    let buffer: Buffer<u8> = device.allocate(4096).unwrap();
    vec![
        (
            "semaphore",
            WaitKind::Semaphore,
            Box::new(move |stream, policy| {
                // SAFETY: the words live as long as this closure, which the test keeps until the end, here and below.
                unsafe { stream.launch(&semaphore, one, ping_pong(&ends, policy, 1, 1, 0)) }.unwrap();
            }),
        ),
        (
            "packet",
            WaitKind::Packet,
            Box::new(move |stream, policy| {
                let at = |word: u64| words.address().add(word);
                let args = PacketPingPongArgs {
                    slots: [at(0).cast(), at(256).cast()],
                    received: [at(512), at(768)],
                    policy,
                    first_end: 1,
                    rounds: 1,
                    flag: 1,
                    reserved: 0,
                };
                // SAFETY: as above: 128 threads with a slot of 16 bytes each.
                unsafe { stream.launch(&packet, LaunchConfig::new(1, 128).concurrent(1), args) }.unwrap();
            }),
        ),
        (
            "barrier",
            WaitKind::Barrier,
            Box::new(move |stream, policy| {
                // The one block keeps its progress in the barrier's word, and so turns back the phase that it has just read:
                // the barrier then waits for a flip that has been.
                let word: Buffer<u32> = stream.device().allocate(2).unwrap();
                word.write(&[1 << 31, 0]).unwrap();
                let args = BarrierRoundsArgs {
                    barrier: BarrierHandle { word: word.address() },
                    policy,
                    progress: word.address(),
                    late: word.address().add(1),
                    rounds: 1,
                    reserved: 0,
                };
                // SAFETY: as above; the words are leaked.
                unsafe { stream.launch(&barrier, LaunchConfig::new(1, 64).concurrent(1), args) }.unwrap();
                std::mem::forget(word);
            }),
        ),
        (
            "unpack",
            WaitKind::Packet,
            Box::new(move |stream, policy| {
                let args = TransferArgs {
                    channel: MemoryChannelHandle {
                        base: MemoryChannelBaseHandle { semaphore: channel.handle(0) },
                        remote: Global::NULL,
                        local: buffer.address(),
                        packets: buffer.address().byte_add(1024),
                    },
                    policy,
                    remote_offset: 0,
                    local_offset: 0,
                    bytes: 1000,
                    signal_or_flag: 1,
                    reserved: 0,
                };
                // SAFETY: as above: 250 packets of 8 bytes.
                unsafe { stream.launch(&unpack, LaunchConfig::new(2, 96).concurrent(1), args) }.unwrap();
            }),
        ),
    ]
}

#[test]
fn an_abort_ends_every_kind_of_wait() {
    let device = cpu();
    for (name, kind, launch) in waiters(&device) {
        let stream = device.stream().unwrap();
        launch(&stream, stream.policy(Rank(3), Duration::MAX));
        thread::sleep(Duration::from_millis(30));
        assert!(!stream.is_idle().unwrap(), "{name} waits");
        assert!(matches!(stream.reset(), Err(Error::StreamBusy { .. })), "{name}");
        let handle = stream.abort_handle();
        // Without a limit in its policy, nothing but the abort can end the wait.
        let aborted = thread::spawn(move || handle.abort());
        let error = stream.synchronize().unwrap_err();
        aborted.join().unwrap();
        assert!(
            matches!(error, Error::WaitFailed { outcome: WaitError::Aborted, rank: Rank(3), kind: k, .. } if k == kind),
            "{name}: {error}"
        );
        assert_eq!(error.kind(), ErrorKind::Aborted);
    }
}

#[test]
fn every_kind_of_wait_times_out() {
    let device = cpu();
    for (name, kind, launch) in waiters(&device) {
        let stream = device.stream().unwrap();
        launch(&stream, stream.policy(Rank(0), SHORT));
        let error = stream.synchronize().unwrap_err();
        assert!(
            matches!(error, Error::WaitFailed { outcome: WaitError::Timeout, kind: k, .. } if k == kind),
            "{name}: {error}"
        );
    }
}

#[test]
fn dropping_a_stream_ends_what_waits_on_it() {
    let device = cpu();
    let waiters = waiters(&device);
    let begun = Instant::now();
    for (_, _, launch) in &waiters {
        let stream = device.stream().unwrap();
        launch(&stream, stream.policy(Rank(0), Duration::MAX));
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn one_streams_failure_leaves_the_others_alone() {
    let device = cpu();
    let function = builtin(&device).function::<SemaphorePingPong>().unwrap();
    let (bad, good) = (device.stream().unwrap(), device.stream().unwrap());
    let (lonely, ends) = (Ends::new(&device, 0), Ends::new(&device, 1));
    let one = LaunchConfig::new(1, 1).concurrent(2);
    // SAFETY: the words and the boards outlive the launches.
    unsafe {
        bad.launch(&function, one, ping_pong(&lonely, bad.policy(Rank(0), SHORT), 1, 1, 0)).unwrap();
        let both = LaunchConfig::new(2, 1).concurrent(1);
        good.launch(&function, both, ping_pong(&ends, good.policy(Rank(0), LONG), 0, 1000, 0)).unwrap();
    }
    good.synchronize().unwrap();
    assert_eq!(bad.synchronize().unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(ends.tokens.read().unwrap(), [1000, 1000]);
}
