//! Port channels: requests to the host's proxy, which moves the data by whatever connection leads to the peer.
//!
//! A request is a trigger in the proxy's FIFO: the call returns when it is pushed, and a full FIFO makes it wait. The proxy does
//! what is asked of one port in the order in which it was pushed, so the peer that sees a signal sees the data that were put
//! before it. The source may be written again, and the destination's owner be told by other ways, after a
//! [flush](PortChannelBase::flush).
//!
//! A put publishes the calling thread's writes before it, and those that were ordered before it in its block: `group.sync()`,
//! then one thread puts. Offsets and lengths are in bytes, 64 bits wide; what does not lie in the memories is an error of the
//! proxy, which ends every wait of the streams that it watches.

use crate::abi::{
    MemoryId, PortChannelBaseHandle, PortChannelHandle, PortId, Position, Rank, Request, RequestKind,
    WaitError, WaitKind, WaitSite,
};
use crate::arch::{Acquire, Sys};
use crate::fifo::DeviceProducer;
use crate::mem::{Mapped, Word};
use crate::semaphore::Inbound;
use crate::spin::{self, Patience, Policy, reached};

/// A range of one of the proxy's memories.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Which memory.
    pub memory: MemoryId,
    /// In bytes from its beginning.
    pub offset: u64,
}

/// A port channel without bound memories.
#[derive(Clone, Copy, Debug)]
pub struct PortChannelBase {
    fifo: DeviceProducer,
    inbound: Inbound<Mapped<u64>>,
    flushed: Mapped<u64>,
    port: PortId,
    flush_site: WaitSite,
}

impl PortChannelBase {
    /// The channel that `handle` describes.
    ///
    /// # Safety
    ///
    /// As for [`DeviceProducer::new`] and [`Inbound::new`]; the handle's count of flushes is mapped to this device, and live while
    /// this value is used.
    #[inline(always)]
    pub unsafe fn new(handle: PortChannelBaseHandle) -> Self {
        let PortChannelBaseHandle { fifo, inbound, flushed, port, .. } = handle;
        let flush_site = WaitSite { kind: WaitKind::Flush, peer: inbound.peer, channel: inbound.channel };
        // SAFETY: the caller's contract.
        unsafe {
            Self {
                fifo: DeviceProducer::new(fifo),
                inbound: Inbound::new(inbound),
                flushed: Mapped::new(flushed),
                port,
                flush_site,
            }
        }
    }

    /// Asks for something that takes no data, and so one trigger.
    #[inline(always)]
    fn ask(&self, kind: RequestKind, policy: &Policy) -> Result<Position, WaitError> {
        self.fifo.push(Request::without_data(kind, self.port).trigger(), policy.patience())
    }

    #[inline(always)]
    fn transfer(
        &self,
        kind: RequestKind,
        destination: Place,
        source: Place,
        bytes: u64,
        policy: &Policy,
    ) -> Result<Position, WaitError> {
        let request = Request {
            kind,
            port: self.port,
            destination: destination.memory,
            destination_offset: destination.offset,
            source: source.memory,
            source_offset: source.offset,
            bytes,
        };
        let upper = request.is_wide().then(|| request.upper());
        self.fifo.push_behind(upper, request.trigger(), policy.patience())
    }

    /// Asks for a copy of `bytes` bytes from this rank's memory to the peer's. Called by a thread.
    ///
    /// # Errors
    ///
    /// [`WaitError`] where the FIFO stayed full, with a report on the board; see [`crate::fifo`].
    #[inline(always)]
    pub fn put(&self, to: Place, from: Place, bytes: u64, policy: &Policy) -> Result<Position, WaitError> {
        self.transfer(RequestKind::DATA, to, from, bytes, policy)
    }

    /// Asks for a copy, and a signal behind it. Called by a thread.
    ///
    /// # Errors
    ///
    /// As for [`PortChannelBase::put`].
    #[inline(always)]
    pub fn put_with_signal(
        &self,
        to: Place,
        from: Place,
        bytes: u64,
        policy: &Policy,
    ) -> Result<Position, WaitError> {
        self.transfer(RequestKind::DATA | RequestKind::SIGNAL, to, from, bytes, policy)
    }

    /// Asks for a copy and a signal behind it, and waits until both are complete. Called by a thread.
    ///
    /// # Errors
    ///
    /// As for [`PortChannelBase::put`] and [`PortChannelBase::flush`].
    #[inline(always)]
    pub fn put_with_signal_and_flush(
        &self,
        to: Place,
        from: Place,
        bytes: u64,
        policy: &Policy,
    ) -> Result<(), WaitError> {
        let position = self.transfer(RequestKind::all(), to, from, bytes, policy)?;
        self.wait_flushed(position, policy.patience())
    }

    /// Asks for a signal behind everything asked before. Called by a thread.
    ///
    /// # Errors
    ///
    /// As for [`PortChannelBase::put`].
    #[inline(always)]
    pub fn signal(&self, policy: &Policy) -> Result<Position, WaitError> {
        self.ask(RequestKind::SIGNAL, policy)
    }

    /// Waits until everything asked of the port before is complete: it is in the peer's memory, and its sources may be written
    /// again. Called by a thread; several may flush one port at once, and each waits for its own request.
    ///
    /// # Errors
    ///
    /// As for [`PortChannelBase::put`]; [`WaitError`] where the flush was not complete in time, with a report on the board.
    #[inline(always)]
    pub fn flush(&self, policy: &Policy) -> Result<(), WaitError> {
        let position = self.ask(RequestKind::FLUSH, policy)?;
        self.wait_flushed(position, policy.patience())
    }

    #[inline(always)]
    fn wait_flushed(&self, position: Position, patience: impl Patience) -> Result<(), WaitError> {
        let (flushed, expected) = (self.flushed, position.behind());
        let load = || flushed.load::<Acquire, Sys>();
        let ready = |seen| reached(seen, expected).then_some(());
        spin::wait::<1, _, _, _>(patience, self.flush_site, load, ready, |seen| (expected, seen))
    }

    /// Waits for a signal of the peer's. Called by a thread. See [`Inbound::wait`].
    ///
    /// # Errors
    ///
    /// [`WaitError`], with a report on the board.
    #[inline(always)]
    pub fn wait(&self, patience: impl Patience) -> Result<(), WaitError> {
        self.inbound.wait(patience)
    }

    /// Takes a signal where one is there. Called by a thread. See [`Inbound::poll`].
    #[inline(always)]
    pub fn poll(&self) -> bool {
        self.inbound.poll()
    }

    /// The peer's rank.
    #[inline(always)]
    pub const fn peer(&self) -> Rank {
        self.flush_site.peer
    }
}

/// A port channel with its memories bound: offsets alone.
#[derive(Clone, Copy, Debug)]
pub struct PortChannel {
    base: PortChannelBase,
    destination: MemoryId,
    source: MemoryId,
}

impl core::ops::Deref for PortChannel {
    type Target = PortChannelBase;

    #[inline(always)]
    fn deref(&self) -> &PortChannelBase {
        &self.base
    }
}

impl PortChannel {
    /// The channel that `handle` describes.
    ///
    /// # Safety
    ///
    /// As for [`PortChannelBase::new`].
    #[inline(always)]
    pub unsafe fn new(handle: PortChannelHandle) -> Self {
        let PortChannelHandle { base, destination, source } = handle;
        // SAFETY: the caller's contract.
        Self { base: unsafe { PortChannelBase::new(base) }, destination, source }
    }

    #[inline(always)]
    const fn places(&self, destination_offset: u64, source_offset: u64) -> (Place, Place) {
        (
            Place { memory: self.destination, offset: destination_offset },
            Place { memory: self.source, offset: source_offset },
        )
    }

    /// See [`PortChannelBase::put`]. Called by a thread.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub fn put(
        &self,
        destination_offset: u64,
        source_offset: u64,
        bytes: u64,
        policy: &Policy,
    ) -> Result<Position, WaitError> {
        let (to, from) = self.places(destination_offset, source_offset);
        self.base.put(to, from, bytes, policy)
    }

    /// See [`PortChannelBase::put_with_signal`]. Called by a thread.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub fn put_with_signal(
        &self,
        destination_offset: u64,
        source_offset: u64,
        bytes: u64,
        policy: &Policy,
    ) -> Result<Position, WaitError> {
        let (to, from) = self.places(destination_offset, source_offset);
        self.base.put_with_signal(to, from, bytes, policy)
    }

    /// See [`PortChannelBase::put_with_signal_and_flush`]. Called by a thread.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub fn put_with_signal_and_flush(
        &self,
        destination_offset: u64,
        source_offset: u64,
        bytes: u64,
        policy: &Policy,
    ) -> Result<(), WaitError> {
        let (to, from) = self.places(destination_offset, source_offset);
        self.base.put_with_signal_and_flush(to, from, bytes, policy)
    }
}
