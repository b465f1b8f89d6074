//! Joining by what a launcher says, and what a launcher has to say.

use warpwire_device::abi::Rank;

use super::group::Group;
use super::tcp::{RootAddress, TcpBootstrap, TcpOptions};
use crate::env;
use crate::error::Result;

/// Joins the job that this process was started for. Returns once every rank is there.
///
/// Rank and size are `WARPWIRE_RANK` and `WARPWIRE_WORLD_SIZE`, or as torchrun (`RANK`, `WORLD_SIZE`), Open MPI
/// (`OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`) or MPICH's kin (`PMI_RANK`, `PMI_SIZE`) set them. Rank 0 is at
/// `WARPWIRE_ROOT`, a [`RootAddress`], or at `MASTER_ADDR` and `MASTER_PORT`; where torchrun serves that port itself
/// (`TORCHELASTIC_USE_AGENT_STORE`), at the next. `WARPWIRE_SECRET` is a text that only the job's ranks know; without it
/// torchrun's run id keeps jobs apart. The rest is as for [`TcpOptions::from_env`].
///
/// # Errors
///
/// A variable that is missing or cannot be; those of [`TcpBootstrap::meet`].
pub fn from_env() -> Result<Group> {
    let env::Place { rank, size, root, secret } = env::place()?;
    let root: RootAddress = root.parse()?;
    TcpBootstrap::meet(&root, Rank(rank), size as usize, secret.as_deref(), TcpOptions::from_env()?)
}

/// What a launcher sets for rank `rank` of `size`, by name: what [`from_env`] reads first. The ranks meet at `root`, where rank
/// 0 listens; `secret` keeps other jobs out.
#[must_use]
pub fn variables(rank: Rank, size: usize, root: &RootAddress, secret: &str) -> [(&'static str, String); 4] {
    env::place_variables(rank.0, size, root.to_string(), secret.to_owned())
}
