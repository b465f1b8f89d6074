//! Communicators among processes on GPU 0, several of which share it. Skipped, with the reason, where there is none.
#![cfg(feature = "cuda")]
#![allow(dead_code, reason = "other programs use the rest of these modules")]

use warpwire::device::DeviceSelector;

#[path = "support/process.rs"]
mod process;

#[path = "communicator/exercises.rs"]
mod exercises;
#[path = "communicator/jobs.rs"]
mod jobs;
#[path = "communicator/ports.rs"]
mod ports;
#[path = "communicator/processes.rs"]
mod processes;

/// What the ranks run on.
const DEVICE: DeviceSelector = DeviceSelector::Cuda(0);

/// What the children of this program do: see `processes`.
#[test]
fn child() {
    if let Some(role) = process::role() {
        processes::play(&role);
    }
}
