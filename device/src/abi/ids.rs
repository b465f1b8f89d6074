//! Small numbers that must not be mixed up.

/// The most ranks that one collective call takes: one NVLink domain of 72 GPUs.
pub const MAX_RANKS: usize = 72;

/// A process' (or, within one process, a virtual device's) number in its group, from 0.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

/// A channel's number among those of its rank, from 0. It names the channel in reports; it is no index into anything.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);
