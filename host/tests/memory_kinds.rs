//! Buffers by kind, and what is asked about them.

mod support;

use support::cpu;
use warpwire::abi::Global;
use warpwire::device::{AddressRange, Device, HandleKinds, MemoryKind, MemoryOptions};
use warpwire::memory::{
    HandleChoice, Shareable, allocation_of, gpu_memset, gpu_memset_async, is_cu_mem_map_allocated,
    is_nvls_supported,
};
use warpwire::{Error, ErrorKind, MemoryError};

const KINDS: [MemoryKind; 3] = [MemoryKind::Device, MemoryKind::Plain, MemoryKind::Virtual];

#[test]
fn every_kind_is_zero_and_holds_what_is_written() {
    let device = cpu();
    for kind in KINDS {
        for zeroed in [true, false] {
            for len in [1, 3, 8192, 100_000] {
                let options = MemoryOptions::new(kind).zeroed(zeroed);
                let buffer = device.allocate_with::<u64>(len, options).unwrap();
                assert_eq!((buffer.kind(), buffer.len()), (kind, len));
                if zeroed {
                    assert!(buffer.read().unwrap().iter().all(|&word| word == 0));
                }
                buffer.write_at(len - 1, &[7]).unwrap();
                assert_eq!(buffer.read().unwrap()[len - 1], 7);
            }
        }
    }
    assert_eq!(device.allocate_host::<u8>(1).unwrap().kind(), MemoryKind::Host);
}

#[test]
fn nothing_and_too_much_are_errors() {
    let device = cpu();
    for kind in KINDS {
        let allocate = |len| device.allocate_with::<u64>(len, MemoryOptions::new(kind)).unwrap_err();
        assert!(matches!(allocate(0), Error::EmptyAllocation));
        assert!(matches!(allocate(usize::MAX), Error::SizeOverflow { .. }));
        assert!(matches!(allocate(1 << 50), Error::OutOfMemory { .. }));
        assert!(matches!(allocate(isize::MAX as usize / 8), Error::OutOfMemory { .. }));
    }
    for kind in [MemoryKind::Host, MemoryKind::Imported] {
        let error = device.allocate_with::<u64>(1, MemoryOptions::new(kind)).unwrap_err();
        assert!(matches!(error, Error::NoSuchMemory { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn questions_about_addresses_have_answers_and_no_errors() {
    let device = cpu();
    let ask = |address| is_cu_mem_map_allocated(&device, address);
    let on_stack = 0u64;
    for address in [0, 1, u64::MAX, &raw const on_stack as u64] {
        assert!(!ask(address));
        assert_eq!(allocation_of(&device, address), None);
    }
    let host = device.allocate_host::<u8>(10).unwrap();
    assert!(!ask(host.address().address()));
    for kind in KINDS {
        let buffer = device.allocate_with::<u8>(1000, MemoryOptions::new(kind)).unwrap();
        let address = buffer.address().address();
        for inside in [address, address + 999] {
            assert_eq!(ask(inside), kind == MemoryKind::Virtual, "{kind}");
            let range = allocation_of(&device, inside).unwrap();
            assert_eq!(range.address, address);
            assert!(range.contains(AddressRange { address, bytes: 1000 }), "{kind}: {range:?}");
        }
        drop(buffer);
        assert!(!ask(address));
        assert_eq!(allocation_of(&device, address), None);
    }
    assert!(is_nvls_supported(&device));
    let info = device.memory_info().unwrap();
    assert!(0 < info.free_bytes && info.free_bytes <= info.total_bytes, "{info:?}");
}

#[test]
fn memory_is_set_at_once_and_in_a_streams_order() {
    let device = cpu();
    let stream = device.stream().unwrap();
    let buffer = device.allocate::<u8>(1000).unwrap();
    let at = |offset| buffer.address().add(offset);
    // SAFETY: inside the buffer, which nothing else touches, here and below.
    unsafe { gpu_memset(&device, at(10), 0xA5, 20) }.unwrap();
    // SAFETY: as above; the buffer outlives the work, which is waited for.
    unsafe {
        gpu_memset_async(&stream, at(15), 0x11, 5).unwrap();
        gpu_memset_async(&stream, at(16), 0x22, 1).unwrap();
        gpu_memset_async(&stream, at(0), 0x33, 0).unwrap();
    }
    stream.synchronize().unwrap();
    let mut expected = vec![0; 1000];
    expected[10..30].fill(0xA5);
    expected[15..20].fill(0x11);
    expected[16] = 0x22;
    assert_eq!(buffer.read().unwrap(), expected);
    // In a recording too.
    // SAFETY: as above.
    let graph = stream.capture(|stream| unsafe { gpu_memset_async(stream, at(0), 0x44, 1000) }).unwrap();
    assert_eq!(buffer.read().unwrap(), expected);
    // SAFETY: as above.
    unsafe { graph.launch(&stream) }.unwrap();
    stream.synchronize().unwrap();
    assert_eq!(buffer.read().unwrap(), [0x44; 1000]);
}

/// Registers memory by its address: what came of it.
fn share_address(device: &Device, address: u64, bytes: u64) -> warpwire::Result<Shareable> {
    // SAFETY: an address of memory that the caller keeps, or one that is refused.
    unsafe { Shareable::of_address(device, Global::from_address(address), bytes, HandleChoice::Auto) }
}

#[test]
fn memory_from_elsewhere_is_shared_or_named_with_its_kind() {
    let device = cpu();
    for kind in [MemoryKind::Plain, MemoryKind::Virtual] {
        let buffer = device.allocate_with::<u8>(5000, MemoryOptions::new(kind)).unwrap();
        buffer.write_at(100, &[1, 2, 3]).unwrap();
        let shareable = share_address(&device, buffer.address().address() + 100, 3).unwrap();
        assert_eq!(shareable.handle().bytes(), 3);
        let opened = shareable.handle().open::<u8>(&device).unwrap();
        assert_eq!(opened.read().unwrap(), [1, 2, 3]);
        // A reference has been taken: the owner may go.
        drop(buffer);
        assert_eq!(opened.read().unwrap(), [1, 2, 3]);
    }

    let private = MemoryOptions::new(MemoryKind::Virtual).exportable(false);
    let refused = [
        (device.allocate::<u8>(100).unwrap(), "pool", "MemoryKind::Plain"),
        (device.allocate_with::<u8>(100, private).unwrap(), "virtual memory", "exportable"),
    ];
    for (buffer, kind, remedy) in &refused {
        let by_address = share_address(&device, buffer.address().address(), 100).unwrap_err();
        let by_buffer = Shareable::of(buffer, HandleChoice::Auto).unwrap_err();
        for error in [by_address, by_buffer] {
            let text = error.to_string();
            assert!(matches!(error, Error::Memory(MemoryError::NotShareable { .. })), "{text}");
            assert!(text.contains(kind) && text.contains(remedy), "{text}");
        }
    }
    let host = device.allocate_host::<u8>(100).unwrap();
    let error = share_address(&device, host.address().address(), 100).unwrap_err().to_string();
    assert!(error.contains("pinned host memory") && error.contains("copy it"), "{error}");
    let ordinary = [0u8; 100];
    let error = share_address(&device, ordinary.as_ptr() as u64, 100).unwrap_err().to_string();
    assert!(error.contains("ordinary host memory") && error.contains("copy it"), "{error}");
}

#[test]
fn a_range_across_allocations_is_an_error() {
    let device = cpu();
    let buffer = device.allocate_with::<u8>(100, MemoryOptions::new(MemoryKind::Plain)).unwrap();
    let address = buffer.address().address();
    for (address, bytes) in [(address, 101), (address + 50, 51), (address, 0), (address, u64::MAX)] {
        let error = share_address(&device, address, bytes).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::NotOneAllocation { .. })), "{error}");
    }
}

#[test]
fn the_cpu_device_hands_over_descriptors() {
    assert_eq!(cpu().handle_kinds(), HandleKinds::POSIX_FD);
}
