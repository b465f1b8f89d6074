//! What keeps what, by which kind of handle, and that everything is let go once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use super::mock::Record;
use crate::device::driver::DriverMemory;
use crate::device::{Device, HandleKinds, MemoryKind, MemoryOptions};
use crate::env::HostId;
use crate::error::{Error, ErrorKind, HandleKind, MemoryError, Result};
use crate::memory::import::{self, Here};
use crate::memory::mapping;
use crate::memory::{
    HandleChoice, Multicast, RegisteredMemory, Shareable, SharedHandle, Transports, identity,
    is_cu_mem_map_allocated, is_nvls_supported,
};

/// Imports as a process of this number would, on this host or on another.
fn import_as(
    process: u8,
    host: Option<&str>,
    device: &Device,
    handle: &SharedHandle,
) -> Result<Arc<dyn DriverMemory>> {
    let host = host.map_or_else(identity::host, |name| Ok(HostId::named(name)))?;
    let here = Here { host, process: [process; 16] };
    let mut part = handle.part().clone();
    // Also the mapping's place: told apart from those of other tests.
    part.origin.process = [process ^ 0xFF; 16];
    Ok(import::memory_at(device, &part, here)?)
}

fn places(process: u8) -> usize {
    mapping::places_of([process ^ 0xFF; 16])
}

#[test]
fn each_capability_is_probed_once() {
    let record = Record::new(HandleKinds::POSIX_FD, HandleKinds::all());
    let device = record.device();
    for _ in 0..3 {
        assert_eq!(device.handle_kinds(), HandleKinds::POSIX_FD);
        assert!(is_nvls_supported(&device));
        device.allocate_shareable::<u8>(1).unwrap();
        device.try_handle(HandleKind::Fabric).unwrap_err();
    }
    for kind in HandleKind::ALL {
        assert_eq!(record.probes[kind as usize].load(Ordering::SeqCst), 1, "{kind}");
    }
    assert_eq!(record.multicast_probes.load(Ordering::SeqCst), 1);
    for address in [0, 1, 0x10_0000, u64::MAX] {
        assert!(!is_cu_mem_map_allocated(&device, address));
    }
}

#[test]
fn an_export_outlives_its_buffer_and_ends_with_its_owner() {
    for kind in HandleKind::ALL {
        let record = Record::new(HandleKinds::all(), HandleKinds::all());
        let device = record.device();
        // The mock's virtual memory can be exported by each kind.
        let buffer = device.allocate_with::<u64>(4, MemoryOptions::new(MemoryKind::Virtual)).unwrap();
        let shareable = Shareable::of(&buffer, HandleChoice::Only(kind)).unwrap();
        let handle = shareable.handle().clone();
        drop(buffer);
        assert_eq!(record.live(), 1, "{kind}");
        let process = 0x10 + kind as u8;
        import_as(process, None, &device, &handle).unwrap();
        drop(shareable);
        record.wait_until_released();
        let error = import_as(process, None, &device, &handle).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::ExporterGone { .. })), "{kind}: {error}");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        // In the exporting process itself likewise.
        let error = handle.open::<u64>(&device).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::ExporterGone { .. })), "{kind}: {error}");
        assert_eq!(places(process), 0);
    }
}

#[test]
fn what_an_importer_has_mapped_outlives_its_owner() {
    for kind in [HandleKind::Fabric, HandleKind::CudaIpc] {
        let record = Record::new(HandleKinds::all(), HandleKinds::all());
        let device = record.device();
        let buffer = device.allocate_with::<u64>(4, MemoryOptions::new(MemoryKind::Virtual)).unwrap();
        let shareable = Shareable::of(&buffer, HandleChoice::Only(kind)).unwrap();
        let handle = shareable.handle().clone();
        let mapped = import_as(0x20 + kind as u8, None, &device, &handle).unwrap();
        drop((buffer, shareable));
        // Nobody new is given it.
        let error = import_as(0x28 + kind as u8, None, &device, &handle).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::ExporterGone { .. })), "{kind}: {error}");
        // The owner's reference, which neither kind of handle keeps by itself, and the importer's own.
        for _ in 0..100 {
            assert_eq!(record.live(), 2, "{kind}");
            thread::yield_now();
        }
        drop(mapped);
        record.wait_until_released();
        let log = record.take_log();
        assert_eq!(log, ["export", "release", "release"], "{kind}");
    }
}

#[test]
fn an_importer_without_fabric_takes_the_descriptor_and_says_what_it_tried_elsewhere() {
    let record = Record::new(HandleKinds::all(), HandleKinds::POSIX_FD | HandleKinds::CUDA_IPC);
    let device = record.device();
    let buffer = device.allocate_with::<u64>(4, MemoryOptions::new(MemoryKind::Virtual)).unwrap();
    let shareable = Shareable::of(&buffer, HandleChoice::Auto).unwrap();
    let handle = shareable.handle();
    assert_eq!(handle.kinds(), HandleKinds::all());

    let mapped = import_as(0x30, None, &device, handle).unwrap();
    assert_eq!(record.imports.load(Ordering::SeqCst), 1);
    drop(mapped);

    let error = import_as(0x30, Some("another-host"), &device, handle).unwrap_err();
    let Error::Memory(MemoryError::NoHandleWorked { attempts, .. }) = &error else { panic!("{error}") };
    let tried: Vec<_> = attempts.iter().map(|(kind, _)| kind).collect();
    assert_eq!(tried, HandleKind::ALL);
    for (kind, error) in attempts.iter().skip(1) {
        assert!(
            matches!(error, Error::Memory(MemoryError::OtherHost { kind: k, .. }) if *k == kind),
            "{error}"
        );
    }
    let text = error.to_string();
    for part in [
        "fabric (mocked: import",
        "file-descriptor (",
        "CUDA IPC (",
        &HostId::named("another-host").to_string(),
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(places(0x30), 0);
}

#[test]
fn a_fabric_handle_reaches_another_host() {
    let record = Record::new(HandleKinds::all(), HandleKinds::FABRIC);
    let device = record.device();
    let buffer = device.allocate_with::<u64>(4, MemoryOptions::new(MemoryKind::Virtual)).unwrap();
    let shareable = Shareable::of(&buffer, HandleChoice::Auto).unwrap();
    import_as(0x31, Some("another-host"), &device, shareable.handle()).unwrap();
}

#[test]
fn a_kind_that_was_asked_for_works_or_says_why_not() {
    let record = Record::new(HandleKinds::POSIX_FD, HandleKinds::all());
    let device = record.device();
    let buffer = device.allocate_shareable::<u64>(4).unwrap();
    assert_eq!(buffer.kind(), MemoryKind::Virtual);
    let error = Shareable::of(&buffer, HandleChoice::Only(HandleKind::Fabric)).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::Memory(MemoryError::HandleUnavailable { kind: HandleKind::Fabric, .. })),
        "{text}"
    );
    assert!(text.contains("mock makes no fabric handles") && text.contains("mocked: fabric"), "{text}");
    let shareable = Shareable::of(&buffer, HandleChoice::Auto).unwrap();
    assert_eq!(shareable.handle().kinds(), HandleKinds::POSIX_FD);
}

#[test]
fn memory_without_handles_is_named_with_a_remedy() {
    let record = Record::new(HandleKinds::empty(), HandleKinds::all());
    let device = record.device();
    let error = device.allocate_shareable::<u64>(4).unwrap_err();
    assert!(matches!(error, Error::Memory(MemoryError::HandleUnavailable { .. })), "{error}");
    for (kind, part) in [(MemoryKind::Device, "MemoryKind::Virtual"), (MemoryKind::Virtual, "exportable")] {
        let buffer = device.allocate_with::<u64>(4, MemoryOptions::new(kind)).unwrap();
        let error = Shareable::of(&buffer, HandleChoice::Auto).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Memory(MemoryError::NotShareable { .. })), "{text}");
        assert!(text.contains(kind.words()) && text.contains(part), "{text}");
    }
    // Plain memory has its kind of handle, which does not work here.
    let plain = device.allocate_with::<u64>(4, MemoryOptions::new(MemoryKind::Plain)).unwrap();
    let error = Shareable::of(&plain, HandleChoice::Auto).unwrap_err().to_string();
    assert!(error.contains("cannot share the memory; tried CUDA IPC (mocked: ipc"), "{error}");
    drop(plain);
    assert_eq!(record.live(), 0, "no failure leaves a reference");
}

#[test]
fn many_parts_of_an_allocation_are_exported_and_mapped_once() {
    let record = Record::new(HandleKinds::CUDA_IPC, HandleKinds::CUDA_IPC);
    let device = record.device();
    let buffer = device.allocate_with::<u64>(1000, MemoryOptions::new(MemoryKind::Plain)).unwrap();
    let parts: Vec<_> = (0..1000)
        .map(|i| RegisteredMemory::of(&buffer.part(i, 1).unwrap(), Transports::CUDA_IPC).unwrap())
        .collect();
    assert_eq!(record.take_log(), ["export"]);
    let handles: Vec<_> = parts.iter().map(|part| part.handle().unwrap()).collect();
    // From several threads at once, each of which has to wait for the first.
    let mapped: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = handles
            .chunks(250)
            .map(|chunk| {
                let import = |handle| import_as(0x40, None, &device, handle).unwrap();
                scope.spawn(move || chunk.iter().map(import).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(record.imports.load(Ordering::SeqCst), 1);
    assert_eq!(places(0x40), 1);
    drop(mapped);
    assert_eq!(places(0x40), 0);
    drop((parts, buffer));
    record.wait_until_released();
}

#[test]
fn two_hundred_cycles_leave_nothing() {
    let record = Record::new(HandleKinds::all(), HandleKinds::all());
    let device = record.device();
    for _ in 0..200 {
        let buffer = device.allocate_with::<u8>(1 << 30, MemoryOptions::new(MemoryKind::Virtual)).unwrap();
        let registered = RegisteredMemory::of(&buffer, Transports::CUDA_IPC).unwrap();
        let mapped = import_as(0x50, None, &device, &registered.handle().unwrap()).unwrap();
        let own = RegisteredMemory::deserialize(&device, &registered.serialize().unwrap()).unwrap();
        drop((buffer, registered, own, mapped));
        record.wait_until_released();
    }
    assert_eq!(record.retained.load(Ordering::SeqCst), record.released.load(Ordering::SeqCst));
    assert_eq!(places(0x50), 0);
}

#[test]
fn multicast_objects_are_undone_in_order_whatever_is_dropped_first() {
    let record = Record::new(HandleKinds::all(), HandleKinds::all());
    let device = record.device();
    for cycle in 0..200 {
        let buffer = device.allocate_with::<u8>(0x1000, MemoryOptions::new(MemoryKind::Virtual)).unwrap();
        let multicast = Multicast::create(&device, 0x1000, 1).unwrap();
        let shared = multicast.share(HandleChoice::Auto).unwrap();
        multicast.add_device().unwrap();
        let binding = multicast.bind(0, &buffer, 0, 0x1000).unwrap();
        let mapping = multicast.map().unwrap();
        match cycle % 3 {
            0 => drop((buffer, multicast, shared, binding, mapping)),
            1 => drop((mapping, binding, multicast, buffer, shared)),
            _ => drop((binding, shared, multicast, mapping, buffer)),
        }
        let log = record.take_log();
        let log: Vec<_> = log.into_iter().filter(|what| *what != "export").collect();
        assert_eq!(log, ["add", "bind", "map", "unmap", "unbind", "release", "release"]);
        assert_eq!(record.live(), 0);
    }
}
