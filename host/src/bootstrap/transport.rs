//! What a group stands on: bytes from rank to rank of the whole job.

use std::fmt;
use std::time::Duration;

use warpwire_device::abi::Rank;

use super::mailbox::{Address, Failure, Mailbox};
use crate::net::Deadline;

/// Carries messages between the ranks of a job. Dropped, it leaves the job: what was sent still arrives.
pub(super) trait Transport: Send + Sync + fmt::Debug {
    /// Where this rank's messages arrive.
    fn mailbox(&self) -> &Mailbox;

    /// Sends the parts as one message. Returns once it is on its way.
    fn send(&self, to: Rank, address: Address, parts: &[&[u8]], deadline: Deadline) -> Result<(), Failure>;

    /// How long a call may take.
    fn timeout(&self) -> Duration;

    /// Takes this rank out of the job.
    fn abort(&self);
}
