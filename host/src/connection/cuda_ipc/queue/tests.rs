use std::sync::Arc;

use warpwire_device::abi::{ChannelId, OutboundHandle, Rank, SemaphoreHandle};
use warpwire_kernels::ping_pong::{SemaphorePingPong, SemaphorePingPongArgs};

use super::*;
use crate::device::{DeviceSelector, LaunchConfig, builtin_module};
use crate::memory::Transports;
use crate::semaphore::HostSemaphore;

/// While the stream stands still no mark is passed, and what its work needs is kept.
#[test]
fn nothing_is_let_go_before_it_is_complete() {
    let device = Device::open(DeviceSelector::Cpu).unwrap();
    for make in [Queue::new, Queue::copying] {
        let (gate, answer) = (HostSemaphore::new(&device).unwrap(), device.allocate::<u64>(1).unwrap());
        // Dropped first, also where an assertion fails: the kernel waits for the gate.
        let mut queue = make(&device).unwrap();
        let inbound = gate.handle(Rank(1), ChannelId(0)).inbound;
        let end = SemaphoreHandle { inbound, outbound: OutboundHandle { token: answer.address() } };
        let function = device.load(builtin_module()).unwrap().function::<SemaphorePingPong>().unwrap();
        let args = SemaphorePingPongArgs {
            ends: [end; 2],
            policy: queue.stream.policy(Rank(0), Duration::from_secs(60)),
            first_end: 1,
            rounds: 1,
            relaxed: 0,
            reserved: 0,
        };
        // SAFETY: gate, answer and queue live until the stream has ended its work.
        unsafe { queue.stream.launch(&function, LaunchConfig::new(1, 1), args) }.unwrap();

        let buffer = device.allocate_shareable::<u64>(3).unwrap();
        buffer.write(&[5, 0, 0]).unwrap();
        let before = Arc::strong_count(buffer.memory().0);
        let memory = RegisteredMemory::of(&buffer, Transports::CUDA_IPC).unwrap();
        let at = buffer.address();
        // SAFETY: the ranges lie in the memory that is kept.
        unsafe {
            queue.copy(at.add(1).cast(), at.cast(), 8).unwrap();
            queue.keep([&memory]).unwrap();
            queue.set(at.add(2), 9).unwrap();
            queue.keep([&memory]).unwrap();
        }
        let mark = queue.mark().unwrap();
        assert_eq!(queue.mark().unwrap(), mark, "nothing was queued since");
        drop(memory);
        for _ in 0..3 * LOOKS_PER_CHECK {
            assert!(queue.passed().unwrap() < mark);
        }
        assert!(Arc::strong_count(buffer.memory().0) > before, "it is kept");
        assert_eq!(buffer.read().unwrap(), [5, 0, 0]);

        gate.signal();
        while queue.passed().unwrap() < mark {
            thread::yield_now();
        }
        assert_eq!(buffer.read().unwrap(), [5, 5, 9]);
        assert_eq!(Arc::strong_count(buffer.memory().0), before, "it is let go");
    }
}

/// A word brings its mark: what it needs is let go though nobody asks for one.
#[test]
fn words_alone_keep_nothing_for_ever() {
    let device = Device::open(DeviceSelector::Cpu).unwrap();
    for make in [Queue::new, Queue::copying] {
        let mut queue = make(&device).unwrap();
        let buffer = device.allocate_shareable::<u64>(1).unwrap();
        let memory = RegisteredMemory::of(&buffer, Transports::CUDA_IPC).unwrap();
        for value in 1..=5 * KEPT_PER_MARK as u64 {
            // SAFETY: the word lies in the memory that is kept.
            unsafe { queue.set(buffer.address(), value) }.unwrap();
            queue.keep([&memory]).unwrap();
            queue.stream.synchronize().unwrap();
            assert!(queue.kept.len() <= KEPT_PER_MARK, "{} are kept", queue.kept.len());
        }
        let last = queue.last;
        assert_eq!(queue.mark().unwrap(), last, "the word's own mark");
        assert_eq!(queue.passed().unwrap(), last);
        assert!(queue.kept.is_empty());
    }
}
