//! Which GPUs reach each other.

use super::context::{Context, find, name, present};
use super::failure::Failure;
use super::sys::call;
use crate::error::Result;

/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
const ALREADY_ENABLED: i32 = 704;

/// The GPUs' names, and for each pair, by rows, whether the first reaches the second's memory.
pub(in crate::device) fn peers() -> Result<(Vec<String>, Vec<bool>)> {
    super::context::start()?;
    let devices = (0..present()?).map(find).collect::<Result<Vec<_>>>()?;
    let names = devices.iter().map(|&device| name(device)).collect::<Result<Vec<_>>>()?;
    let mut reaches = Vec::with_capacity(devices.len() * devices.len());
    for &from in &devices {
        for &to in &devices {
            reaches.push(from == to || can_access(from, to)?);
        }
    }
    Ok((names, reaches))
}

fn can_access(from: i32, to: i32) -> Result<bool> {
    let mut can = 0;
    // SAFETY: `can` is a live place for the result; the devices are ones that the driver gave.
    unsafe { call!(cuDeviceCanAccessPeer(&mut can, from, to)) }
        .map_err(|failure| failure.opening("ask which GPUs reach each other"))?;
    Ok(can != 0)
}

/// Lets `context` reach the plain allocations of `peer`.
pub(super) fn enable(context: &Context, peer: &Context) -> Result<()> {
    let _current = context.enter()?;
    // SAFETY: the peer's context is retained as long as `peer`; the flags have to be 0.
    match unsafe { call!(cuCtxEnablePeerAccess(peer.raw(), 0)) } {
        Ok(()) | Err(Failure { code: ALREADY_ENABLED, .. }) => Ok(()),
        Err(failure) => Err(failure.during("reach another GPU's memory")),
    }
}
