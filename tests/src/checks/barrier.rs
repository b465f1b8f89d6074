//! The grid barrier.

use warpwire::abi::{BarrierHandle, Rank};
use warpwire::device::{Device, DeviceKind, LaunchConfig};
use warpwire_kernels::barrier::{BarrierRounds, BarrierRoundsArgs};

use super::rig::{LONG, filled, function, zeroed};

/// No block passes before its neighbour has come, on grids of one block up to all that the device holds; the word is good
/// for the next grid without being zeroed (C22).
pub fn every_block_is_held_back(device: &Device) {
    let (stream, kernel) = (device.stream().unwrap(), function::<BarrierRounds>(device));
    let most = |threads| kernel.resident_blocks(threads, 0).unwrap();
    let is_gpu = device.properties().kind == DeviceKind::Cuda;
    let full = if is_gpu { (most(1024), 1024, 20) } else { (most(256).min(16), 256, 5) };
    let word = zeroed::<u32>(device, 1);
    for (blocks, threads, rounds) in [(1, 1, 50), (2, 1, 51), (3, 33, 50), (8, 64, 101), (33, 2, 20), full] {
        let (progress, late) =
            (zeroed::<u32>(device, blocks as usize), filled(device, &vec![99_u32; blocks as usize]));
        let args = BarrierRoundsArgs {
            barrier: BarrierHandle { word: word.address() },
            policy: stream.policy(Rank(0), LONG),
            progress: progress.address(),
            late: late.address(),
            rounds,
            reserved: 0,
        };
        // SAFETY: a word a block, which outlive the launch; the barrier's word is this grid's as long as it runs.
        unsafe { stream.launch(&kernel, LaunchConfig::new(blocks, threads).concurrent(1), args) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(progress.read().unwrap(), vec![rounds; blocks as usize], "{blocks} x {threads}");
        assert_eq!(
            late.read().unwrap(),
            vec![0; blocks as usize],
            "{blocks} x {threads}: a block passed too early"
        );
        // Two barriers a round: the phase is as it was.
        assert_eq!(word.read().unwrap(), [0], "{blocks} x {threads}");
    }
}
