//! Slots for semaphores: recycled, grown, used by many threads, and signalled from another process.

#[path = "support/process.rs"]
mod process;
mod support;

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use process::{Child, hear_parent, of_hex, role, tell_parent, to_hex};
use support::{LONG, builtin, cpu};
use warpwire::abi::{ChannelId, Global, InboundHandle, OutboundHandle, PolicyHandle, Rank, SemaphoreHandle};
use warpwire::device::{Device, LaunchConfig, ModuleSource, Stream};
use warpwire::memory::{RegisteredMemory, TokenPool, Transports};
use warpwire::semaphore::SemaphoreSide;
use warpwire::{Error, ErrorKind};
use warpwire_device::semaphore::Semaphore;
use warpwire_device::spin::Policy;
use warpwire_device::{kernel, module};
use warpwire_kernels::ping_pong::{SemaphorePingPong, SemaphorePingPongArgs};

#[repr(C)]
#[derive(Clone, Copy)]
struct Args {
    semaphore: SemaphoreHandle,
    policy: PolicyHandle,
    signals: u32,
    waits: u32,
}

kernel! {
    /// Signals so often, then waits so often.
    struct SignalThenWait = "signal_then_wait", max_threads = 1, min_blocks = 1;
    unsafe fn(args: Args) {
        // SAFETY: the launch's contract.
        let (semaphore, policy) = unsafe { (Semaphore::new(args.semaphore), Policy::new(args.policy)) };
        for _ in 0..args.signals {
            semaphore.signal();
        }
        for _ in 0..args.waits {
            if semaphore.wait(policy.patience()).is_err() {
                return;
            }
        }
    }
}

module! { static KERNELS = [SignalThenWait]; }

fn run(
    stream: &Stream,
    token: Global<u64>,
    expected: Global<u64>,
    args: (u32, u32),
    limit: Duration,
) -> Result<(), Error> {
    static SOURCE: ModuleSource = ModuleSource { name: "tokens", kernels: KERNELS, ptx: &[] };
    let function = stream.device().load(&SOURCE).unwrap().function::<SignalThenWait>().unwrap();
    let inbound = InboundHandle { token, expected, peer: Rank(1), channel: ChannelId(0) };
    let semaphore = SemaphoreHandle { inbound, outbound: OutboundHandle { token } };
    let (signals, waits) = args;
    let args = Args { semaphore, policy: stream.policy(Rank(0), limit), signals, waits };
    // SAFETY: the words and the board outlive the launch, which is waited for.
    unsafe { stream.launch(&function, LaunchConfig::new(1, 1).concurrent(1), args) }.unwrap();
    stream.synchronize()
}

#[test]
fn a_recycled_slot_knows_nothing_of_its_former_owner() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let pool = TokenPool::with_block_slots(&device, 1);
    let expected = device.allocate::<u64>(1).unwrap();
    let mut address = None;
    for _ in 0..1000 {
        let token = pool.take().unwrap();
        assert_eq!(*address.get_or_insert(token.address()), token.address(), "one slot, over and over");
        assert_eq!(token.read().unwrap(), 0);
        run(&stream, token.address(), expected.address(), (3, 0), LONG).unwrap();
        assert_eq!(token.read().unwrap(), 3);
        drop(token);

        let token = pool.take().unwrap();
        assert_eq!(token.read().unwrap(), 0);
        expected.fill_bytes(0).unwrap();
        let error = run(&stream, token.address(), expected.address(), (0, 1), Duration::from_micros(100))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        stream.reset().unwrap();
        run(&stream, token.address(), expected.address(), (1, 1), LONG).unwrap();
    }
    assert_eq!(pool.capacity(), 1);
}

#[test]
fn the_pool_grows_by_blocks_and_slots_are_apart() {
    let device = cpu();
    for slots in [1, 63, 64, 65, 200] {
        let pool = TokenPool::with_block_slots(&device, slots);
        let tokens: Vec<_> = (0..3 * slots).map(|_| pool.take().unwrap()).collect();
        assert_eq!(pool.capacity(), 3 * slots);
        let addresses: HashSet<_> = tokens.iter().map(|token| token.address().address()).collect();
        assert_eq!(addresses.len(), tokens.len());
        assert!(addresses.iter().all(|address| address.is_multiple_of(8)));
        drop(tokens);
        let again: Vec<_> = (0..3 * slots).map(|_| pool.take().unwrap()).collect();
        assert_eq!(pool.capacity(), 3 * slots, "slots that were handed back are used first");
        drop(again);
    }
}

#[test]
fn threads_never_have_one_slot_at_once() {
    let device = cpu();
    let pool = TokenPool::with_block_slots(&device, 16);
    thread::scope(|scope| {
        for owner in 1..=8u64 {
            let (pool, device) = (pool.clone(), device.clone());
            scope.spawn(move || {
                for round in 0..2000 {
                    let tokens: Vec<_> = (0..1 + round % 4).map(|_| pool.take().unwrap()).collect();
                    for token in &tokens {
                        assert_eq!(token.read().unwrap(), 0);
                        mark(&device, token.address(), owner);
                    }
                    for token in &tokens {
                        assert_eq!(token.read().unwrap(), owner.wrapping_mul(0x0101_0101_0101_0101));
                    }
                }
            });
        }
    });
    assert!(pool.capacity() <= 8 * 4 + 16);
}

/// Fills a slot with the owner's number.
fn mark(device: &Device, at: Global<u64>, owner: u64) {
    // SAFETY: the slot is the caller's.
    unsafe { warpwire::memory::gpu_memset(device, at.cast(), owner as u8, 8) }.unwrap();
}

#[test]
fn sides_in_a_pool_bounce_as_others_do() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let pool = TokenPool::new(&device);
    let sides = [SemaphoreSide::in_pool(&pool).unwrap(), SemaphoreSide::in_pool(&pool).unwrap()];
    let end = |own: usize| sides[own].handle(sides[1 - own].token(), Rank(1 - own as u32), ChannelId(0));
    let args = SemaphorePingPongArgs {
        ends: [end(0), end(1)],
        policy: stream.policy(Rank(0), LONG),
        first_end: 0,
        rounds: 100,
        relaxed: 0,
        reserved: 0,
    };
    let function = builtin(&device).function::<SemaphorePingPong>().unwrap();
    // SAFETY: the words and the board outlive the launch, which is waited for.
    unsafe { stream.launch(&function, LaunchConfig::new(2, 1).concurrent(1), args) }.unwrap();
    stream.synchronize().unwrap();
    sides[0].reset().unwrap();
    drop(sides);
    for _ in 0..4 {
        assert_eq!(pool.take().unwrap().read().unwrap(), 0);
    }
}

/// Plays one end of a ping-pong whose other end another process plays.
fn play(
    device: &Device,
    stream: &Stream,
    side: &SemaphoreSide,
    peer: &RegisteredMemory,
    end: u32,
    rounds: u32,
) {
    let peer_token: Global<u64> = peer.address().expect("a mapped token").cast();
    let handle = side.handle(peer_token, Rank(1 - end), ChannelId(0));
    let args = SemaphorePingPongArgs {
        ends: [handle; 2],
        policy: stream.policy(Rank(end), LONG),
        first_end: end,
        rounds,
        relaxed: 0,
        reserved: 0,
    };
    let function = builtin(device).function::<SemaphorePingPong>().unwrap();
    // SAFETY: own words, the mapped token and the board outlive the launch, which is waited for.
    unsafe { stream.launch(&function, LaunchConfig::new(1, 1).concurrent(1), args) }.unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn child() {
    if role().is_none() {
        return;
    }
    let device = cpu();
    let stream = device.stream().unwrap();
    let side = SemaphoreSide::in_pool(&TokenPool::new(&device)).unwrap();
    let own = side.register_token(Transports::CUDA_IPC).unwrap();
    tell_parent(&to_hex(&own.serialize().unwrap()));
    let peer = RegisteredMemory::deserialize(&device, &of_hex(&hear_parent().unwrap())).unwrap();
    play(&device, &stream, &side, &peer, 1, 500);
    tell_parent("played");
    // The peer's signals may still be under way to this side's token until it says that it has played too.
    hear_parent();
}

#[test]
fn kernels_of_two_processes_signal_each_other() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let mut child = Child::start("");
    let pool = TokenPool::new(&device);
    let side = SemaphoreSide::in_pool(&pool).unwrap();
    let own = side.register_token(Transports::CUDA_IPC).unwrap();
    let peer = RegisteredMemory::deserialize(&device, &of_hex(&child.hear())).unwrap();
    child.tell(&to_hex(&own.serialize().unwrap()));
    play(&device, &stream, &side, &peer, 0, 500);
    assert_eq!(child.hear(), "played");
    child.end();
}

/// A slot that somebody may still signal is given to nobody, and the others are as before.
#[test]
fn a_retired_slot_is_not_handed_out_again() {
    let pool = TokenPool::with_block_slots(&cpu(), 4);
    let tokens: Vec<_> = (0..4).map(|_| pool.take().unwrap()).collect();
    let retired = tokens[1].address();
    tokens[1].retire();
    let all: HashSet<u64> = tokens.iter().map(|token| token.address().address()).collect();
    drop(tokens);
    let again: HashSet<u64> = {
        let taken: Vec<_> = (0..3).map(|_| pool.take().unwrap()).collect();
        assert_eq!(pool.capacity(), 4);
        taken.iter().map(|token| token.address().address()).collect()
    };
    assert_eq!(all.difference(&again).copied().collect::<Vec<_>>(), [retired.address()]);
}
