//! Tables that only grow, read without a lock.

use std::sync::{Mutex, OnceLock, PoisonError};

use warpwire_device::abi::Rank;

use crate::error::{Error, ProxyError, Result};

/// Up to a fixed number of entries, numbered from 0 as they come. Entries stay as long as the table.
#[derive(Debug)]
pub(super) struct Table<T> {
    rank: Rank,
    what: [&'static str; 2],
    entries: Box<[OnceLock<T>]>,
    given: Mutex<u32>,
}

impl<T> Table<T> {
    /// An empty table of `rank`'s proxy with room for `limit` entries; `what` they are, one and several.
    pub(super) fn new(rank: Rank, what: [&'static str; 2], limit: u32) -> Self {
        Self { rank, what, entries: (0..limit).map(|_| OnceLock::new()).collect(), given: Mutex::default() }
    }

    /// Adds the entry that `make` gives, and returns its number.
    pub(super) fn add(&self, make: impl FnOnce() -> Result<T>) -> Result<u32> {
        // Counted after the entry is there: a panic in `make` leaves the count as it was.
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let id = *given;
        let Some(slot) = self.entries.get(id as usize) else {
            return Err(self.full());
        };
        let entry = make()?;
        slot.get_or_init(|| entry);
        *given += 1;
        Ok(id)
    }

    /// That there is no room for another.
    pub(super) fn full(&self) -> Error {
        let (rank, what, limit) = (self.rank, self.what[1], self.entries.len() as u32);
        ProxyError::TableFull { rank, what, limit }.into()
    }

    /// The entry with this number.
    pub(super) fn get(&self, id: u32) -> Result<&T> {
        self.entries.get(id as usize).and_then(OnceLock::get).ok_or_else(|| {
            let given = *self.given.lock().unwrap_or_else(PoisonError::into_inner);
            ProxyError::UnknownId { rank: self.rank, what: self.what[0], id, given }.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn entries_are_numbered_and_bounded() {
        let table = Table::new(Rank(3), ["memory", "memories"], 2);
        assert_eq!(table.add(|| Ok('a')).unwrap(), 0);
        // What could not be made takes no number.
        assert!(table.add(|| Err(Error::EmptyAllocation)).is_err());
        assert_eq!(table.add(|| Ok('b')).unwrap(), 1);
        let full = table.add(|| -> Result<char> { panic!("there is no room to make it for") }).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::Limit);
        assert_eq!(full.to_string(), "the proxy of rank 3 holds 2 memories and has no room for another");
        assert_eq!([*table.get(0).unwrap(), *table.get(1).unwrap()], ['a', 'b'], "no number is used twice");
        let unknown = table.get(7).unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::NotFound);
        assert_eq!(unknown.to_string(), "the proxy of rank 3 has no memory 7: it has given out 2");
    }
}
