//! Launches by name and typed arguments, and every shape that cannot run.

mod support;

use support::{cpu, filled};
use warpwire::abi::Global;
use warpwire::device::{Buffer, Device, DeviceKind, DeviceSelector, LaunchConfig, ModuleSource};
use warpwire::error::{LaunchError, ModuleError, ThreadLimit};
use warpwire::kernel::Kernel;
use warpwire::{Error, ErrorKind};
use warpwire_device::{arch, kernel, module};

#[repr(C)]
#[derive(Clone, Copy)]
struct NumberArgs {
    out: Global<u32>,
    count: u64,
}

kernel! {
    /// Writes each thread's number in the grid.
    struct Number = "number", max_threads = 256, min_blocks = 1;
    unsafe fn(args: NumberArgs) {
        let i = arch::block_index() * arch::block_size() + arch::thread_index();
        if u64::from(i) < args.count {
            // SAFETY: the launch's contract: `out` holds `count` words.
            unsafe { arch::store_weak_u32(args.out.add(u64::from(i)), i) };
        }
    }
}

kernel! {
    /// Writes the block's numbers backwards, by way of shared memory.
    struct Reverse = "reverse", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: NumberArgs) {
        let (thread, threads) = (arch::thread_index(), arch::block_size());
        let shared = arch::dynamic_shared().as_ptr().cast::<u32>();
        assert_eq!(arch::dynamic_shared_bytes(), threads * 4);
        // SAFETY: the launch gives 4 bytes a thread.
        unsafe { shared.add(thread as usize).write(thread) };
        arch::block_sync();
        // SAFETY: as above; written before the barrier.
        let value = unsafe { shared.add((threads - 1 - thread) as usize).read() };
        let first = args.out.add(u64::from(arch::block_index() * threads));
        // SAFETY: the launch's contract: one word a thread.
        unsafe { arch::store_weak_u32(first.add(u64::from(thread)), value) };
    }
}

kernel! {
    /// Has `Number`'s name and another argument block.
    struct OtherNumber = "number", max_threads = 256, min_blocks = 1;
    unsafe fn(args: Global<u32>) {
        let _ = *args;
    }
}

kernel! {
    /// Is in no module.
    struct Stranger = "stranger", max_threads = 2048, min_blocks = 1;
    unsafe fn(args: u32) {
        let _ = *args;
    }
}

kernel! {
    /// Was compiled for more threads than a block has.
    struct Wide = "wide", max_threads = 2048, min_blocks = 1;
    unsafe fn(args: u32) {
        let _ = *args;
    }
}

module! {
    static KERNELS = [Number, Reverse, Wide];
}

static MODULE: ModuleSource = ModuleSource { name: "launches", kernels: KERNELS, ptx: &[] };

#[test]
fn every_thread_of_every_block_runs() {
    let device = cpu();
    let (stream, module) = (device.stream().unwrap(), device.load(&MODULE).unwrap());
    let function = module.function::<Number>().unwrap();
    // The last is more than the device holds at once.
    for (blocks, threads) in [(1, 1), (1, 2), (3, 33), (7, 256), (5000, 64)] {
        let count = blocks * threads;
        let out: Buffer<u32> = device.allocate(count as usize).unwrap();
        out.fill_bytes(0xFF).unwrap();
        let args = NumberArgs { out: out.address(), count: u64::from(count) };
        // SAFETY: `out` outlives the launch, and nobody else touches it.
        unsafe { stream.launch(&function, LaunchConfig::new(blocks, threads), args) }.unwrap();
        stream.synchronize().unwrap();
        assert!(out.read().unwrap().into_iter().eq(0..count), "{blocks} x {threads}");
    }
}

#[test]
fn a_block_has_the_shared_memory_that_it_asked_for() {
    let device = cpu();
    let (stream, module) = (device.stream().unwrap(), device.load(&MODULE).unwrap());
    let function = module.function::<Reverse>().unwrap();
    let threads = 1000;
    let out = device.allocate(4 * threads as usize).unwrap();
    let args = NumberArgs { out: out.address(), count: 0 };
    // SAFETY: `out` outlives the launch, and nobody else touches it.
    unsafe { stream.launch(&function, LaunchConfig::new(4, threads).shared_bytes(threads * 4), args) }
        .unwrap();
    stream.synchronize().unwrap();
    assert!(out.read().unwrap().into_iter().eq((0..4).flat_map(|_| (0..threads).rev())));
}

#[test]
fn an_unknown_kernel_is_named_with_those_that_there_are() {
    let module = cpu().load(&MODULE).unwrap();
    let error = module.function::<Stranger>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let text = error.to_string();
    for name in ["stranger", "launches", "number", "reverse", "wide"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn arguments_of_another_kernel_are_refused() {
    let error = cpu().load(&MODULE).unwrap().function::<OtherNumber>().unwrap_err();
    assert!(
        matches!(error, Error::Module(ModuleError::ArgumentMismatch { expected: 16, got: 8, .. })),
        "{error}"
    );
}

/// The error of a launch of `K` with this shape.
fn refused<K: Kernel<Args: Default>>(config: LaunchConfig) -> Error {
    let device = cpu();
    let (stream, module) = (device.stream().unwrap(), device.load(&MODULE).unwrap());
    // SAFETY: the shape is refused, so that nothing runs.
    let error =
        unsafe { stream.launch(&module.function::<K>().unwrap(), config, K::Args::default()) }.unwrap_err();
    stream.synchronize().expect("nothing was queued");
    error
}

impl Default for NumberArgs {
    fn default() -> Self {
        Self { out: Global::NULL, count: 0 }
    }
}

#[test]
fn a_launch_of_nothing_is_refused() {
    for (blocks, threads) in [(0, 1), (1, 0), (0, 0)] {
        let error = refused::<Number>(LaunchConfig::new(blocks, threads));
        assert!(matches!(error, Error::Launch(LaunchError::Empty { .. })), "{error}");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn too_many_threads_are_refused_with_both_numbers() {
    let error = refused::<Number>(LaunchConfig::new(1, 257));
    assert!(
        matches!(
            error,
            Error::Launch(LaunchError::TooManyThreads {
                asked: 257,
                limit: 256,
                limited_by: ThreadLimit::Kernel,
                ..
            })
        ),
        "{error}"
    );
    assert!(error.to_string().contains("257") && error.to_string().contains("256"), "{error}");
    let error = refused::<Wide>(LaunchConfig::new(1, 1025));
    assert!(
        matches!(
            error,
            Error::Launch(LaunchError::TooManyThreads {
                asked: 1025,
                limit: 1024,
                limited_by: ThreadLimit::Device,
                ..
            })
        ),
        "{error}"
    );
}

#[test]
fn a_grid_that_cannot_be_numbered_is_refused() {
    for config in [LaunchConfig::new(1 << 25, 128), LaunchConfig::new(1 << 31, 1)] {
        let error = refused::<Number>(config);
        assert!(matches!(error, Error::Launch(LaunchError::GridTooLarge { .. })), "{error}");
        assert_eq!(error.kind(), ErrorKind::Limit);
    }
}

#[test]
fn too_much_shared_memory_is_refused_with_both_numbers() {
    let error = refused::<Reverse>(LaunchConfig::new(1, 32).shared_bytes(227 * 1024 + 1));
    assert!(
        matches!(error, Error::Launch(LaunchError::SharedTooLarge { asked: 232449, limit: 232448, .. })),
        "{error}"
    );
}

#[test]
fn blocks_that_could_never_all_run_are_refused_with_both_numbers() {
    let device = cpu();
    let function = device.load(&MODULE).unwrap().function::<Reverse>().unwrap();
    let limit = function.resident_blocks(1024, 0).unwrap();
    let config = LaunchConfig::new(limit + 1, 1024);
    let error = refused::<Reverse>(config.concurrent(1));
    assert!(
        matches!(error, Error::Launch(LaunchError::TooManyBlocks { limit: l, .. }) if l == limit),
        "{error}"
    );
    assert!(error.to_string().contains(&limit.to_string()), "{error}");
    assert!(error.to_string().contains(&(limit + 1).to_string()), "{error}");
    // The same where several grids have to run together.
    let error = refused::<Reverse>(LaunchConfig::new(limit / 2, 1024).concurrent(3));
    assert!(
        matches!(error, Error::Launch(LaunchError::TooManyBlocks { asked, .. }) if asked > u64::from(limit)),
        "{error}"
    );
}

#[test]
fn one_devices_function_is_refused_by_another() {
    let (one, other) = (cpu(), cpu());
    assert!(!one.is_same(&other) && one.is_same(&one.clone()));
    let function = one.load(&MODULE).unwrap().function::<Wide>().unwrap();
    let stream = other.stream().unwrap();
    // SAFETY: it is refused, so that nothing runs.
    let error = unsafe { stream.launch(&function, LaunchConfig::new(1, 1), 0) }.unwrap_err();
    assert!(matches!(error, Error::ForeignObject { what: "function" }), "{error}");
}

#[test]
fn a_choice_that_was_left_open_is_explained() {
    let device = Device::open(DeviceSelector::Auto).unwrap();
    let note = device.selection_note().unwrap();
    match device.properties().kind {
        DeviceKind::Cuda => assert!(note.contains("GPU"), "{note}"),
        DeviceKind::Cpu => {
            assert!(note.contains("CPU device"), "{note}");
            let error = Device::open(DeviceSelector::Cuda(0)).unwrap_err();
            assert!(note.contains(&error.to_string()), "{note}");
        }
    }
    assert_eq!(cpu().selection_note(), None);
}

#[test]
fn buffers_are_zeroed_and_checked() {
    let device = cpu();
    assert_eq!(device.properties().kind, DeviceKind::Cpu);
    assert!(matches!(device.allocate::<u32>(0), Err(Error::EmptyAllocation)));
    assert!(matches!(device.allocate::<u64>(usize::MAX / 4), Err(Error::SizeOverflow { .. })));
    assert_eq!(device.allocate::<u8>(1 << 50).unwrap_err().kind(), ErrorKind::OutOfMemory);
    let buffer = device.allocate::<u16>(100_003).unwrap();
    assert!(buffer.read().unwrap().iter().all(|&value| value == 0));
    buffer.write_at(99_999, &[1, 2, 3, 4]).unwrap();
    let mut tail = [0; 5];
    buffer.read_at(99_998, &mut tail).unwrap();
    assert_eq!(tail, [0, 1, 2, 3, 4]);
    for error in [
        buffer.write_at(100_000, &[0; 4]).unwrap_err(),
        buffer.write_at(usize::MAX, &[0; 2]).unwrap_err(),
        buffer.read_at(100_003, &mut [0; 1]).unwrap_err(),
    ] {
        assert!(matches!(error, Error::OutOfRange { capacity: 100_003, .. }), "{error}");
    }
    let host = device.allocate_host::<u32>(3).unwrap();
    host.write(&[7, 8, 9]).unwrap();
    // SAFETY: three elements, which nobody writes now.
    assert_eq!(unsafe { host.as_ptr().add(2).read() }, 9);
    assert_eq!(filled(&device, &[1.5f32, 2.5]).read().unwrap(), [1.5, 2.5]);
}
