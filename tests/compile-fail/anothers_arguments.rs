//! A kernel takes its own arguments only.

use warpwire::device::{Device, DeviceSelector, LaunchConfig, builtin_module};
use warpwire_kernels::barrier::BarrierRoundsArgs;
use warpwire_kernels::transfer::Put;

fn launch(args: BarrierRoundsArgs) -> warpwire::Result<()> {
    let device = Device::open(DeviceSelector::Cpu)?;
    let put = device.load(builtin_module())?.function::<Put>()?;
    // SAFETY: never run.
    unsafe { device.stream()?.launch(&put, LaunchConfig::new(1, 32), args) }
}

fn main() {
    let _ = launch;
}
