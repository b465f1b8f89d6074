//! Memory channels: two ranks' buffers mapped into each other, and a semaphore between them.
//!
//! The threads that call move the data themselves. The usual turn is `put`, the group's `sync`, one thread's `signal`
//! ([`MemoryChannel::put_signal`] is the three in one); on the other side one thread's `wait`, the group's `sync`, then the
//! reads. Offsets and lengths are in bytes, 64 bits wide.

use crate::abi::{
    ChannelId, Flag, Global, MemoryChannelBaseHandle, MemoryChannelHandle, Packet, Rank, WaitError,
};
use crate::coop::{Group, SyncGroup};
use crate::copy;
use crate::mem::{Element, Mapped};
use crate::packet::{self, Source, Wire};
use crate::semaphore::Semaphore;
use crate::spin::{Patience, Policy};

/// A memory channel without bound buffers.
#[derive(Clone, Copy, Debug)]
pub struct MemoryChannelBase {
    semaphore: Semaphore<Mapped<u64>>,
}

impl MemoryChannelBase {
    /// The channel that `handle` describes.
    ///
    /// # Safety
    ///
    /// As for [`Semaphore::new`].
    #[inline(always)]
    pub unsafe fn new(handle: MemoryChannelBaseHandle) -> Self {
        // SAFETY: the caller's contract.
        Self { semaphore: unsafe { Semaphore::new(handle.semaphore) } }
    }

    /// Copies `bytes` bytes from `src`, this device's, to `dst`, the peer's, or the reverse. Called by a group; see
    /// [`copy::copy`].
    ///
    /// # Safety
    ///
    /// As for [`copy::copy`].
    #[inline(always)]
    pub unsafe fn copy<G: Group>(&self, group: G, dst: Global<u8>, src: Global<u8>, bytes: u64) {
        // SAFETY: the caller's contract.
        unsafe { copy::copy(group, dst, src, bytes) }
    }

    /// Signals, and publishes the calling thread's writes before it. Called by a thread. See
    /// [`Outbound::signal`](crate::semaphore::Outbound::signal).
    #[inline(always)]
    pub fn signal(&self) {
        self.semaphore.signal();
    }

    /// Signals and publishes nothing. Called by a thread.
    #[inline(always)]
    pub fn signal_relaxed(&self) {
        self.semaphore.signal_relaxed();
    }

    /// Waits for a signal of the peer's. Called by a thread. See [`Inbound::wait`](crate::semaphore::Inbound::wait).
    ///
    /// # Errors
    ///
    /// [`WaitError`], with a report on the board.
    #[inline(always)]
    pub fn wait(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.semaphore.wait(patience)
    }

    /// As [`MemoryChannelBase::wait`], for several threads at once, of several blocks for example: each takes a signal of its
    /// own. Called by a thread. See [`Inbound::wait_shared`](crate::semaphore::Inbound::wait_shared).
    ///
    /// # Errors
    ///
    /// As [`MemoryChannelBase::wait`].
    #[inline(always)]
    pub fn wait_shared(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.semaphore.wait_shared(patience)
    }

    /// Waits for a signal of the peer's and makes nothing visible. Called by a thread.
    ///
    /// # Errors
    ///
    /// As [`MemoryChannelBase::wait`].
    #[inline(always)]
    pub fn wait_relaxed(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.semaphore.wait_relaxed(patience)
    }

    /// Takes a signal where one is there. Called by a thread. See [`Inbound::poll`](crate::semaphore::Inbound::poll).
    #[inline(always)]
    pub fn poll(&self) -> bool {
        self.semaphore.poll()
    }
}

/// A memory channel with its buffers bound: offsets instead of addresses.
#[derive(Clone, Copy, Debug)]
pub struct MemoryChannel {
    base: MemoryChannelBase,
    handle: MemoryChannelHandle,
}

impl core::ops::Deref for MemoryChannel {
    type Target = MemoryChannelBase;

    #[inline(always)]
    fn deref(&self) -> &MemoryChannelBase {
        &self.base
    }
}

impl MemoryChannel {
    /// The channel that `handle` describes.
    ///
    /// # Safety
    ///
    /// As for [`MemoryChannelBase::new`]; the handle's buffers are mapped to this device and live while this value is used.
    #[inline(always)]
    pub unsafe fn new(handle: MemoryChannelHandle) -> Self {
        // SAFETY: the caller's contract.
        Self { base: unsafe { MemoryChannelBase::new(handle.base) }, handle }
    }

    /// The peer's rank.
    #[inline(always)]
    pub const fn peer(&self) -> Rank {
        self.handle.base.semaphore.inbound.peer
    }

    /// The channel's number.
    #[inline(always)]
    pub const fn id(&self) -> ChannelId {
        self.handle.base.semaphore.inbound.channel
    }

    /// Copies from the local buffer into the peer's. Called by a group; see [`copy::copy`].
    ///
    /// # Safety
    ///
    /// `offset + bytes` lies inside each buffer, and nobody else touches the two ranges meanwhile.
    #[inline(always)]
    pub unsafe fn put<G: Group>(&self, group: G, remote_offset: u64, local_offset: u64, bytes: u64) {
        let (dst, src) =
            (self.handle.remote.byte_add(remote_offset), self.handle.local.byte_add(local_offset));
        // SAFETY: the caller's contract.
        unsafe { copy::copy(group, dst, src, bytes) }
    }

    /// Copies from the local buffer into the peer's by bulk asynchronous copies (sm_90 and newer). Called by every block of a
    /// grid, each of which does its share; the calling block's first thread, having waited for its copies, may signal for
    /// them. See [`bulk::copy`](crate::bulk::copy).
    ///
    /// # Safety
    ///
    /// As for [`MemoryChannel::put`] and [`bulk::copy`](crate::bulk::copy).
    #[cfg(any(warpwire_sm90, not(target_arch = "nvptx64")))]
    #[inline(always)]
    pub unsafe fn put_bulk(&self, remote_offset: u64, local_offset: u64, bytes: u64) {
        let (dst, src) =
            (self.handle.remote.byte_add(remote_offset), self.handle.local.byte_add(local_offset));
        // SAFETY: the caller's contract.
        unsafe { crate::bulk::copy(dst, src, bytes) }
    }

    /// Copies from the peer's buffer into the local one. Called by a group; see [`copy::copy`]. The peer's writes have to
    /// be visible: a wait first.
    ///
    /// # Safety
    ///
    /// As for [`MemoryChannel::put`].
    #[inline(always)]
    pub unsafe fn get<G: Group>(&self, group: G, remote_offset: u64, local_offset: u64, bytes: u64) {
        let (dst, src) =
            (self.handle.local.byte_add(local_offset), self.handle.remote.byte_add(remote_offset));
        // SAFETY: the caller's contract.
        unsafe { copy::copy(group, dst, src, bytes) }
    }

    /// [`MemoryChannel::put`], the group's sync, and one signal that publishes all of it. Called by a group.
    ///
    /// # Safety
    ///
    /// As for [`MemoryChannel::put`].
    #[inline(always)]
    pub unsafe fn put_signal<G: SyncGroup>(
        &self,
        group: G,
        remote_offset: u64,
        local_offset: u64,
        bytes: u64,
    ) {
        // SAFETY: the caller's contract.
        unsafe { self.put(group, remote_offset, local_offset, bytes) };
        group.sync();
        if group.is_leader() {
            self.signal();
        }
    }

    /// Waits for a signal with one thread of the group, and makes what it published visible to all of them. Called by a
    /// group; while it runs, no other group waits on this channel.
    ///
    /// # Errors
    ///
    /// [`WaitError`] in every thread of the group, with a report on the board.
    #[inline(always)]
    pub fn wait_all<G: SyncGroup>(&self, group: G, policy: &Policy) -> Result<(), WaitError> {
        let waited = if group.is_leader() { self.wait(policy.patience()) } else { Ok(()) };
        group.agree(waited)
    }

    /// Element `index` of the peer's buffer, taken for `T`s. Called by a thread.
    ///
    /// # Safety
    ///
    /// The element lies inside the buffer, which is aligned for `T`; its writers are ordered before this access.
    #[inline(always)]
    pub unsafe fn read<T: Element>(&self, index: u64) -> T {
        // SAFETY: the caller's contract.
        unsafe { T::load_weak(self.handle.remote.cast().add(index)) }
    }

    /// Writes element `index` of the peer's buffer, taken for `T`s. Called by a thread.
    ///
    /// # Safety
    ///
    /// The element lies inside the buffer, which is aligned for `T`; nobody else touches it before it is published.
    #[inline(always)]
    pub unsafe fn write<T: Element>(&self, index: u64, value: T) {
        // SAFETY: the caller's contract.
        unsafe { T::store_weak(self.handle.remote.cast().add(index), value) }
    }

    /// Writes `bytes` bytes of the local buffer as packets into the peer's buffer. Called by a group; see
    /// [`packet::copy_to_packets`].
    ///
    /// # Safety
    ///
    /// The packets lie inside the peer's buffer, aligned; the bytes inside the local one.
    #[inline(always)]
    pub unsafe fn put_packets<P: Wire, G: Group>(
        &self,
        group: G,
        remote_offset: u64,
        local_offset: u64,
        bytes: u64,
        flag: Flag,
    ) where
        <P as Packet>::Payload: Element,
    {
        let (dst, src) =
            (self.handle.remote.byte_add(remote_offset), self.handle.local.byte_add(local_offset));
        // SAFETY: the caller's contract.
        unsafe { packet::copy_to_packets::<P, G>(group, dst.cast(), src, bytes, flag) }
    }

    /// Waits for the peer's packets in the packet buffer and writes their `bytes` bytes into the local buffer. Called by a
    /// group; see [`packet::copy_from_packets`].
    ///
    /// # Errors
    ///
    /// [`WaitError`] in the threads whose packets did not come, with a report on the board.
    ///
    /// # Safety
    ///
    /// The packets lie inside the packet buffer, aligned; the bytes inside the local one.
    #[inline(always)]
    pub unsafe fn unpack_packets<P: Wire, G: Group>(
        &self,
        group: G,
        packet_offset: u64,
        local_offset: u64,
        bytes: u64,
        flag: Flag,
        policy: &Policy,
    ) -> Result<(), WaitError>
    where
        <P as Packet>::Payload: Element,
    {
        let (dst, src) =
            (self.handle.local.byte_add(local_offset), self.handle.packets.byte_add(packet_offset));
        let source = Source { policy, peer: self.peer(), channel: self.id() };
        // SAFETY: the caller's contract.
        unsafe { packet::copy_from_packets::<P, G>(group, dst, src.cast(), bytes, flag, source) }
    }
}
