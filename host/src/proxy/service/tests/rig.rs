//! Ranks of one process with a proxy service, and ports over [`LocalLink`]s.

use std::sync::Arc;
use std::time::Duration;

use warpwire_device::abi::{ChannelId, MemoryId, Pod, Rank};
use warpwire_kernels::port::{PortCall, PortRequests, PortRequestsArgs};

use super::super::{PortChannel, PortEnd, ProxyOptions, ProxyService};
use super::link::LocalLink;
use crate::connection::Connection;
use crate::device::{Buffer, Device, DeviceSelector, LaunchConfig, Stream, builtin_module};
use crate::error::Result;
use crate::memory::{RegisteredMemory, Transports};
use crate::semaphore::SemaphoreSide;

/// Longer than any wait that is met.
pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) fn cpu() -> Device {
    Device::open(DeviceSelector::Cpu).unwrap()
}

/// Rank 0 of a process, with its service running.
pub(super) struct Rig {
    pub(super) device: Device,
    pub(super) service: ProxyService,
}

/// A port of the rig's, and what lies at its other end.
pub(super) struct Port {
    pub(super) channel: PortChannel,
    pub(super) link: Arc<LocalLink>,
    pub(super) peer: Arc<SemaphoreSide>,
    pub(super) own: Arc<SemaphoreSide>,
    id: ChannelId,
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
        Self { device, service }
    }

    pub(super) fn add<T: Pod>(&self, buffer: &Buffer<T>) -> MemoryId {
        self.service.add_memory(&registered(buffer)).unwrap()
    }

    pub(super) fn port(&self, peer: Rank, id: u32) -> Port {
        self.try_port(peer, id).unwrap()
    }

    pub(super) fn try_port(&self, peer: Rank, id: u32) -> Result<Port> {
        let link = Arc::new(LocalLink::new(peer));
        let side = || SemaphoreSide::new(&self.device).map(Arc::new);
        let (own, of_peer, id) = (side()?, side()?, ChannelId(id));
        let peer_token = of_peer.register_token(Transports::ETHERNET)?;
        let end = PortEnd {
            connection: Connection::over(Arc::clone(&link) as Arc<_>),
            own: Arc::clone(&own),
            peer_token,
            id,
        };
        Ok(Port { channel: self.service.add_port(end)?, link, peer: of_peer, own, id })
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
        let base = port.channel.base_handle().unwrap();
        let args = PortRequestsArgs {
            channel: warpwire_device::abi::PortChannelHandle {
                base,
                destination: calls.to.0,
                source: calls.from.0,
            },
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
        // SAFETY: the side's token, which the link writes by atomics.
        let token = unsafe { std::sync::atomic::AtomicU64::from_ptr(self.peer.token().as_ptr()) };
        token.load(std::sync::atomic::Ordering::Acquire)
    }

    /// The channel's number.
    pub(super) fn id(&self) -> ChannelId {
        self.id
    }
}

/// A buffer as a memory that lies in this process.
pub(super) fn registered<T: Pod>(buffer: &Buffer<T>) -> RegisteredMemory {
    RegisteredMemory::of(buffer, Transports::ETHERNET).unwrap()
}
