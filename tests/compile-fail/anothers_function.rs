//! A launch of one kernel does not take another's function, also where both take the same arguments.

use warpwire::device::{Device, DeviceSelector, LaunchConfig, builtin_module};
use warpwire_kernels::transfer::{Get, Put, TransferArgs};

fn launch(args: TransferArgs) -> warpwire::Result<()> {
    let device = Device::open(DeviceSelector::Cpu)?;
    let put = device.load(builtin_module())?.function::<Put>()?;
    // SAFETY: never run.
    unsafe { device.stream()?.launch::<Get>(&put, LaunchConfig::new(1, 32), args) }
}

fn main() {
    let _ = launch;
}
