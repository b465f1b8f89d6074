//! What a program sees that has no InfiniBand: no library, the wrong one, or a build without the feature.

#[path = "support/process.rs"]
mod process;

use std::sync::Arc;

use process::{Child, command, hear_parent, role, tell_parent};
use warpwire::abi::Rank;
use warpwire::bootstrap::{LocalBootstrap, Tag};
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::connection::infiniband::InfiniBandConfig;
use warpwire::device::{Device, DeviceSelector};
use warpwire::memory::Transports;
use warpwire::verbs::Adapter;

/// What this process does as another one's child: everything that needs an adapter, then what needs none.
#[test]
fn child() {
    let Some(_) = role() else { return };
    tell_parent(&match Adapter::names() {
        Ok(names) => format!("adapters: {names:?}"),
        Err(error) => error.to_string(),
    });
    let device = Device::open(DeviceSelector::Cpu).unwrap();
    let bootstrap = LocalBootstrap::group(1).unwrap().remove(0);
    let communicator = Communicator::new(Arc::new(bootstrap), &device).unwrap();
    let buffer = device.allocate_shareable::<u64>(8).unwrap();
    let registered = communicator.register_memory(&buffer, Transports::INFINIBAND);
    tell_parent(&registered.map(drop).unwrap_err().to_string());
    let config = EndpointConfig::InfiniBand(InfiniBandConfig::default());
    let connected = communicator.connect(config, Rank(0), Tag(1));
    tell_parent(&connected.map(drop).unwrap_err().to_string());
    // Nothing else asks for it.
    communicator.register_memory(&buffer, Transports::CUDA_IPC | Transports::ETHERNET).unwrap();
    tell_parent("the rest works");
    hear_parent();
}

/// What the child says: of the adapters, of registering memory, and of connecting.
fn said(variables: &[(&str, &str)]) -> [String; 3] {
    let mut child = Child::spawn(command("child").envs(variables.iter().copied())).unwrap();
    let said = [(); 3].map(|()| child.hear());
    assert_eq!(child.hear(), "the rest works");
    child.end();
    said
}

#[cfg(not(feature = "ib"))]
#[test]
fn a_build_without_it_says_how_to_get_it() {
    let [adapters, registering, connecting] = said(&[]);
    assert_eq!(adapters, "adapters: []");
    for error in [registering, connecting] {
        assert!(error.contains("this build has no InfiniBand: build with `--features ib`"), "{error}");
    }
}

#[cfg(feature = "ib")]
#[test]
fn a_library_that_was_asked_for_is_taken_or_named() {
    for (library, mark) in [
        ("/nowhere/libibverbs.so.1", "libibverbs cannot be loaded (/nowhere/libibverbs.so.1: "),
        ("libc.so.6", "libc.so.6 has no function ibv_get_device_list"),
    ] {
        for error in said(&[("WARPWIRE_IBV_SO", library)]) {
            assert!(error.contains(mark), "{error}");
        }
    }
}

#[cfg(feature = "ib")]
#[test]
fn an_adapter_that_is_not_there_is_named() {
    if !matches!(Adapter::names(), Ok(names) if names.is_empty()) {
        println!("skipped: this machine has an RDMA adapter, or a library that cannot be used");
        return;
    }
    let [adapters, registering, connecting] = said(&[]);
    assert_eq!(adapters, "adapters: []");
    for error in [registering, connecting] {
        assert!(error.contains("no RDMA adapter"), "{error}");
    }
    for error in &said(&[("WARPWIRE_HCA_DEVICES", "mlx5_3")])[1..] {
        assert!(error.contains("there is no RDMA adapter mlx5_3 (WARPWIRE_HCA_DEVICES)"), "{error}");
    }
}
