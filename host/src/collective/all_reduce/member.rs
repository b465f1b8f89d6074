//! One rank's part of an all-reduce, in whatever process the others are.

use std::time::Duration;

use warpwire_device::abi::{Global, Ll16, MAX_RANKS, Packet, Rank, RankTable};
use warpwire_kernels::all_pair::{AllPairArgs, AllReduceAllPair, MAX_BLOCKS, MAX_SLOTS, Round};

use super::super::shape;
use super::operands::{self, Operands};
use super::turn::Turn;
use crate::device::{Buffer, Device, Function, LaunchConfig, MemoryKind, MemoryOptions, Stream};
use crate::error::{Error, Result};

/// Elements that a packet carries.
const PER_PACKET: usize = Ll16::PAYLOAD_BYTES as usize / size_of::<f32>();

/// How large an all-reduce is: the same for every rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    ranks: usize,
    /// Packets of a row: a power of two.
    slots: usize,
}

impl Extent {
    pub(super) fn new(ranks: usize, max_elements: usize) -> Result<Self> {
        if !(2..=MAX_RANKS).contains(&ranks) {
            return Err(Error::RankCount { ranks, least: 2, most: MAX_RANKS });
        }
        let limit = MAX_SLOTS as usize * PER_PACKET;
        if max_elements == 0 || max_elements > limit {
            return Err(Error::TooManyElements { count: max_elements, limit });
        }
        // At most `MAX_SLOTS`, which is a power of two.
        Ok(Self { ranks, slots: max_elements.div_ceil(PER_PACKET).next_power_of_two() })
    }

    fn max_elements(&self) -> usize {
        self.slots * PER_PACKET
    }
}

/// How many ranks take places on one device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    /// On the device that has the most: the grid is the same on every rank.
    pub(super) most: u32,
    /// On this rank's, itself included.
    pub(super) here: u32,
    /// Of these, those of other processes.
    pub(super) elsewhere: u32,
}

/// What a rank has of its own: where the others' packets arrive, and its count of rounds.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) function: Function<AllReduceAllPair>,
    pub(super) scratch: Buffer<Ll16>,
    rounds: Buffer<Round>,
}

impl Own {
    /// On `device`, its scratch in memory of this kind.
    pub(super) fn new(device: &Device, extent: Extent, scratch: MemoryKind) -> Result<Self> {
        let packets = 2 * (extent.ranks - 1) * extent.slots;
        Ok(Self {
            function: device.builtin()?.function()?,
            scratch: device.allocate_with(packets, MemoryOptions::new(scratch))?,
            rounds: device.allocate(MAX_BLOCKS as usize)?,
        })
    }

    /// Forgets all rounds.
    fn reset(&self) -> Result<()> {
        self.scratch.fill_bytes(0)?;
        self.rounds.fill_bytes(0)
    }
}

/// A rank that knows everybody's scratch.
#[derive(Debug)]
pub(super) struct Member {
    rank: Rank,
    own: Own,
    extent: Extent,
    sharing: Sharing,
    turn: Turn,
    /// By rank, mapped for this rank's device.
    scratch: RankTable<Global<Ll16>>,
}

impl Member {
    pub(super) fn new(
        rank: Rank,
        own: Own,
        extent: Extent,
        sharing: Sharing,
        scratch: &[Global<Ll16>],
    ) -> Result<Self> {
        let count = Error::RankCount { ranks: scratch.len(), least: 2, most: MAX_RANKS };
        let scratch = RankTable::new(scratch).ok_or(count)?;
        Ok(Self { rank, own, extent, sharing, turn: Turn::default(), scratch })
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    pub(super) fn turn(&self) -> &Turn {
        &self.turn
    }

    pub(super) fn launch_of(
        &self,
        stream: &Stream,
        operands: Operands,
        timeout: Duration,
    ) -> Result<(&Function<AllReduceAllPair>, LaunchConfig, AllPairArgs)> {
        let Operands { input, output, count } = operands;
        let limit = self.extent.max_elements();
        if count > limit {
            return Err(Error::TooManyElements { count, limit });
        }
        operands::check(input, output, count)?;
        let Own { function, rounds, .. } = &self.own;
        let Sharing { most, here, elsewhere } = self.sharing;
        let config = shape::all_pair(
            count.div_ceil(PER_PACKET) as u64,
            function.device().properties().kind,
            function.max_threads(),
            most,
            |threads| function.resident_blocks(threads, 0),
        )?;
        let args = AllPairArgs {
            scratch: self.scratch,
            policy: stream.policy(self.rank, timeout),
            input,
            output,
            count: count as u64,
            rounds: rounds.address(),
            slots: self.extent.slots as u32,
            ranks: self.extent.ranks as u32,
        };
        Ok((function, config.concurrent(here).elsewhere(elsewhere), args))
    }

    pub(super) fn reset(&self) -> Result<()> {
        self.own.reset()
    }
}
