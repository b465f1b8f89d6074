//! Which host and which process this is.

use std::io;
use std::sync::OnceLock;

use crate::env::{self, HostId};
use crate::error::{Error, Result};

/// This host, as it was when it was first asked for.
pub(super) fn host() -> Result<HostId> {
    static HOST: OnceLock<HostId> = OnceLock::new();
    if let Some(host) = HOST.get() {
        return Ok(*host);
    }
    let host = env::host_id()?;
    Ok(*HOST.get_or_init(|| host))
}

/// A number that no other process has: unlike a process id it is not given out again, and is the same seen from any
/// container.
pub type ProcessId = [u8; 16];

/// This process' number.
pub(crate) fn process() -> Result<ProcessId> {
    static PROCESS: OnceLock<ProcessId> = OnceLock::new();
    if let Some(process) = PROCESS.get() {
        return Ok(*process);
    }
    let drawn = random()?;
    Ok(*PROCESS.get_or_init(|| drawn))
}

/// `N` random bytes that nobody can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::system("drawing random numbers", io::Error::other(error.to_string())))?;
    Ok(bytes)
}
