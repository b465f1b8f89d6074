//! Communicators: ranks as threads of one process, and ranks as processes.

use warpwire::device::DeviceSelector;

#[path = "../support/ports.rs"]
mod ports;
#[path = "../support/process.rs"]
mod process;

mod all_reduce;
mod channels;
mod disagreements;
mod ethernet;
mod ethernet_here;
mod exchange;
mod exercises;
mod failures;
mod jobs;
mod lending;
mod port_threads;
mod processes;

/// What the ranks run on.
const DEVICE: DeviceSelector = DeviceSelector::Cpu;

/// What the children of this program do: see `processes`.
#[test]
fn child() {
    if let Some(role) = process::role() {
        processes::play(&role);
    }
}
