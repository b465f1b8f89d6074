//! The other ranks, and memory that all of them see.

use std::marker::PhantomData;

use anyhow::Context;
use warpwire::abi::{Global, Pod, Rank};
use warpwire::bootstrap::{Bootstrap, Group, from_env};
use warpwire::device::{Buffer, Device};
use warpwire::memory::{RegisteredMemory, Transports};

/// The ranks of the job.
pub struct Peers {
    group: Group,
}

impl Peers {
    /// Joins the job that this process was started for.
    pub fn meet() -> anyhow::Result<Self> {
        Ok(Self { group: from_env().context("the ranks do not meet")? })
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.group.rank()
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.group.size()
    }

    /// Returns once all ranks have called it.
    pub fn barrier(&self) -> anyhow::Result<()> {
        Ok(self.group.barrier()?)
    }

    /// Shows the others this rank's buffer, and sees theirs. Collective.
    pub fn show<T: Pod>(&self, device: &Device, buffer: &Buffer<T>) -> anyhow::Result<Shown<T>> {
        let own = RegisteredMemory::of(buffer, Transports::CUDA_IPC)?;
        let all = self.group.all_gather(&own.serialize()?)?;
        let memories = (0..).zip(&all).map(|(rank, bytes)| {
            if Rank(rank) == self.rank() {
                return Ok(own.clone());
            }
            RegisteredMemory::deserialize(device, bytes).with_context(|| format!("mapping rank {rank}'s memory"))
        });
        let shown = Shown { memories: memories.collect::<anyhow::Result<_>>()?, element: PhantomData };
        // Until everybody has mapped it, each has to keep its own.
        self.barrier()?;
        Ok(shown)
    }
}

/// One buffer a rank, mapped here as long as this is kept.
pub struct Shown<T> {
    memories: Vec<RegisteredMemory>,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod> Shown<T> {
    /// Where rank `rank`'s lies here.
    pub fn of(&self, rank: Rank) -> anyhow::Result<Global<T>> {
        let address = self.memories.get(rank.0 as usize).and_then(RegisteredMemory::address);
        address.map(Global::cast).with_context(|| format!("rank {}'s memory is not mapped here", rank.0))
    }
}
