//! Proxies with handlers of the program's own, and kernels of the CPU device that push to them.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use support::{LONG, builtin, cpu};
use warpwire::abi::{ChannelId, Position, Rank, Trigger, WaitError, WaitKind};
use warpwire::device::{Device, LaunchConfig, Stream};
use warpwire::error::ProxyError;
use warpwire::fifo::Fifo;
use warpwire::proxy::{Handler, Proxy};
use warpwire::{Error, ErrorKind, Result};
use warpwire_kernels::fifo::{FifoPush, FifoPushArgs};

/// Queues a launch of one block that pushes `count` triggers a thread, and waits for each where `sync`.
fn push(stream: &Stream, fifo: &Fifo, threads: u32, count: u32, sync: bool) {
    let function = builtin(stream.device()).function::<FifoPush>().unwrap();
    let policy = stream.policy(Rank(0), LONG);
    let args = FifoPushArgs { fifo: fifo.handle(Rank(0), ChannelId(0)), policy, count, sync: sync.into() };
    // SAFETY: the FIFO and the board outlive the launch: every caller synchronizes the stream.
    unsafe { stream.launch(&function, LaunchConfig::new(1, threads), args) }.unwrap();
}

fn ring(device: &Device, capacity: usize) -> Arc<Fifo> {
    Arc::new(Fifo::new(device, capacity).unwrap())
}

/// A proxy that writes down the second word of each trigger.
fn recorder(device: &Device, fifo: &Arc<Fifo>) -> (Proxy, Arc<Mutex<Vec<u64>>>) {
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let of_handler = Arc::clone(&seen);
    let proxy = Proxy::new(device, Arc::clone(fifo), move |_, trigger: Trigger| {
        of_handler.lock().unwrap().push(trigger.words()[1]);
        Ok(())
    });
    (proxy, seen)
}

#[test]
fn it_starts_and_stops_and_starts_again() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 8));
    let (proxy, seen) = recorder(&device, &fifo);
    assert!(!proxy.is_running());
    proxy.stop(LONG).unwrap();
    for round in 1..=3 {
        proxy.start().unwrap();
        assert!(proxy.is_running());
        let again = proxy.start().unwrap_err();
        assert!(matches!(again, Error::Proxy(ProxyError::Running)) && again.kind() == ErrorKind::State);
        push(&stream, &fifo, 1, 20, true);
        stream.synchronize().unwrap();
        proxy.stop(LONG).unwrap();
        proxy.stop(LONG).unwrap();
        assert!(!proxy.is_running());
        proxy.health().unwrap();
        assert_eq!(seen.lock().unwrap().len(), 20 * round);
    }
    let each = seen.lock().unwrap().clone();
    assert!(each.chunks(20).all(|round| round.iter().copied().eq(0..20)), "{each:?}");
}

/// What is pushed while it is stopped is there when it goes on.
#[test]
fn a_stop_loses_nothing() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 8));
    let (proxy, seen) = recorder(&device, &fifo);
    push(&stream, &fifo, 1, 5, false);
    stream.synchronize().unwrap();
    assert!(seen.lock().unwrap().is_empty());
    proxy.start_in_background().unwrap();
    push(&stream, &fifo, 1, 100, true);
    stream.synchronize().unwrap();
    proxy.stop(LONG).unwrap();
    assert!(seen.lock().unwrap().iter().copied().eq((0..5).chain(0..100)));
}

/// C86: what was pushed before a stop is done before it returns, also by kernels that still run.
#[test]
fn a_stop_waits_for_what_is_under_way() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 4));
    let (proxy, seen) = recorder(&device, &fifo);
    proxy.watch(&stream);
    proxy.start().unwrap();
    for _ in 0..10 {
        push(&stream, &fifo, 10, 10, true);
    }
    proxy.stop(LONG).unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1000);
    stream.synchronize().unwrap();
}

/// Keeps a piece under way until it is let go.
struct Stuck {
    pending: Arc<AtomicU64>,
}

impl Handler for Stuck {
    fn handle(&mut self, _: Position, _: Trigger) -> Result<()> {
        self.pending.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn progress(&mut self) -> Result<usize> {
        Ok(self.pending.load(Ordering::Relaxed) as usize)
    }
}

#[test]
fn a_stop_with_work_that_does_not_end_says_so() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 4));
    let pending: Arc<AtomicU64> = Arc::default();
    let proxy = Proxy::new(&device, Arc::clone(&fifo), Stuck { pending: Arc::clone(&pending) });
    proxy.watch(&stream);
    proxy.start().unwrap();
    push(&stream, &fifo, 1, 3, true);
    stream.synchronize().unwrap();
    let error = proxy.stop(Duration::from_millis(20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Aborted);
    let Error::Proxy(ProxyError::Unfinished { pending: left, busy: 0, triggers: false, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!(left, 3);
    // An idle stream waits for nothing: it was not aborted, and can be used as before.
    pending.store(0, Ordering::Relaxed);
    proxy.start().unwrap();
    proxy.health().unwrap();
    push(&stream, &fifo, 1, 1, true);
    stream.synchronize().unwrap();
    pending.store(0, Ordering::Relaxed);
    proxy.stop(LONG).unwrap();
}

/// A handler that blocks holds the kernel in its wait; the stop gives up, and so does the kernel.
#[test]
fn a_stop_ends_the_waits_of_kernels_that_still_run() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 2));
    // Nobody takes the last triggers: they come when the thread has gone.
    let (entered, has_entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let proxy = Arc::new(Proxy::new(&device, Arc::clone(&fifo), move |_, _| {
        let _ = entered.send(());
        let _ = released.recv();
        Ok(())
    }));
    proxy.watch(&stream);
    proxy.start().unwrap();
    push(&stream, &fifo, 4, 100, true);
    has_entered.recv().unwrap();
    let stopping = {
        let proxy = Arc::clone(&proxy);
        thread::spawn(move || proxy.stop(Duration::ZERO))
    };
    // The order to stop comes some time; the handler lets go one trigger after the other until then.
    while !stopping.is_finished() {
        let _ = release.send(());
        thread::yield_now();
    }
    let stopped = stopping.join().unwrap();
    match stream.synchronize() {
        // Aborted, and both say so.
        Err(Error::WaitFailed { outcome: WaitError::Aborted, kind: WaitKind::Fifo, .. }) => {
            let error = stopped.unwrap_err();
            assert!(matches!(error, Error::Proxy(ProxyError::Unfinished { busy: 1, .. })), "{error}");
        }
        // Or all 400 were done before.
        other => {
            other.unwrap();
            stopped.unwrap();
        }
    }
}

/// C91: the fifth trigger fails, by an error and by a panic. The process lives, the failure is told, the kernel ends, and a new
/// start goes on behind that trigger.
#[test]
fn a_handler_that_fails_ends_every_wait() {
    let device = cpu();
    for panics in [false, true] {
        let (stream, other, fifo) = (device.stream().unwrap(), device.stream().unwrap(), ring(&device, 8));
        let seen: Arc<AtomicU64> = Arc::default();
        let of_handler = Arc::clone(&seen);
        let proxy = Proxy::new(&device, Arc::clone(&fifo), move |position: Position, _| match position.0 {
            4 if panics => panic!("the fifth"),
            4 => Err(Error::EmptyAllocation),
            _ => {
                of_handler.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        });
        proxy.watch(&stream);
        proxy.start().unwrap();
        push(&stream, &fifo, 1, 10, true);
        let ended = stream.synchronize().unwrap_err();
        let aborted = |error: &Error| {
            matches!(error, Error::WaitFailed { outcome: WaitError::Aborted, kind: WaitKind::Fifo, .. })
        };
        assert!(aborted(&ended), "{ended}");
        let failure = proxy.health().unwrap_err();
        match &failure {
            Error::Proxy(ProxyError::HandlerPanicked { position: Position(4), message }) if panics => {
                assert_eq!(message, "the fifth");
            }
            Error::Proxy(ProxyError::Handler { position: Position(4), source }) if !panics => {
                assert!(matches!(**source, Error::EmptyAllocation));
                assert_eq!(failure.kind(), ErrorKind::InvalidArgument);
            }
            other => panic!("{other}"),
        }
        assert_eq!(seen.load(Ordering::Relaxed), 4);
        // A stream that comes later does not wait for a proxy that is gone.
        proxy.watch(&other);
        push(&other, &fifo, 1, 20, true);
        assert!(aborted(&other.synchronize().unwrap_err()));
        assert_eq!(
            proxy.stop(LONG).unwrap_err().to_string(),
            failure.to_string(),
            "it says so until it starts again"
        );

        // The first stream has pushed 5, and the other one more.
        stream.reset().unwrap();
        proxy.start().unwrap();
        push(&stream, &fifo, 1, 10, true);
        stream.synchronize().unwrap();
        proxy.stop(LONG).unwrap();
        assert_eq!(seen.load(Ordering::Relaxed), 4 + 1 + 10);
    }
}

/// A failure between triggers ends the proxy too, and no trigger is passed over.
#[test]
fn a_failure_of_progress_costs_no_trigger() {
    struct Sick {
        fails: Arc<AtomicU64>,
        handled: Arc<AtomicU64>,
    }

    impl Handler for Sick {
        fn handle(&mut self, _: Position, _: Trigger) -> Result<()> {
            self.handled.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn progress(&mut self) -> Result<usize> {
            match self.fails.swap(0, Ordering::Relaxed) {
                0 => Ok(0),
                _ => Err(Error::EmptyAllocation),
            }
        }
    }

    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 8));
    let (fails, handled): (Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
    let handler = Sick { fails: Arc::clone(&fails), handled: Arc::clone(&handled) };
    let proxy = Proxy::new(&device, Arc::clone(&fifo), handler);
    proxy.start().unwrap();
    fails.store(1, Ordering::Relaxed);
    while proxy.health().is_ok() {
        thread::yield_now();
    }
    push(&stream, &fifo, 1, 4, false);
    stream.synchronize().unwrap();
    assert_eq!(handled.load(Ordering::Relaxed), 0);
    proxy.start().unwrap();
    proxy.stop(LONG).unwrap();
    assert_eq!(handled.load(Ordering::Relaxed), 4);
}

#[test]
fn a_drop_ends_the_waits_of_watched_streams() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 2));
    let (proxy, _) = recorder(&device, &fifo);
    proxy.watch(&stream);
    // Never started: nobody takes anything.
    push(&stream, &fifo, 1, 4, true);
    drop(proxy);
    let ended = stream.synchronize().unwrap_err();
    assert!(matches!(ended, Error::WaitFailed { outcome: WaitError::Aborted, .. }), "{ended}");

    fifo.reset().unwrap();
    stream.reset().unwrap();
    let stuck: Arc<AtomicU64> = Arc::default();
    let proxy = Proxy::new(&device, Arc::clone(&fifo), Stuck { pending: stuck });
    proxy.watch(&stream);
    proxy.start().unwrap();
    push(&stream, &fifo, 1, 2, true);
    stream.synchronize().unwrap();
    // Work under way keeps a drop from nothing.
    drop(proxy);
    assert!(fifo.consumer().is_ok(), "the thread has ended");
}

#[test]
fn two_proxies_do_not_share_a_ring() {
    let device = cpu();
    let fifo = ring(&device, 2);
    let ((first, _), (second, _)) = (recorder(&device, &fifo), recorder(&device, &fifo));
    first.start().unwrap();
    assert!(matches!(second.start(), Err(Error::Proxy(ProxyError::Consumed { .. }))));
    first.stop(LONG).unwrap();
    second.start().unwrap();
}

/// The handler runs on a thread whose own device is the proxy's.
#[test]
fn the_thread_is_the_devices_own() {
    let device = cpu();
    let (stream, fifo) = (device.stream().unwrap(), ring(&device, 2));
    let (sender, bound) = mpsc::channel();
    let of_handler = device.clone();
    let proxy = Proxy::new(&device, Arc::clone(&fifo), move |_, _| {
        let name = thread::current().name().map(str::to_owned);
        let _ = sender.send((of_handler.is_bound_to_thread()?, name));
        Ok(())
    });
    proxy.start().unwrap();
    push(&stream, &fifo, 1, 1, true);
    stream.synchronize().unwrap();
    assert_eq!(bound.recv().unwrap(), (true, Some("warpwire-proxy".to_owned())));
}
