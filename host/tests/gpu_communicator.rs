//! Communicators among processes on GPU 0, several of which share it. Skipped, with the reason, where there is none.
#![cfg(feature = "cuda")]
#![allow(dead_code, reason = "other programs use the rest of these modules")]

use warpwire::ErrorKind;
use warpwire::device::{Device, DeviceSelector};

#[path = "support/ports.rs"]
mod ports;
#[path = "support/process.rs"]
mod process;

#[path = "communicator/ethernet.rs"]
mod ethernet;
#[path = "communicator/exercises.rs"]
mod exercises;
#[path = "communicator/jobs.rs"]
mod jobs;
#[path = "communicator/processes.rs"]
mod processes;

/// What the ranks run on.
const DEVICE: DeviceSelector = DeviceSelector::Cuda(0);

/// What the children of this program do: see `processes`.
#[test]
fn child() {
    match process::role().as_deref() {
        None => {}
        Some("say which GPU it is") => match Device::open(DEVICE) {
            Ok(device) => process::tell_parent(&name(&device)),
            Err(error) => process::tell_parent(&format!("{:?}", error.kind())),
        },
        Some(role) => processes::play(role),
    }
}

/// What tells a GPU from others.
fn name(device: &Device) -> String {
    let properties = device.properties();
    format!("{} at {:?}", properties.uuid, properties.pci)
}

/// C53: whatever list of visible devices a process has, a GPU is the same in all of them; in an empty list there is none.
#[test]
fn a_gpu_has_one_name_in_every_process() {
    let device = match Device::open(DEVICE) {
        Ok(device) => device,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            return println!("skipped: {error}");
        }
    };
    let (own, uuid) = (name(&device), device.properties().uuid);
    assert!(device.properties().pci.is_some(), "{own}");
    let kind = if device.properties().name.contains("MIG") { "MIG" } else { "GPU" };
    for (visible, expected) in [
        (None, &own),
        (Some(format!("{kind}-{uuid}")), &own),
        (Some(String::new()), &"Unavailable".to_owned()),
    ] {
        let mut command = process::command("say which GPU it is");
        if let Some(visible) = &visible {
            command.env("CUDA_VISIBLE_DEVICES", visible);
        }
        let mut child = process::Child::spawn(&mut command).unwrap();
        assert_eq!(child.hear(), *expected, "{visible:?}");
        child.end();
    }
}
