//! Ranks of one process with a proxy service, and ports over [`LocalLink`]s.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use warpwire_device::abi::{ChannelId, MemoryId, Pod, PortChannelHandle, Rank};
use warpwire_kernels::port::{PortCall, PortRequests, PortRequestsArgs};

use super::super::{PortChannel, ProxyOptions, ProxyService};
use super::link::LocalLink;
use crate::bootstrap::LocalBootstrap;
use crate::connection::{Connection, Link, Transport};
use crate::device::{Buffer, Device, DeviceSelector, LaunchConfig, Stream, builtin_module};
use crate::error::Result;
use crate::memory::{RegisteredMemory, TokenPool, Transports};
use crate::semaphore::{Lending, Semaphore, SemaphoreSide};

/// Longer than any wait that is met.
pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) fn cpu() -> Device {
    Device::open(DeviceSelector::Cpu).unwrap()
}

/// Rank 0 of a process, with its service running.
pub(super) struct Rig {
    pub(super) device: Device,
    pub(super) service: ProxyService,
    lending: Arc<Lending>,
}

/// A port of the rig's, and what lies at its other end.
pub(super) struct Port {
    pub(super) channel: PortChannel,
    pub(super) link: Arc<LocalLink>,
    peer: SemaphoreSide,
}

/// A launch of `PortRequests`.
#[derive(Clone, Copy)]
pub(super) struct Calls {
    pub(super) call: PortCall,
    pub(super) threads: u32,
    pub(super) count: u32,
    pub(super) to: (MemoryId, u64),
    pub(super) from: (MemoryId, u64),
    pub(super) bytes: u64,
    pub(super) timeout: Duration,
}

impl Calls {
    /// Calls without data.
    pub(super) fn of(call: PortCall, threads: u32, count: u32) -> Self {
        let nowhere = (MemoryId::default(), 0);
        Self { call, threads, count, to: nowhere, from: nowhere, bytes: 0, timeout: LONG }
    }
}

impl Rig {
    pub(super) fn new(fifo_capacity: usize) -> Self {
        let device = cpu();
        let service = ProxyService::new(&device, Rank(0), ProxyOptions { fifo_capacity }).unwrap();
        service.start().unwrap();
        // Its peers are not there: they never let go of a slot.
        let alone = LocalBootstrap::group(1).unwrap().remove(0);
        let lending = Lending::new(Arc::new(alone), TokenPool::new(&device));
        Self { device, service, lending }
    }

    pub(super) fn add<T: Pod>(&self, buffer: &Buffer<T>) -> MemoryId {
        self.service.add_memory(&registered(buffer)).unwrap()
    }

    pub(super) fn port(&self, peer: Rank, id: u32) -> Port {
        self.try_port(peer, id).unwrap()
    }

    pub(super) fn try_port(&self, peer: Rank, id: u32) -> Result<Port> {
        self.port_over(LocalLink::new(peer, Transport::Ethernet), id)
    }

    pub(super) fn port_over(&self, link: LocalLink, id: u32) -> Result<Port> {
        let (peer, link) = (link.peer(), Arc::new(link));
        let of_peer = SemaphoreSide::new(&self.device)?;
        let token = of_peer.register_token(Transports::ETHERNET)?;
        let loan = self.lending.lend(peer, Transports::ETHERNET)?;
        let semaphore = Semaphore::new(Connection::over(Arc::clone(&link) as Arc<_>), token, loan);
        let channel = self.service.add_port(semaphore, ChannelId(id))?;
        Ok(Port { channel, link, peer: of_peer })
    }

    /// A stream that the service watches.
    pub(super) fn stream(&self) -> Stream {
        let stream = self.device.stream().unwrap();
        self.service.watch(&stream);
        stream
    }

    /// Queues the calls, through a handle that may name memories that are not there.
    pub(super) fn launch(&self, stream: &Stream, port: &Port, calls: Calls) {
        let function = self.device.load(builtin_module()).unwrap().function::<PortRequests>().unwrap();
        let base = port.channel.base_handle();
        let args = PortRequestsArgs {
            channel: PortChannelHandle { base, destination: calls.to.0, source: calls.from.0 },
            policy: stream.policy(Rank(0), calls.timeout),
            destination_offset: calls.to.1,
            source_offset: calls.from.1,
            bytes: calls.bytes,
            count: calls.count,
            call: calls.call,
        };
        // SAFETY: the service, the sides and the board outlive the launch: every test synchronizes its streams.
        unsafe { stream.launch(&function, LaunchConfig::new(1, calls.threads), args) }.unwrap();
    }

    /// Queues the calls, and waits for them.
    pub(super) fn run(&self, port: &Port, calls: Calls) -> Result<()> {
        let stream = self.stream();
        self.launch(&stream, port, calls);
        stream.synchronize()
    }
}

impl Port {
    /// Signals that the peer has received.
    pub(super) fn signals(&self) -> u64 {
        // SAFETY: the side's token, which the link writes by atomics, and which lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.peer.token().as_ptr()) }.load(Ordering::Acquire)
    }

    /// Does what the peer's signals do to this end, until there were `count` of them.
    pub(super) fn receive(&self, count: u64) {
        let token = self.channel.base_handle().inbound.token;
        // SAFETY: this end's token, which the kernels read by ordered loads, and which lives as long as the channel.
        unsafe { AtomicU64::from_ptr(token.as_ptr()) }.store(count, Ordering::Release);
    }
}

/// A buffer as a memory that lies in this process.
pub(super) fn registered<T: Pod>(buffer: &Buffer<T>) -> RegisteredMemory {
    RegisteredMemory::of(buffer, Transports::ETHERNET).unwrap()
}
