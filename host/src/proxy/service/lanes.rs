//! The hardware's queues that a proxy's connections take.

use std::sync::{Mutex, PoisonError, Weak};

use warpwire_device::abi::Rank;

use crate::connection::{Connection, Link, Transport};
use crate::device::Properties;
use crate::error::{ProxyError, Result};

/// The connections that copy by streams of the device. The kernel that waits for a copy has a stream too, and where more streams
/// are used than are sure to run beside each other, the copy may stand in the queue behind that kernel, for ever.
#[derive(Debug)]
pub(super) struct Lanes {
    rank: Rank,
    /// How many connections there can be; `None`: any number.
    limit: Option<usize>,
    taken: Mutex<Vec<Weak<dyn Link>>>,
}

impl Lanes {
    pub(super) fn of(device: &Properties, rank: Rank) -> Self {
        // One of the streams is the kernel's.
        let limit = device.max_concurrent_streams.map(|streams| streams.saturating_sub(1) as usize);
        Self { rank, limit, taken: Mutex::default() }
    }

    /// Takes the connection's lane, where it has none yet and needs one.
    pub(super) fn take(&self, connection: &Connection) -> Result<()> {
        if connection.transport() != Transport::CudaIpc {
            return Ok(());
        }
        // One push: a panic elsewhere leaves the list whole.
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|link| link.strong_count() > 0);
        let link = connection.downgrade();
        if taken.iter().any(|known| known.ptr_eq(&link)) {
            return Ok(());
        }
        let asked = taken.len() + 1;
        if let Some(limit) = self.limit.filter(|&limit| asked > limit) {
            return Err(ProxyError::TooManyConnections { rank: self.rank, asked, limit }.into());
        }
        taken.push(link);
        Ok(())
    }
}
