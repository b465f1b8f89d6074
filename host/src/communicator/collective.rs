//! Calls that every rank of a communicator makes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use warpwire_device::abi::Rank;

use super::Communicator;
use super::message::{self, Said};
use crate::error::{CommunicatorError, Result};
use crate::memory::RegisteredMemory;

impl Communicator {
    /// Every rank's value, by rank; an error on every rank where any rank comes with one. Collective.
    pub(crate) fn all_gather<T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        own: Result<T>,
    ) -> Result<Vec<T>> {
        let (said, failure) = match own {
            Ok(value) => (Ok(value), None),
            Err(error) => (Err(error.to_string()), Some(error)),
        };
        let all = self.bootstrap().all_gather(&message::seal(&Said(said))?)?;
        if let Some(error) = failure {
            return Err(error);
        }
        let open = |(rank, bytes): (u32, &Vec<u8>)| {
            let (peer, Said(said)) = (Rank(rank), message::open::<Said<T>>(Rank(rank), bytes)?);
            said.map_err(|detail| CommunicatorError::PeerFailed { operation, peer, detail }.into())
        };
        (0..).zip(&all).map(open).collect()
    }

    /// Returns once every rank has called it. Collective.
    ///
    /// # Errors
    ///
    /// The bootstrap's, which name the rank that is missing.
    pub fn barrier(&self) -> Result<()> {
        self.bootstrap().barrier()
    }

    /// Fails, on every rank alike, where not all ranks give the same value. Collective.
    ///
    /// # Errors
    ///
    /// [`CommunicatorError::Disagreement`], with two ranks and what they gave; the bootstrap's.
    pub fn agree(&self, what: &'static str, value: u64) -> Result<()> {
        let values = self.all_gather(what, Ok(value))?;
        same(what, &values)
    }

    /// Every rank's memory, by rank, mapped here; all have to be as long as each other. Each rank has to keep its own
    /// registered until all have let go of it. Collective.
    ///
    /// # Errors
    ///
    /// [`CommunicatorError::Disagreement`] for lengths that differ, and what went wrong on any rank, both on every rank; the
    /// bootstrap's.
    pub fn all_gather_memory(&self, own: &RegisteredMemory) -> Result<Vec<RegisteredMemory>> {
        self.exchange_memory("gathering memory", Ok(own))
    }

    /// [`Communicator::all_gather_memory`] where this rank's own may have failed.
    pub(crate) fn exchange_memory(
        &self,
        operation: &'static str,
        own: Result<&RegisteredMemory>,
    ) -> Result<Vec<RegisteredMemory>> {
        let told = match &own {
            Ok(memory) => memory.serialize().map(|bytes| (memory.bytes(), bytes)),
            Err(_) => Ok((0, Vec::new())),
        };
        let (told, own) = match own {
            Ok(memory) => (told, Some(memory)),
            Err(error) => (Err(error), None),
        };
        let all = self.all_gather(operation, told)?;
        let lengths: Vec<u64> = all.iter().map(|(bytes, _)| *bytes).collect();
        same("the length of the memory in bytes", &lengths)?;
        let map = |(rank, (_, bytes)): (u32, &(u64, Vec<u8>))| match own {
            Some(own) if Rank(rank) == self.rank() => Ok(own.clone()),
            _ => RegisteredMemory::deserialize(self.device(), bytes),
        };
        let mapped: Result<Vec<RegisteredMemory>> = (0..).zip(&all).map(map).collect();
        // A second round: nobody goes on where somebody could not map what it has to.
        let (mapped, failure) = match mapped {
            Ok(mapped) => (mapped, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        self.all_gather(operation, failure)?;
        Ok(mapped)
    }
}

/// Fails where the ranks' values differ.
fn same(what: &'static str, values: &[u64]) -> Result<()> {
    let mut others = (0..).map(Rank).zip(values.iter().copied());
    let Some((first, first_value)) = others.next() else { return Ok(()) };
    match others.find(|(_, value)| *value != first_value) {
        None => Ok(()),
        Some((other, other_value)) => {
            Err(CommunicatorError::Disagreement { what, first, first_value, other, other_value }.into())
        }
    }
}
