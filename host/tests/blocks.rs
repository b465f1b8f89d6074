//! Threads that wait for each other inside a block, and blocks that break.

mod support;

use std::sync::atomic::{AtomicU32, Ordering};

use support::{LONG, cpu, filled};
use warpwire::Error;
use warpwire::abi::{ChannelId, Global, PolicyHandle, Rank, WaitKind, WaitSite};
use warpwire::device::{Buffer, Device, LaunchConfig, ModuleSource};
use warpwire::kernel::Kernel;
use warpwire_device::mem::{Mapped, Word};
use warpwire_device::spin::{self, Policy};
use warpwire_device::{arch, kernel, module};

#[repr(C)]
#[derive(Clone, Copy)]
struct Args {
    /// One word a thread.
    words: Global<u32>,
    rounds: u32,
    reserved: u32,
}

kernel! {
    /// Each round, each thread writes its word and checks its neighbour's; ends with how often that was wrong.
    struct Neighbours = "neighbours", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: Args) {
        let (thread, threads) = (arch::thread_index(), arch::block_size());
        let (mine, other) = (args.words.add(u64::from(thread)), args.words.add(u64::from((thread + 1) % threads)));
        let mut wrong = 0;
        for round in 1..=args.rounds {
            // SAFETY: the launch's contract: one word a thread; the barriers order the accesses.
            unsafe { arch::store_weak_u32(mine, round) };
            // One thread, another each round, says so: all have to hear it, and in the next round nothing.
            if !arch::block_sync_or(round % threads == thread) {
                wrong += 1;
            }
            // SAFETY: as above.
            if unsafe { arch::load_weak_u32(other) } != round {
                wrong += 1;
            }
            if arch::block_sync_or(false) {
                wrong += 1;
            }
        }
        // SAFETY: as above.
        unsafe { arch::store_weak_u32(mine, wrong) };
    }
}

kernel! {
    /// Exchanges within the warp, one after another without a barrier between; ends with how often a value was wrong.
    struct Exchanges = "exchanges", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: Args) {
        let (thread, threads) = (arch::thread_index(), arch::block_size());
        let lane = thread % arch::WARP_SIZE;
        let lanes = (threads - (thread - lane)).min(arch::WARP_SIZE);
        let mut wrong = 0;
        for round in 0..args.rounds {
            let from = (lane + round) % lanes;
            if arch::warp_shuffle(thread * 1000 + round, from) != (thread - lane + from) * 1000 + round {
                wrong += 1;
            }
            if arch::warp_any(lane == round) != (round < lanes) {
                wrong += 1;
            }
        }
        // SAFETY: the launch's contract: one word a thread.
        unsafe { arch::store_weak_u32(args.words.add(u64::from(thread)), wrong) };
    }
}

kernel! {
    /// Thread `rounds` does not come to the barrier.
    struct Absent = "absent", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: Args) {
        if arch::thread_index() != args.rounds {
            arch::block_sync();
        }
    }
}

kernel! {
    /// Thread `rounds` does not come to its warp's exchange.
    struct AbsentInWarp = "absent_in_warp", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: Args) {
        if arch::thread_index() != args.rounds {
            arch::warp_sync();
        }
    }
}

kernel! {
    /// Thread `rounds` waits in its warp, the others at the block's barrier.
    struct Crossed = "crossed", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: Args) {
        if arch::thread_index() == args.rounds {
            arch::warp_sync();
        }
        arch::block_sync();
    }
}

static UNWOUND: AtomicU32 = AtomicU32::new(0);

struct CountsItsDrop;

impl Drop for CountsItsDrop {
    fn drop(&mut self) {
        UNWOUND.fetch_add(1, Ordering::Relaxed);
    }
}

kernel! {
    /// Thread `rounds` of block 1 panics; the others of that block wait for it.
    struct Panics = "panics", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: Args) {
        let _count = CountsItsDrop;
        if arch::block_index() == 1 {
            assert!(arch::thread_index() != args.rounds, "planted in thread {}", args.rounds);
            arch::block_sync();
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RingArgs {
    mine: Global<u32>,
    next: Global<u32>,
    policy: PolicyHandle,
    turns: u32,
    reserved: u32,
}

kernel! {
    /// Hands a token round a ring of ranks: each waits for its own word to come to the turn, then moves the next one's on.
    struct Ring = "ring", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: RingArgs) {
        // SAFETY: the launch's contract: the words and the board are mapped and live.
        let (mine, next, policy) =
            unsafe { (Mapped::new(args.mine), Mapped::new(args.next), Policy::new(args.policy)) };
        let site = WaitSite { kind: WaitKind::Semaphore, peer: Rank(0), channel: ChannelId(0) };
        for turn in 1..=args.turns {
            let load = || mine.load::<arch::Acquire, arch::Sys>();
            let missing = |seen| (u64::from(turn), u64::from(seen));
            let ready = |seen| (seen >= turn).then_some(());
            let waited = spin::wait::<1, _, _, _>(policy.patience(), site, load, ready, missing);
            if arch::block_sync_or(waited.is_err()) {
                return;
            }
            if arch::thread_index() == 0 {
                next.add::<arch::Release, arch::Sys>(1);
            }
        }
    }
}

module! {
    static KERNELS = [Neighbours, Exchanges, Absent, AbsentInWarp, Crossed, Panics, Ring];
}

static MODULE: ModuleSource = ModuleSource { name: "blocks", kernels: KERNELS, ptx: &[] };

/// Launches `K` once and gives the threads' words.
fn run<K: Kernel<Args = Args>>(
    device: &Device,
    config: LaunchConfig,
    rounds: u32,
) -> warpwire::Result<Vec<u32>> {
    let stream = device.stream()?;
    let words: Buffer<u32> = device.allocate((config.blocks * config.threads).max(1) as usize)?;
    let function = device.load(&MODULE)?.function::<K>()?;
    // SAFETY: the words outlive the launch, and nobody else touches them.
    unsafe { stream.launch(&function, config, Args { words: words.address(), rounds, reserved: 0 }) }?;
    stream.synchronize()?;
    words.read()
}

#[test]
fn barriers_hold_a_block_of_1024_together() {
    for threads in [1, 2, 31, 33, 256, 1024] {
        let wrong = run::<Neighbours>(&cpu(), LaunchConfig::new(1, threads), 200).unwrap();
        assert!(wrong.iter().all(|&count| count == 0), "{threads} threads");
    }
}

#[test]
fn exchanges_stay_in_the_warp_and_do_not_mix() {
    for threads in (1..=70).chain([1000, 1023, 1024]) {
        let wrong = run::<Exchanges>(&cpu(), LaunchConfig::new(1, threads), 100).unwrap();
        assert!(wrong.iter().all(|&count| count == 0), "{threads} threads");
    }
}

#[test]
fn a_thread_that_ends_before_a_barrier_is_an_error_whoever_comes_first() {
    for absent in [0, 17, 63] {
        let error = run::<Absent>(&cpu(), LaunchConfig::new(1, 64), absent).unwrap_err();
        assert!(
            matches!(&error, Error::BarrierDivergence { waiting: 63, exited: 1, block: 0, kernel } if kernel == "absent"),
            "{error}"
        );
    }
    // A warp of its own is not held up by the other warps.
    for absent in [0, 31, 32, 39] {
        let error = run::<AbsentInWarp>(&cpu(), LaunchConfig::new(1, 40), absent).unwrap_err();
        assert!(matches!(error, Error::BarrierDivergence { .. }), "{error}");
    }
}

#[test]
fn threads_at_two_barriers_at_once_are_an_error() {
    let error = run::<Crossed>(&cpu(), LaunchConfig::new(1, 64), 5).unwrap_err();
    assert!(matches!(error, Error::BarrierDivergence { waiting: 64, exited: 0, .. }), "{error}");
}

#[test]
fn a_panic_ends_its_block_alone() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let module = device.load(&MODULE).unwrap();
    let panics = module.function::<Panics>().unwrap();
    let args = Args { words: Global::NULL, rounds: 40, reserved: 0 };
    // SAFETY: the kernel touches no memory.
    unsafe { stream.launch(&panics, LaunchConfig::new(3, 64), args) }.unwrap();
    let error = stream.synchronize().unwrap_err();
    let Error::KernelPanicked { kernel, block: 1, thread: 40, message } = &error else { panic!("{error}") };
    assert_eq!((kernel.as_str(), message.as_str()), ("panics", "planted in thread 40"));
    // 64 threads each of blocks 0 and 2, and those of block 1 that had begun.
    assert_eq!(UNWOUND.load(Ordering::Relaxed), 64 + 64 + 41);
    // The error is told once, and the stream goes on.
    stream.synchronize().unwrap();
    let words = filled(&device, &[9; 64]);
    let neighbours = module.function::<Neighbours>().unwrap();
    let args = Args { words: words.address(), rounds: 3, reserved: 0 };
    // SAFETY: the words outlive the launch.
    unsafe { stream.launch(&neighbours, LaunchConfig::new(1, 64), args) }.unwrap();
    stream.synchronize().unwrap();
    assert_eq!(words.read().unwrap(), [0; 64]);
    // A block of one thread is no coroutine, and is caught all the same.
    let error = run::<Panics>(&device, LaunchConfig::new(2, 1), 0).unwrap_err();
    assert!(matches!(error, Error::KernelPanicked { block: 1, thread: 0, .. }), "{error}");
}

#[test]
fn what_is_queued_behind_a_failure_does_not_run() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let module = device.load(&MODULE).unwrap();
    let (from, to) = (filled(&device, &[1u8]), filled(&device, &[0u8]));
    let absent = module.function::<Absent>().unwrap();
    let args = Args { words: Global::NULL, rounds: 0, reserved: 0 };
    // SAFETY: the kernel touches no memory; both buffers outlive the copy.
    unsafe {
        stream.launch(&absent, LaunchConfig::new(1, 2), args).unwrap();
        stream.copy(to.address(), from.address(), 1).unwrap();
    }
    stream.synchronize().unwrap_err();
    assert_eq!(to.read().unwrap(), [0]);
    // SAFETY: as above.
    unsafe { stream.copy(to.address(), from.address(), 1) }.unwrap();
    stream.synchronize().unwrap();
    assert_eq!(to.read().unwrap(), [1]);
}

/// Hands a token round `ranks` streams of one device.
fn ring(ranks: u32, config: LaunchConfig, turns: u32) {
    let device = cpu();
    let function = device.load(&MODULE).unwrap().function::<Ring>().unwrap();
    let mut first = vec![0u32; ranks as usize];
    first[0] = 1;
    let words = filled(&device, &first);
    let streams: Vec<_> = (0..ranks).map(|_| device.stream().unwrap()).collect();
    for (rank, stream) in (0..ranks).zip(&streams) {
        let word = |rank: u32| words.address().add(u64::from(rank % ranks));
        let policy = stream.policy(Rank(rank), LONG);
        let args = RingArgs { mine: word(rank), next: word(rank + 1), policy, turns, reserved: 0 };
        // SAFETY: the words outlive the launches, which touch them as the ring says.
        unsafe { stream.launch(&function, config.concurrent(ranks), args) }.unwrap();
    }
    for stream in &streams {
        stream.synchronize().unwrap();
    }
    assert_eq!(words.read().unwrap()[0], turns + 1);
}

#[test]
fn many_ranks_get_on_with_few_processors() {
    ring(33, LaunchConfig::new(1, 1), 50);
    ring(33, LaunchConfig::new(1, 256), 20);
    ring(8, LaunchConfig::new(1, 1024), 20);
}
