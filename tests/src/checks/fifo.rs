//! FIFOs and proxies: triggers of a kernel that runs, taken by the host meanwhile.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use warpwire::Error;
use warpwire::abi::{ChannelId, Position, Rank, Trigger, WaitError, WaitKind};
use warpwire::device::{Device, Function, LaunchConfig, Stream};
use warpwire::error::ProxyError;
use warpwire::fifo::{Fifo, FifoConsumer};
use warpwire::proxy::Proxy;
use warpwire_kernels::fifo::{FifoPush, FifoPushArgs};

use super::rig::{LONG, function};

/// A ring, and what is pushed into it.
struct Ring {
    stream: Stream,
    kernel: Function<FifoPush>,
    fifo: Arc<Fifo>,
}

impl Ring {
    fn new(device: &Device, capacity: usize) -> Self {
        let (stream, kernel) = (device.stream().unwrap(), function(device));
        Self { stream, kernel, fifo: Arc::new(Fifo::new(device, capacity).unwrap()) }
    }

    fn push(&self, blocks: u32, threads: u32, count: u32, sync: bool) {
        let args = FifoPushArgs {
            fifo: self.fifo.handle(Rank(0), ChannelId(2)),
            policy: self.stream.policy(Rank(0), LONG),
            count,
            sync: sync.into(),
        };
        // SAFETY: the ring and the board outlive the launch: every check synchronizes the stream.
        unsafe { self.stream.launch(&self.kernel, LaunchConfig::new(blocks, threads), args) }.unwrap();
    }
}

/// Waits for the next trigger and takes it.
fn next(consumer: &mut FifoConsumer) -> Trigger {
    let begun = Instant::now();
    loop {
        if let Some(trigger) = consumer.peek() {
            consumer.take();
            return trigger;
        }
        assert!(begun.elapsed() < LONG, "no trigger comes at {:?}", consumer.position());
        thread::yield_now();
    }
}

/// C05 to C08: from one thread to many more than there are slots, every trigger comes once, those of each thread in order, in
/// rings from one slot on; the tail is seen by kernels that run, with nothing else going on on the device.
pub fn every_trigger_comes_once(device: &Device) {
    for (capacity, blocks, threads, count) in [
        (1, 1, 1, 300),
        (2, 1, 32, 40),
        (512, 32, 1, 200),
        (512, 8, 16, 400),
        (4, 2, 1024, 1),
        (64, 16, 64, 50),
    ] {
        let ring = Ring::new(device, capacity);
        let mut consumer = ring.fifo.consumer().unwrap();
        for sync in [false, true] {
            let all = u64::from(blocks * threads);
            let mut seen = vec![0; all as usize];
            ring.push(blocks, threads, count, sync);
            for _ in 0..all * u64::from(count) {
                let [thread, i] = next(&mut consumer).words();
                let expected = &mut seen[thread as usize];
                assert_eq!(i, *expected, "thread {thread} of {blocks} x {threads}, {capacity} slots");
                *expected += 1;
            }
            ring.stream.synchronize().unwrap();
            assert_eq!(consumer.peek(), None, "{blocks} x {threads}, {capacity} slots");
        }
    }
}

/// The proxy's thread is the device's own; it serves kernels, stops, and goes on.
pub fn a_proxy_serves_its_device(device: &Device) {
    let ring = Ring::new(device, 8);
    let (sender, taken) = mpsc::channel();
    let of_handler = device.clone();
    let proxy = Proxy::new(device, Arc::clone(&ring.fifo), move |position: Position, _| {
        let _ = sender.send((position, of_handler.is_bound_to_thread()?));
        Ok(())
    });
    proxy.watch(&ring.stream);
    for round in 0..3 {
        proxy.start().unwrap();
        ring.push(1, 4, 25, true);
        ring.stream.synchronize().unwrap();
        proxy.stop(LONG).unwrap();
        for i in 0..100 {
            assert_eq!(taken.try_recv().unwrap(), (Position(100 * round + i), true));
        }
    }
}

/// C91: the fifth trigger fails; the kernel's wait is aborted, the process and the device live, and the next start serves again.
pub fn a_failed_handler_ends_the_kernel(device: &Device) {
    for panics in [false, true] {
        let ring = Ring::new(device, 8);
        let proxy =
            Proxy::new(device, Arc::clone(&ring.fifo), move |position: Position, _| match position.0 {
                4 if panics => panic!("the fifth"),
                4 => Err(Error::EmptyAllocation),
                _ => Ok(()),
            });
        proxy.watch(&ring.stream);
        proxy.start().unwrap();
        ring.push(1, 1, 10, true);
        let ended = ring.stream.synchronize().unwrap_err();
        assert!(
            matches!(ended, Error::WaitFailed { outcome: WaitError::Aborted, kind: WaitKind::Fifo, .. }),
            "{ended}"
        );
        let failure = proxy.health().unwrap_err();
        assert!(failure.to_string().contains("at position 4"), "{failure}");
        ring.stream.reset().unwrap();
        proxy.start().unwrap();
        ring.push(2, 32, 10, true);
        ring.stream.synchronize().unwrap();
        proxy.stop(LONG).unwrap();
    }
}

/// C86: a stop ends the waits of a kernel that nobody will serve.
pub fn a_stop_ends_the_kernel(device: &Device) {
    let ring = Ring::new(device, 2);
    let (entered, has_entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let proxy = Proxy::new(device, Arc::clone(&ring.fifo), move |_, _| {
        let _ = entered.send(());
        // Ends when the other side is dropped.
        let _ = released.recv();
        Ok(())
    });
    proxy.watch(&ring.stream);
    proxy.start().unwrap();
    // More triggers than any test would let through one by one.
    ring.push(1, 64, 1 << 20, true);
    has_entered.recv().unwrap();
    drop(release);
    let error = proxy.stop(Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::Proxy(ProxyError::Unfinished { busy: 1, .. })), "{error}");
    let ended = ring.stream.synchronize().unwrap_err();
    assert!(matches!(ended, Error::WaitFailed { outcome: WaitError::Aborted, .. }), "{ended}");
}
