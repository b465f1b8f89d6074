//! Calls that every rank of a communicator makes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use warpwire_device::abi::Rank;

use super::Communicator;
use super::message::{self, Said};
use crate::error::{CommunicatorError, Result};
use crate::memory::RegisteredMemory;

impl Communicator {
    /// Every rank's value, by rank, and what this rank keeps of its own; an error on every rank where any rank comes with
    /// one. Collective.
    pub(crate) fn all_gather<T: Serialize + DeserializeOwned, K>(
        &self,
        operation: &'static str,
        own: Result<(T, K)>,
    ) -> Result<(Vec<T>, K)> {
        let (said, kept) = match own {
            Ok((value, kept)) => (Ok(value), Ok(kept)),
            Err(error) => (Err(error.to_string()), Err(error)),
        };
        let all = self.bootstrap().all_gather(&message::seal(&Said(said))?)?;
        let kept = kept?;
        let open = |(rank, bytes): (u32, &Vec<u8>)| {
            let (peer, Said(said)) = (Rank(rank), message::open::<Said<T>>(Rank(rank), bytes)?);
            said.map_err(|detail| CommunicatorError::PeerFailed { operation, peer, detail }.into())
        };
        let all: Result<Vec<T>> = (0..).zip(&all).map(open).collect();
        Ok((all?, kept))
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
        let (values, ()) = self.all_gather(what, Ok((value, ())))?;
        same(what, values)
    }

    /// Every rank's memory, by rank, mapped here; all have to be as long as each other. Each rank has to keep its own
    /// registered until all have let go of it. Collective.
    ///
    /// # Errors
    ///
    /// [`CommunicatorError::Disagreement`] for lengths that differ, and what went wrong on any rank, both on every rank; the
    /// bootstrap's.
    pub fn all_gather_memory(&self, own: &RegisteredMemory) -> Result<Vec<RegisteredMemory>> {
        self.exchange_memory("gathering memory", Ok(own.clone()))
    }

    /// [`Communicator::all_gather_memory`] where this rank's own may have failed.
    pub(crate) fn exchange_memory(
        &self,
        operation: &'static str,
        own: Result<RegisteredMemory>,
    ) -> Result<Vec<RegisteredMemory>> {
        let told = own.and_then(|own| Ok(((own.bytes(), own.serialize()?), own)));
        let (all, own) = self.all_gather(operation, told)?;
        same("the length of the memory in bytes", all.iter().map(|(bytes, _)| *bytes))?;
        let map = |(rank, (_, bytes)): (u32, &(u64, Vec<u8>))| {
            if Rank(rank) == self.rank() {
                return Ok(own.clone());
            }
            RegisteredMemory::deserialize(self.device(), bytes)
        };
        let mapped: Result<Vec<RegisteredMemory>> = (0..).zip(&all).map(map).collect();
        // A second round: nobody goes on where somebody could not map what it has to.
        let (_, mapped) = self.all_gather(operation, mapped.map(|mapped| ((), mapped)))?;
        Ok(mapped)
    }
}

/// Fails where the ranks' values, which all ranks have, differ.
pub(crate) fn same(what: &'static str, values: impl IntoIterator<Item = u64>) -> Result<()> {
    let mut values = (0..).map(Rank).zip(values);
    let Some((first, first_value)) = values.next() else { return Ok(()) };
    match values.find(|(_, value)| *value != first_value) {
        None => Ok(()),
        Some((other, other_value)) => {
            Err(CommunicatorError::Disagreement { what, first, first_value, other, other_value }.into())
        }
    }
}
