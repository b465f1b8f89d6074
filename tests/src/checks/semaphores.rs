//! Semaphores within a device.

use warpwire::abi::{ChannelId, InboundHandle, OutboundHandle, Rank, SemaphoreHandle};
use warpwire::device::{Device, DeviceKind, LaunchConfig};
use warpwire_check_kernels::section::{BoundedSection, BoundedSectionArgs};

use super::check_module::check_module;
use super::rig::{LONG, filled, zeroed};

/// C12: a semaphore of 1 and one of 3 let so many of 64 blocks into a section and no more, whoever waits is woken by whoever
/// leaves, and nobody's visit is lost; from counters at 0, and over the carry into their upper halves.
pub fn a_bounded_semaphore_admits_so_many(device: &Device) {
    const BLOCKS: u32 = 64;
    let Some(module) = check_module(device, "a_bounded_semaphore_admits_so_many") else { return };
    let (stream, kernel) = (device.stream().unwrap(), module.function::<BoundedSection>().unwrap());
    // Blocks of the CPU device take turns on few processors, and each has to come to its own.
    let rounds = if device.properties().kind == DeviceKind::Cuda { 1000 } else { 200 };
    for (capacity, start) in [(1_u32, 0_u64), (3, 0), (3, u64::from(u32::MAX) - 100), (BLOCKS, 0)] {
        let token = filled(device, &[start + u64::from(capacity)]);
        let expected = filled(device, &[start]);
        let (visits, counts) = (zeroed::<u64>(device, 1), zeroed::<u32>(device, 2));
        let inbound = InboundHandle {
            token: token.address(),
            expected: expected.address(),
            peer: Rank(0),
            channel: ChannelId(0),
        };
        let args = BoundedSectionArgs {
            entrance: SemaphoreHandle { inbound, outbound: OutboundHandle { token: token.address() } },
            policy: stream.policy(Rank(0), LONG),
            visits: visits.address(),
            inside: counts.address(),
            crowded: counts.address().add(1),
            capacity,
            rounds,
        };
        // SAFETY: the words outlive the launch.
        unsafe { stream.launch(&kernel, LaunchConfig::new(BLOCKS, 1).concurrent(1), args) }.unwrap();
        stream.synchronize().unwrap();
        let entered = u64::from(BLOCKS * rounds);
        assert_eq!(visits.read().unwrap(), [entered], "visits of a section for {capacity}");
        assert_eq!(counts.read().unwrap(), [0, 0], "left inside, and too many inside, of {capacity}");
        assert_eq!(expected.read().unwrap(), [start + entered], "each waited once a visit");
        assert_eq!(token.read().unwrap(), [start + entered + u64::from(capacity)]);
    }
}
