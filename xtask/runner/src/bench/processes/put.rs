//! Puts from one rank's device into another's.

use std::rc::Rc;

use warpwire::abi::{Global, Rank};
use warpwire::channel::ChannelBuffers;
use warpwire::device::{Buffer, LaunchConfig};
use warpwire_device::bulk::RING_BYTES;
use warpwire_kernels::bulk::PutBulk;
use warpwire_kernels::transfer::{Put, TransferArgs};

use super::order::By;
use super::peers::Peers;
use crate::bench::case::Contestant;
use crate::bench::memory::Memory;
use crate::bench::setup::Bench;
use crate::bench::transfer::{Transfer, Value, shapes};

/// Blocks of one warp that drive bulk copies, to choose from.
const BULK_BLOCKS: [u32; 5] = [8, 16, 32, 64, 132];

/// Every contender's put of `bytes` bytes and the copy engine's, in GB/s; `None` for a rank that only receives. Whoever puts
/// poisons the peer's memory before, and compares every byte of it after: nobody else touches it meanwhile.
pub fn put<'b>(
    bench: &'b Bench,
    peers: &'b Peers,
    by: By,
    bytes: usize,
    both: bool,
) -> anyhow::Result<Option<Vec<Contestant<'b>>>> {
    let inbox: Buffer<u8> = bench.device.allocate_shareable(Memory::room(bytes))?;
    let shown = peers.show(&inbox)?;
    if peers.rank() != Rank(0) && !both {
        // The sender has it mapped, which keeps it.
        return Ok(None);
    }
    let peer = Rank(1 - peers.rank().0);
    let memory = Rc::new(Memory::onto(&bench.device, bytes, shown.open(&bench.device, peer)?)?);
    let (local, remote) = (memory.source(), memory.destination());
    let args = TransferArgs {
        channel: bench.channel.handle(ChannelBuffers { local, remote, packets: Global::NULL }),
        policy: bench.policy(),
        remote_offset: 0,
        local_offset: 0,
        bytes: bytes as u64,
        signal_or_flag: 0,
        reserved: 0,
    };
    let shapes = match by {
        By::Threads => shapes(bench, bytes / 16),
        By::Bulk => {
            let most = bench.pick(bench.device.properties().multiprocessors, 8);
            let blocks = BULK_BLOCKS.into_iter().filter(|&blocks| blocks <= most);
            blocks.map(|blocks| LaunchConfig::new(blocks, 32).shared_bytes(RING_BYTES)).collect()
        }
    };
    let transfer = Transfer {
        args,
        shapes: &shapes,
        arrange: &|| memory.poison(),
        check: &|| memory.expect_copy(0, 0, bytes),
        value: Value::Rate(bytes),
    };
    // SAFETY: both ranges lie in the memory, which each contestant keeps; the shapes of bulk copies have the ring's shared
    // memory.
    let mut contestants = unsafe {
        match by {
            By::Threads => transfer.contestants(bench, bench.entries::<Put>()?),
            By::Bulk => transfer.contestants(bench, bench.entries::<PutBulk>()?),
        }
    }?;
    // SAFETY: as above.
    contestants.push(unsafe { transfer.driver_copy(bench, remote, local, bytes) }?);
    let kept = Rc::new((memory, inbox, shown));
    let keeping = contestants.into_iter().map(|mut contestant| {
        let kept = Rc::clone(&kept);
        let mut measure = contestant.measure;
        contestant.measure = Box::new(move || {
            let _alive = &kept;
            measure()
        });
        contestant
    });
    Ok(Some(keeping.collect()))
}
