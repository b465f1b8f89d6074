//! What is refused before anything runs.

use warpwire::abi::Rank;
use warpwire::device::{Device, LaunchConfig, Stream, builtin_module};
use warpwire::error::{LaunchError, ModuleError};
use warpwire::kernel::Kernel;
use warpwire::{Error, ErrorKind};
use warpwire_device::kernel;
use warpwire_kernels::barrier::{BarrierRounds, BarrierRoundsArgs};
use warpwire_kernels::transfer::{Put, TransferArgs};

use super::rig::{Ends, LONG, function, zeroed};

/// Arguments that no kernel of warpwire's takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OtherArgs {
    /// A number.
    pub number: u32,
}

kernel! {
    /// A kernel that no module has.
    pub struct Missing = "warpwire_no_such_kernel", max_threads = 32, min_blocks = 1;
    unsafe fn(args: OtherArgs) {
        let _ = args.number;
    }
}

kernel! {
    /// A kernel under another's name, with other arguments.
    pub struct Impostor = "warpwire_put", max_threads = 1024, min_blocks = 1;
    unsafe fn(args: OtherArgs) {
        let _ = args.number;
    }
}

fn barrier_args(device: &Device, stream: &Stream) -> BarrierRoundsArgs {
    // The launches here are refused, so the words need not outlive anything.
    let word = zeroed::<u32>(device, 1);
    BarrierRoundsArgs {
        barrier: warpwire::abi::BarrierHandle { word: word.address() },
        policy: stream.policy(Rank(0), LONG),
        progress: word.address(),
        late: word.address(),
        rounds: 1,
        reserved: 0,
    }
}

/// C21: blocks that wait for each other, one more than the device holds, are refused with the limit; so are several grids
/// that would have to share it.
pub fn one_block_too_many(device: &Device) {
    let (stream, kernel) = (device.stream().unwrap(), function::<BarrierRounds>(device));
    for threads in [1, 64, 1024] {
        let limit = kernel.resident_blocks(threads, 0).unwrap();
        assert!(limit > 0);
        for (blocks, grids) in [(limit + 1, 1), (limit / 2 + 1, 2)] {
            let config = LaunchConfig::new(blocks, threads).concurrent(grids);
            let args = barrier_args(device, &stream);
            // SAFETY: refused, as is checked; nothing runs.
            let error = unsafe { stream.launch(&kernel, config, args) }.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
            let text = error.to_string();
            match error {
                Error::Launch(LaunchError::TooManyBlocks { asked, limit: stated, .. }) => {
                    assert_eq!((asked, stated), (u64::from(blocks) * u64::from(grids), limit));
                    assert!(text.contains(&limit.to_string()) && text.contains(&asked.to_string()), "{text}");
                }
                other => panic!("{other}"),
            }
        }
    }
    stream.synchronize().unwrap();
}

/// No threads, no blocks, too many threads, too much shared memory.
pub fn shapes_that_cannot_run(device: &Device) {
    let (stream, kernel) = (device.stream().unwrap(), function::<Put>(device));
    let ends = Ends::new(device, warpwire::abi::ChannelId(0), 0);
    let memory = zeroed::<u8>(device, 64).address();
    let args = TransferArgs {
        channel: ends.channel(0, memory, memory, memory),
        policy: stream.policy(Rank(0), LONG),
        remote_offset: 0,
        local_offset: 32,
        bytes: 0,
        signal_or_flag: 0,
        reserved: 0,
    };
    // SAFETY: refused, as is checked; nothing runs.
    let refused = |config| unsafe { stream.launch(&kernel, config, args) }.unwrap_err();
    let shared = device.properties().max_shared_bytes_per_block;
    assert!(matches!(refused(LaunchConfig::new(1, 0)), Error::Launch(LaunchError::Empty { threads: 0, .. })));
    assert!(matches!(refused(LaunchConfig::new(0, 32)), Error::Launch(LaunchError::Empty { blocks: 0, .. })));
    assert!(matches!(
        refused(LaunchConfig::new(1, 1025)),
        Error::Launch(LaunchError::TooManyThreads { asked: 1025, limit: 1024, .. })
    ));
    assert!(matches!(
        refused(LaunchConfig::new(1, u32::MAX)),
        Error::Launch(LaunchError::TooManyThreads { .. })
    ));
    assert!(matches!(
        refused(LaunchConfig::new(u32::MAX, 1024)),
        Error::Launch(LaunchError::GridTooLarge { .. })
    ));
    let too_large = refused(LaunchConfig::new(1, 32).shared_bytes(shared + 1));
    assert!(
        matches!(too_large, Error::Launch(LaunchError::SharedTooLarge { limit, .. }) if limit == shared),
        "{too_large}"
    );
    assert!(too_large.to_string().contains(&shared.to_string()), "{too_large}");
    stream.synchronize().unwrap();
}

/// A name that the module does not have, and one whose kernel takes other arguments.
pub fn kernels_that_are_not_there(device: &Device) {
    let module = device.load(builtin_module()).unwrap();
    let missing = module.function::<Missing>().unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let text = missing.to_string();
    assert!(text.contains(Missing::NAME) && text.contains(Put::NAME), "{text}");

    let impostor = module.function::<Impostor>().unwrap_err();
    assert!(
        matches!(impostor, Error::Module(ModuleError::ArgumentMismatch { expected, got, .. })
            if (expected, got) == (size_of::<TransferArgs>(), size_of::<OtherArgs>())),
        "{impostor}"
    );
}
