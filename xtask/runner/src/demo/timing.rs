//! The time of one round: many are recorded and played at once, several times.

use std::time::Duration;

use warpwire::device::{Device, DeviceKind};

/// How many rounds are played at once.
pub fn rounds(device: &Device) -> u32 {
    match device.properties().kind {
        DeviceKind::Cuda => 50,
        DeviceKind::Cpu => 4,
    }
}

/// The time of one round of what `play` plays [`rounds`] of: the median of several plays, behind one that warms up.
pub fn median(
    device: &Device,
    mut play: impl FnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<Duration> {
    let plays = match device.properties().kind {
        DeviceKind::Cuda => 11,
        DeviceKind::Cpu => 3,
    };
    play()?;
    let mut times = (0..plays).map(|_| play()).collect::<anyhow::Result<Vec<_>>>()?;
    times.sort_unstable();
    Ok(times[times.len() / 2] / rounds(device))
}
