//! Registered memory regions.

use std::any::Any;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use ibverbs::ibv_access_flags;
use ibverbs_sys as ffi;

use super::domain::Domain;
use super::mlx5;
use super::plan::{self, Placement, Way};
use crate::error::{Error, Result};

/// What keeps a region's memory where it is.
pub(crate) type Keeper = Arc<dyn Any + Send + Sync>;

/// Memory to register.
pub(crate) struct Source<'a> {
    /// Where it lies; peers use the same addresses.
    pub(crate) address: u64,
    /// Its length.
    pub(crate) bytes: u64,
    /// What memory it is.
    pub(crate) placement: Placement,
    /// A DMA-BUF of whole pages of a GPU's memory: of that address and length.
    pub(crate) dma_buf: &'a dyn Fn(u64, u64) -> Result<OwnedFd>,
}

/// Memory that the adapter may reach; deregistered on drop.
pub(crate) struct Region {
    raw: NonNull<ffi::ibv_mr>,
    address: u64,
    bytes: u64,
    domain: Arc<Domain>,
    /// Dropped after the region: fields go in this order.
    keeper: Keeper,
}

// SAFETY: libibverbs allows any thread to call any verb on any object; it is deregistered once, on drop.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (adapter, key) = (self.domain.adapter(), self.remote_key());
        f.debug_struct("Region").field("adapter", &adapter).field("remote_key", &key).finish_non_exhaustive()
    }
}

/// What an adapter may do with memory. Relaxed ordering is never among it: signals lie in registered memory, and a write that
/// overtakes another would show a signal before its data.
fn access(has_atomics: bool) -> u32 {
    let access = ibv_access_flags::IBV_ACCESS_LOCAL_WRITE
        | ibv_access_flags::IBV_ACCESS_REMOTE_WRITE
        | ibv_access_flags::IBV_ACCESS_REMOTE_READ;
    let atomic = if has_atomics { ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC.0 } else { 0 };
    access.0 | atomic
}

impl Region {
    /// Registers memory, by the first way that works for its kind.
    ///
    /// # Safety
    ///
    /// The memory stays where it is as long as `keeper` is kept.
    pub(crate) unsafe fn register(
        domain: &Arc<Domain>,
        source: &Source<'_>,
        keeper: Keeper,
    ) -> Result<Arc<Self>> {
        let Source { address, bytes, placement, .. } = *source;
        let data_direct = mlx5::has_data_direct(&domain.context);
        let register = |way| register(domain, source, way).map_err(|error| error.to_string());
        let raw = plan::first(domain.adapter(), placement, (address, bytes), data_direct, register)?;
        let region = Arc::new(Self { raw, address, bytes, domain: Arc::clone(domain), keeper });
        domain.remember(&region);
        Ok(region)
    }

    /// What a request of this process names it by.
    pub(crate) fn local_key(&self) -> u32 {
        // SAFETY: live as long as `self`.
        unsafe { self.raw.as_ref().lkey }
    }

    /// What a peer's request names it by.
    pub(crate) fn remote_key(&self) -> u32 {
        // SAFETY: live as long as `self`.
        unsafe { self.raw.as_ref().rkey }
    }

    /// Whether it belongs to that domain.
    pub(crate) fn is_of(&self, domain: &Arc<Domain>) -> bool {
        Arc::ptr_eq(&self.domain, domain)
    }

    /// The adapter's number; see [`RemoteKey`](super::RemoteKey).
    pub(crate) fn adapter_guid(&self) -> u64 {
        self.domain.context.limits.guid
    }

    /// Whether `bytes` bytes from `address` on lie in it.
    pub(crate) fn holds(&self, address: u64, bytes: u64) -> bool {
        let end = address.checked_add(bytes);
        address >= self.address && end.is_some_and(|end| end <= self.address + self.bytes)
    }

    /// What keeps its memory.
    pub(crate) fn keeper(&self) -> &Keeper {
        &self.keeper
    }
}

fn register(domain: &Arc<Domain>, source: &Source<'_>, way: Way) -> Result<NonNull<ffi::ibv_mr>> {
    let context = &domain.context;
    let access = access(context.limits.has_atomics);
    let too_long = || Error::SizeOverflow { len: usize::MAX, element_bytes: 1 };
    let raw = match way {
        Way::Pages | Way::PeerMemory => {
            let length = usize::try_from(source.bytes).map_err(|_| too_long())?;
            // SAFETY: a live domain. The kernel checks the range, and pins its pages or refuses; that the memory stays is
            // `Region::register`'s contract.
            unsafe {
                let address = std::ptr::with_exposed_provenance_mut(source.address as usize);
                (context.verbs.reg_mr)(domain.raw.as_ptr(), address, length, access as i32)
            }
        }
        Way::DmaBuf | Way::DataDirect => {
            let page = rustix::param::page_size() as u64;
            let (begin, length, offset) =
                plan::pages(source.address, source.bytes, page).ok_or_else(too_long)?;
            // Closed at the end of this block: the region holds its own reference to what is behind it.
            let buffer = (source.dma_buf)(begin, length)?;
            let range = mlx5::DmaBufRange { offset, bytes: source.bytes, address: source.address };
            if way == Way::DataDirect {
                mlx5::register(domain, &buffer, range, access)
            } else {
                // SAFETY: a live domain and an open descriptor; the kernel checks the range.
                unsafe {
                    (context.verbs.reg_dmabuf_mr)(
                        domain.raw.as_ptr(),
                        range.offset,
                        range.bytes as usize,
                        range.address,
                        buffer.as_raw_fd(),
                        access as i32,
                    )
                }
            }
        }
    };
    NonNull::new(raw).ok_or_else(|| context.failed("registering memory", registration_hint()))
}

fn registration_hint() -> &'static str {
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::ENOMEM) => "; the limit of locked memory (ulimit -l) may be too low",
        _ => "",
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let key = self.remote_key();
        // SAFETY: live, deregistered only here.
        let code = unsafe { (self.domain.context.verbs.dereg_mr)(self.raw.as_ptr()) };
        if code != 0 {
            tracing::warn!(adapter = self.domain.adapter(), code, "deregistering memory failed");
        }
        self.domain.forget(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_never_overtake_each_other() {
        for atomics in [false, true] {
            let access = access(atomics);
            assert_eq!(access & ibv_access_flags::IBV_ACCESS_RELAXED_ORDERING.0, 0);
            assert_ne!(access & ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0, 0);
            assert_eq!(access & ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC.0 != 0, atomics);
        }
    }
}
