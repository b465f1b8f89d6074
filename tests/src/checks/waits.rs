//! Waits that are not met: each ends, says where it stood, and leaves the device usable.

use std::thread;
use std::time::{Duration, Instant};

use warpwire::abi::{BarrierHandle, ChannelId, PolicyHandle, Rank, WaitError, WaitKind};
use warpwire::device::{Buffer, Device, DeviceKind, Function, LaunchConfig, Stream};
use warpwire::kernel::Kernel;
use warpwire::{Error, ErrorKind};
use warpwire_kernels::barrier::{BarrierRounds, BarrierRoundsArgs};
use warpwire_kernels::packets::{UnpackPackets8, UnpackPackets16};
use warpwire_kernels::ping_pong::{
    PacketPingPong8, PacketPingPong16, PacketPingPongArgs, SemaphorePingPong, SemaphorePingPongArgs,
};
use warpwire_kernels::transfer::{Get, TransferArgs};

use super::rig::{Ends, LONG, filled, function, zeroed};

/// Short enough for a test, long enough to be told from none.
const SHORT: Duration = Duration::from_millis(50);

/// What an abort may take on a GPU.
const ABORT_LIMIT: Duration = Duration::from_millis(100);

fn semaphore_args(ends: &Ends, policy: PolicyHandle, first_end: u32, relaxed: u32) -> SemaphorePingPongArgs {
    SemaphorePingPongArgs { ends: ends.handles(), policy, first_end, rounds: 1, relaxed, reserved: 0 }
}

/// C31: a wait for a signal that never comes ends with a report that names rank, peer, channel, expected and seen; nothing
/// has been consumed, and after a reset the next round is right.
pub fn a_silent_peer_is_reported_and_the_next_round_is_right(device: &Device) {
    let (stream, kernel) = (device.stream().unwrap(), function::<SemaphorePingPong>(device));
    let ends = Ends::new(device, ChannelId(6), 41);
    let both = LaunchConfig::new(2, 1).concurrent(1);
    // SAFETY: the words outlive the launches, here and below.
    unsafe { stream.launch(&kernel, both, semaphore_args(&ends, stream.policy(Rank(0), LONG), 0, 0)) }
        .unwrap();
    stream.synchronize().unwrap();

    for relaxed in [0, 1] {
        let begun = Instant::now();
        let args = semaphore_args(&ends, stream.policy(Rank(1), SHORT), 1, relaxed);
        // SAFETY: as above.
        unsafe { stream.launch(&kernel, LaunchConfig::new(1, 1).concurrent(1), args) }.unwrap();
        let error = stream.synchronize().unwrap_err();
        assert!(begun.elapsed() >= SHORT && begun.elapsed() < LONG, "the wait took {:?}", begun.elapsed());
        let text = error.to_string();
        let Error::WaitFailed { outcome, kind, rank, peer, channel, block, thread, expected, seen } = error
        else {
            panic!("{text}")
        };
        assert_eq!((outcome, kind), (WaitError::Timeout, WaitKind::Semaphore));
        assert_eq!((rank, peer, channel), (Rank(1), Rank(0), ChannelId(6)));
        assert_eq!((block, thread, expected, seen), (0, 0, 43, 42));
        for part in ["rank 1", "rank 0", "channel 6", "43", "42"] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert_eq!(
            stream.synchronize().unwrap_err().kind(),
            ErrorKind::Timeout,
            "the report stays until the reset"
        );
        stream.reset().unwrap();
        stream.synchronize().unwrap();
    }

    // SAFETY: as above.
    unsafe { stream.launch(&kernel, both, semaphore_args(&ends, stream.policy(Rank(0), LONG), 0, 0)) }
        .unwrap();
    stream.synchronize().unwrap();
    assert_eq!((ends.tokens.read().unwrap(), ends.expected.read().unwrap()), (vec![43; 2], vec![43; 2]));
}

/// Queues a launch with this policy on a stream.
type Launch = Box<dyn Fn(&Stream, PolicyHandle)>;

/// A launch that waits for what never comes.
struct Waiting {
    name: &'static str,
    kind: WaitKind,
    launch: Launch,
}

impl Waiting {
    /// `K` with this shape; `args` fills its arguments, and keeps what they point at.
    fn new<K: Kernel>(
        device: &Device,
        name: &'static str,
        kind: WaitKind,
        (blocks, threads): (u32, u32),
        args: impl Fn(PolicyHandle) -> K::Args + 'static,
    ) -> Self {
        let kernel: Function<K> = function(device);
        let launch = move |stream: &Stream, policy: PolicyHandle| {
            let config = LaunchConfig::new(blocks, threads).concurrent(1);
            // SAFETY: what the arguments point at lives in `args`, and so as long as the checks' lists, which outlive the
            // launches.
            unsafe { stream.launch(&kernel, config, args(policy)) }.unwrap();
        };
        Self { name, kind, launch: Box::new(launch) }
    }

    fn semaphore(device: &Device, name: &'static str, relaxed: u32) -> Self {
        let ends = Ends::new(device, ChannelId(1), 0);
        Self::new::<SemaphorePingPong>(device, name, WaitKind::Semaphore, (1, 1), move |policy| {
            semaphore_args(&ends, policy, 1, relaxed)
        })
    }

    fn packet<K: Kernel<Args = PacketPingPongArgs>>(device: &Device, name: &'static str) -> Self {
        let (slots, received) = (zeroed::<u64>(device, 4 * 64), zeroed::<u64>(device, 2 * 64));
        Self::new::<K>(device, name, WaitKind::Packet, (1, 64), move |policy| PacketPingPongArgs {
            slots: [slots.address().cast(), slots.address().add(2 * 64).cast()],
            received: [received.address(), received.address().add(64)],
            policy,
            first_end: 1,
            rounds: 1,
            flag: 1,
            reserved: 0,
        })
    }

    fn transfer<K: Kernel<Args = TransferArgs>>(device: &Device, name: &'static str, kind: WaitKind) -> Self {
        let (ends, memory): (Ends, Buffer<u8>) = (Ends::new(device, ChannelId(1), 0), zeroed(device, 8192));
        Self::new::<K>(device, name, kind, (2, 40), move |policy| {
            let (local, packets) = (memory.address(), memory.address().byte_add(4096));
            TransferArgs {
                channel: ends.channel(0, packets, local, packets),
                policy,
                remote_offset: 0,
                local_offset: 0,
                bytes: 999,
                signal_or_flag: 7,
                reserved: 0,
            }
        })
    }

    /// The kernel has no round that lacks a block. So: its one block keeps its progress in the barrier's word, and so turns
    /// back the phase that it has just read, as no other block could; the barrier then waits for a flip that has been.
    fn barrier(device: &Device) -> Self {
        let words = filled(device, &[1_u32 << 31, 0]);
        Self::new::<BarrierRounds>(device, "barrier", WaitKind::Barrier, (1, 64), move |policy| {
            words.write(&[1 << 31, 0]).unwrap();
            BarrierRoundsArgs {
                barrier: BarrierHandle { word: words.address() },
                policy,
                progress: words.address(),
                late: words.address().add(1),
                rounds: 1,
                reserved: 0,
            }
        })
    }

    fn every_kind(device: &Device) -> Vec<Self> {
        vec![
            Self::semaphore(device, "semaphore", 0),
            Self::semaphore(device, "relaxed semaphore", 1),
            Self::packet::<PacketPingPong8>(device, "LL8 packet"),
            Self::packet::<PacketPingPong16>(device, "LL16 packet"),
            Self::transfer::<Get>(device, "get", WaitKind::Semaphore),
            Self::transfer::<UnpackPackets8>(device, "LL8 packets", WaitKind::Packet),
            Self::transfer::<UnpackPackets16>(device, "LL16 packets", WaitKind::Packet),
            Self::barrier(device),
        ]
    }

    fn check(&self, error: &Error, expected: WaitError, by: Rank) {
        let is_it = matches!(error, Error::WaitFailed { outcome, kind, rank, .. }
            if (*outcome, *kind, *rank) == (expected, self.kind, by));
        assert!(is_it, "{}: {error}", self.name);
    }
}

/// C31, for every kind of wait.
pub fn every_wait_times_out(device: &Device) {
    let waits = Waiting::every_kind(device);
    let stream = device.stream().unwrap();
    for wait in &waits {
        let begun = Instant::now();
        (wait.launch)(&stream, stream.policy(Rank(4), SHORT));
        let error = stream.synchronize().unwrap_err();
        wait.check(&error, WaitError::Timeout, Rank(4));
        assert!(
            begun.elapsed() >= SHORT && begun.elapsed() < LONG / 2,
            "{}: {:?}",
            wait.name,
            begun.elapsed()
        );
        stream.reset().unwrap();
    }
}

/// C32: the abort word ends every kind of wait that has no limit of its own, on a GPU within 100 ms.
pub fn an_abort_ends_every_wait(device: &Device) {
    for wait in &Waiting::every_kind(device) {
        let stream = device.stream().unwrap();
        (wait.launch)(&stream, stream.policy(Rank(2), Duration::MAX));
        thread::sleep(Duration::from_millis(20));
        assert!(!stream.is_idle().unwrap(), "{} does not wait", wait.name);
        let handle = stream.abort_handle();
        let aborter = thread::spawn(move || {
            handle.abort();
            Instant::now()
        });
        let error = stream.synchronize().unwrap_err();
        let took = aborter.join().unwrap().elapsed();
        wait.check(&error, WaitError::Aborted, Rank(2));
        // The CPU device's threads share their processors with whatever else runs: there it has only to end.
        let timed = device.properties().kind == DeviceKind::Cuda;
        assert!(!timed || took < ABORT_LIMIT, "{} took {took:?} to end", wait.name);
    }
}

/// An abort holds until the reset: what is launched after it does not wait either.
pub fn an_abort_before_the_launch_counts(device: &Device) {
    let (stream, wait) = (device.stream().unwrap(), Waiting::semaphore(device, "semaphore", 0));
    stream.abort();
    (wait.launch)(&stream, stream.policy(Rank(0), Duration::MAX));
    wait.check(&stream.synchronize().unwrap_err(), WaitError::Aborted, Rank(0));
    stream.reset().unwrap();
    (wait.launch)(&stream, stream.policy(Rank(0), SHORT));
    wait.check(&stream.synchronize().unwrap_err(), WaitError::Timeout, Rank(0));
}
