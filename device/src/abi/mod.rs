//! Types that device and host share, each defined once.
//!
//! Everything here is `repr(C)` or `repr(transparent)`, imports only `core`, and has its size, alignment and offsets
//! asserted in `layout`. The host fills these structs and passes them to a kernel by value, so a change of layout is a
//! change of protocol.

mod element_type;
mod fifo;
mod global;
mod handles;
mod ids;
mod launch;
mod layout;
mod packet;
mod port_channel;
mod request;
mod status;

pub use element_type::ElementType;
pub use fifo::{FifoHandle, Position, Trigger};
pub use global::{Global, Pod};
pub use handles::{
    BarrierHandle, HostSemaphoreHandle, InboundHandle, MemoryChannelBaseHandle, MemoryChannelHandle,
    OutboundHandle, PolicyHandle, SemaphoreHandle,
};
pub use ids::{ChannelId, MAX_RANKS, Rank};
pub use launch::{LaunchLimits, RankTable};
pub use packet::{Flag, Ll8, Ll16, Packet};
pub use port_channel::{PortChannelBaseHandle, PortChannelHandle};
pub use request::{
    MAX_MEMORIES, MAX_PORTS, MemoryId, PortId, Request, RequestDecoder, RequestError, RequestKind,
};
pub use status::{BoardState, WaitBoard, WaitError, WaitKind, WaitSite};
