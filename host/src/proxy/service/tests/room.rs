//! Room for copies beside the kernels that wait for them.

use warpwire_device::abi::{MemoryId, PortChannelBaseHandle, PortChannelHandle, Rank};
use warpwire_kernels::port::{PortCall, PortRequests, PortRequestsArgs};

use super::link::LocalLink;
use super::rig::{LONG, Rig};
use crate::connection::Transport;
use crate::device::{Device, Function, LaunchConfig};
use crate::error::{Error, LaunchError, Result};

/// Threads that the copies need.
const ROOM: u32 = 512;
/// Threads of the launches' blocks.
const THREADS: u32 = 1024;

/// A launch of blocks that wait for each other, as far as the device is told; they make no call.
fn launch(
    device: &Device,
    function: &Function<PortRequests>,
    base: PortChannelBaseHandle,
    blocks: u32,
) -> Result<()> {
    let stream = device.stream().unwrap();
    let (destination, source) = (MemoryId::default(), MemoryId::default());
    let args = PortRequestsArgs {
        channel: PortChannelHandle { base, destination, source },
        policy: stream.policy(Rank(0), LONG),
        destination_offset: 0,
        source_offset: 0,
        bytes: 0,
        count: 0,
        call: PortCall::Wait,
    };
    let config = LaunchConfig::new(blocks, THREADS).concurrent(1);
    // SAFETY: it makes no call, and so touches nothing; the board outlives the launch, which is waited for.
    unsafe { stream.launch(function, config, args) }?;
    stream.synchronize()
}

/// Where a port's copies are made by threads of the device, a launch that waits leaves them room, as long as the service.
#[test]
fn a_launch_that_waits_leaves_room_for_copies() {
    let rig = Rig::new(2);
    let device = rig.device.clone();
    let function = device.builtin().unwrap().function::<PortRequests>().unwrap();
    let most = function.resident_blocks(THREADS, 0).unwrap();
    let plain = rig.port(Rank(1), 0);
    let base = plain.channel.base_handle();
    launch(&device, &function, base, most).unwrap();
    let link = LocalLink::new(Rank(1), Transport::Ethernet).with_room(ROOM);
    let needy = rig.port_over(link, 1).unwrap();
    let refused = launch(&device, &function, base, most).unwrap_err();
    assert!(refused.to_string().contains("beside the 512 threads that copies through ports"), "{refused}");
    let limit = match refused {
        Error::Launch(LaunchError::TooManyBlocks { room: ROOM, limit, .. }) => limit,
        other => panic!("{other}"),
    };
    assert!(0 < limit && limit < most, "{limit} of {most}");
    launch(&device, &function, base, limit).unwrap();
    drop((plain, needy, rig));
    launch(&device, &function, base, most).unwrap();
}
