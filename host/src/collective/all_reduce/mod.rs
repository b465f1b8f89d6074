//! All-reduce, among the ranks of one process or of several.
//!
//! Layers: `operands`, `turn` < `member` < this.

mod member;
mod operands;
mod turn;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use warpwire_device::abi::Rank;
use warpwire_kernels::all_pair::{AllPairArgs, AllReduceAllPair};

pub use operands::Operands;

use crate::communicator::{Communicator, same};
use crate::device::{Device, DeviceKind, Function, LaunchConfig, MemoryKind, Stream};
use crate::error::{Error, Result};
use crate::memory::{RegisteredMemory, Transports};
use member::{Extent, Member, Own, Sharing};

/// The sum over all ranks, for messages up to a size that is fixed when it is made: all-pair packets, one step.
///
/// Either all ranks are in this process ([`AllReduce::new`]), or one is, and the others wherever the communicator has them
/// ([`AllReduce::across`]). Several may share a device. Every rank calls [`AllReduce::enqueue`] once a round, each on a
/// stream of its own, in the same order of rounds and with the same count.
#[derive(Debug)]
pub struct AllReduce {
    /// The ranks of this process.
    members: Vec<Member>,
    ranks: usize,
    across: Option<Across>,
}

/// What keeps the other processes' scratch mapped, and this one's registered.
#[derive(Debug)]
struct Across {
    communicator: Communicator,
    _scratch: Vec<RegisteredMemory>,
}

/// What has to be alike on all ranks.
#[derive(Debug, Serialize, Deserialize)]
struct Alike {
    max_elements: u64,
    multiprocessors: u64,
    /// Of the kernel's largest blocks, those that a device holds.
    resident: u64,
}

impl AllReduce {
    /// An all-reduce among `devices.len()` ranks of this process, rank `r` on `devices[r]`, of up to `max_elements` elements.
    ///
    /// # Errors
    ///
    /// [`Error::RankCount`] for fewer than 2 ranks or more than
    /// [`MAX_RANKS`](warpwire_device::abi::MAX_RANKS); [`Error::TooManyElements`];
    /// [`Error::NoPeerAccess`] where the ranks are on several GPUs; those of loading the kernels and of the allocations.
    pub fn new(devices: &[Device], max_elements: usize) -> Result<Self> {
        let extent = Extent::new(devices.len(), max_elements)?;
        let several_gpus =
            devices.iter().any(|d| d.properties().kind == DeviceKind::Cuda && !d.is_same(&devices[0]));
        if several_gpus {
            return Err(Error::NoPeerAccess);
        }
        let own = devices.iter().map(|device| Own::new(device, extent, MemoryKind::Device));
        let own: Vec<Own> = own.collect::<Result<_>>()?;
        let scratch: Vec<_> = own.iter().map(|own| own.scratch.address()).collect();
        let sharing = |device: &Device| devices.iter().filter(|other| other.is_same(device)).count() as u32;
        let members = (0..).map(Rank).zip(own).zip(devices).map(|((rank, own), device)| {
            let sharing = Sharing { most: sharing(device), here: sharing(device), elsewhere: 0 };
            Member::new(rank, own, extent, sharing, &scratch)
        });
        Ok(Self { members: members.collect::<Result<_>>()?, ranks: devices.len(), across: None })
    }

    /// This rank's part of an all-reduce among the communicator's ranks, of up to `max_elements` elements. Collective.
    ///
    /// # Errors
    ///
    /// On every rank alike, before any kernel: [`CommunicatorError::Disagreement`](crate::error::CommunicatorError) where
    /// the ranks give different numbers of elements, or their devices are of different sizes (the grids have to be the
    /// same), with two ranks and their values;
    /// [`CommunicatorError::PeerFailed`](crate::error::CommunicatorError) where another rank could not do its part. On this
    /// rank: as for [`AllReduce::new`], and what kept its scratch from being shared.
    pub fn across(communicator: &Communicator, max_elements: usize) -> Result<Self> {
        const OPERATION: &str = "setting up an all-reduce";
        let (ranks, device) = (communicator.size(), communicator.device());
        // What fails on this rank is told to the others, which would wait for it else.
        let prepared = Extent::new(ranks, max_elements).and_then(|extent| {
            let own = Own::new(device, extent, device.shareable_kind()?)?;
            let alike = Alike {
                max_elements: max_elements as u64,
                multiprocessors: device.properties().multiprocessors.into(),
                resident: own.function.resident_blocks(own.function.max_threads(), 0)?.into(),
            };
            Ok((alike, (extent, own)))
        });
        let (all, (extent, own)) = communicator.all_gather(OPERATION, prepared)?;
        same("the largest number of elements", all.iter().map(|rank| rank.max_elements))?;
        same("the number of multiprocessors", all.iter().map(|rank| rank.multiprocessors))?;
        same("the number of blocks that a device holds", all.iter().map(|rank| rank.resident))?;

        let registered = communicator.register_memory(&own.scratch, Transports::CUDA_IPC);
        let memories = communicator.exchange_memory(OPERATION, registered)?;
        let scratch: Option<Vec<_>> =
            memories.iter().map(|memory| memory.address().map(|address| address.cast())).collect();
        let scratch = scratch.ok_or(Error::NoPeerAccess)?;
        let config = communicator.concurrent(LaunchConfig::new(1, 1));
        let sharing = Sharing {
            most: communicator.most_ranks_on_a_device(),
            here: config.concurrent,
            elsewhere: config.elsewhere,
        };
        let member = Member::new(communicator.rank(), own, extent, sharing, &scratch)?;
        let across = Across { communicator: communicator.clone(), _scratch: memories };
        Ok(Self { members: vec![member], ranks, across: Some(across) })
    }

    /// Ranks of the group.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Queues `rank`'s part of a round on `stream`; its waits last at most `timeout` each. Nothing is queued for 0 elements.
    ///
    /// It may be captured into a graph, also as the rank's first round: the rounds are counted on the device, and nothing is
    /// allocated. When a graph's rounds run is the caller's to order with the rank's others.
    ///
    /// # Errors
    ///
    /// Before anything is queued: those of [`AllReduce::launch_of`] and of [`Stream::launch`]; [`Error::RankBusy`] where the
    /// rank's last round was queued on another stream that has work in flight. A peer that does not take part:
    /// [`Error::WaitFailed`] from [`Stream::synchronize`]; the group then has to be [`reset`](AllReduce::reset) before its
    /// next round.
    ///
    /// # Safety
    ///
    /// Until the launch has ended, `operands` holds addresses of live memory of the rank's device that nobody else touches
    /// (but for reading the input), and `self` is not dropped.
    pub unsafe fn enqueue(
        &self,
        rank: Rank,
        stream: &Stream,
        operands: Operands,
        timeout: Duration,
    ) -> Result<()> {
        let member = self.member(rank)?;
        let (function, config, args) = member.launch_of(stream, operands, timeout)?;
        if operands.count == 0 {
            return Ok(());
        }
        // SAFETY: the scratch of every rank and the rounds live as long as `self`, the operands as long as the caller says,
        // the board as long as the stream. All are reached by the rank's device: within a process there is only one GPU, or
        // none, and of other processes they are mapped for it. No other round of the rank is in flight: it is its turn.
        member.turn().take(rank, stream, || unsafe { stream.launch(function, config, args) })
    }

    /// What [`AllReduce::enqueue`] launches for `rank`: the kernel, the shape and the arguments, for a kernel of one's own that
    /// takes the same ones. That the rank has no other round in flight is then the caller's to see to.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRank`] for a rank that is not in this process, [`Error::TooManyElements`], [`Error::Misaligned`],
    /// [`Error::Overlap`], and the driver's.
    pub fn launch_of(
        &self,
        rank: Rank,
        stream: &Stream,
        operands: Operands,
        timeout: Duration,
    ) -> Result<(&Function<AllReduceAllPair>, LaunchConfig, AllPairArgs)> {
        self.member(rank)?.launch_of(stream, operands, timeout)
    }

    fn member(&self, rank: Rank) -> Result<&Member> {
        let member = self.members.iter().find(|member| member.rank() == rank);
        member.ok_or(Error::NoSuchRank { rank, ranks: self.ranks })
    }

    /// Forgets all rounds, after a failed one. No launch of any rank may be in flight; each stream has to be reset too.
    /// Collective where the ranks are in several processes.
    ///
    /// # Errors
    ///
    /// The driver's and the bootstrap's.
    pub fn reset(&mut self) -> Result<()> {
        // Nobody's packets of the last round may come behind this rank's zeros, nor zeros behind the next round's packets.
        self.barrier()?;
        self.members.iter().try_for_each(Member::reset)?;
        self.barrier()
    }

    fn barrier(&self) -> Result<()> {
        self.across.as_ref().map_or(Ok(()), |across| across.communicator.barrier())
    }
}
