//! The other ranks, and memory that all of them see.

use std::marker::PhantomData;
use std::sync::Arc;

use anyhow::Context;
use warpwire::abi::{Global, Pod, Rank};
use warpwire::bootstrap::from_env;
use warpwire::communicator::Communicator;
use warpwire::device::{Buffer, Device};
use warpwire::memory::{RegisteredMemory, Transports};

/// The ranks of the job.
pub struct Peers {
    communicator: Communicator,
}

impl Peers {
    /// Joins the job that this process was started for, with `device`.
    pub fn meet(device: &Device) -> anyhow::Result<Self> {
        let group = from_env().context("the ranks do not meet")?;
        Ok(Self { communicator: Communicator::new(Arc::new(group), device)? })
    }

    /// What joins them.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.communicator.rank()
    }

    /// Returns once all ranks have called it.
    pub fn barrier(&self) -> anyhow::Result<()> {
        Ok(self.communicator.barrier()?)
    }

    /// Shows the others this rank's buffer, and sees theirs. Collective.
    pub fn show<T: Pod>(&self, buffer: &Buffer<T>) -> anyhow::Result<Shown<T>> {
        let own = self.communicator.register_memory(buffer, Transports::CUDA_IPC)?;
        let memories = self.communicator.all_gather_memory(&own)?;
        Ok(Shown { memories, element: PhantomData })
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

    /// Rank `rank`'s as a buffer of this rank's device.
    pub fn open(&self, device: &Device, rank: Rank) -> anyhow::Result<Buffer<T>> {
        let handle = self.memories.get(rank.0 as usize).and_then(RegisteredMemory::handle);
        let handle = handle.with_context(|| format!("rank {}'s memory has no handle", rank.0))?;
        Ok(handle.open(device)?)
    }
}
