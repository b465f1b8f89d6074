//! Memory shared between processes on a GPU. Skipped, with the reason, where there is none.
#![cfg(feature = "cuda")]

#[path = "support/process.rs"]
mod process;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use process::{Child, command, hear_parent, of_hex, role, tell_parent, to_hex};
use warpwire::abi::{
    ChannelId, Global, InboundHandle, MemoryChannelBaseHandle, MemoryChannelHandle, OutboundHandle, Rank,
    SemaphoreHandle,
};
use warpwire::device::{
    Buffer, Device, DeviceSelector, HandleKinds, LaunchConfig, MemoryKind, MemoryOptions, builtin_module,
};
use warpwire::memory::{
    HandleChoice, HandleKind, RegisteredMemory, Shareable, SharedHandle, TokenPool, Transports,
    allocation_of, gpu_memset, gpu_memset_async, is_cu_mem_map_allocated, is_nvls_supported,
};
use warpwire::{Error, ErrorKind, MemoryError};
use warpwire_kernels::ping_pong::{PutPingPong, PutPingPongArgs};

const LONG: Duration = Duration::from_secs(60);
const GIB: usize = 1 << 30;
/// The kinds that can be shared, each with its handle.
const SHARED: [(MemoryKind, HandleKind); 2] =
    [(MemoryKind::Plain, HandleKind::CudaIpc), (MemoryKind::Virtual, HandleKind::PosixFd)];

fn gpu() -> Option<Device> {
    match Device::open(DeviceSelector::Cuda(0)) {
        Ok(device) => Some(device),
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// One test at a time: some count the GPU's free memory.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn free(device: &Device) -> i64 {
    device.memory_info().unwrap().free_bytes as i64
}

/// The same once it has stopped changing: the sharing thread lets go a moment after an importer has.
fn settled(device: &Device) -> i64 {
    let (mut last, mut same) = (free(device), 0);
    while same < 20 {
        std::thread::sleep(Duration::from_millis(10));
        let now = free(device);
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

/// Where an end's words and messages lie in its buffer, in bytes.
const EXPECTED: u64 = 128;
const OUTBOX: u64 = 4096;
const INBOX: u64 = 8192;
const MESSAGE: u64 = 4096;
const END_BYTES: usize = 3 * 4096;

/// Plays one end of a ping-pong of checked messages; gives how many words were wrong.
fn play(device: &Device, own: Global<u8>, peer: Global<u8>, end: u32) -> u32 {
    let stream = device.stream().unwrap();
    let wrong = device.allocate::<u32>(2).unwrap();
    let inbound = InboundHandle {
        token: own.cast(),
        expected: own.byte_add(EXPECTED).cast(),
        peer: Rank(1 - end),
        channel: ChannelId(0),
    };
    let semaphore = SemaphoreHandle { inbound, outbound: OutboundHandle { token: peer.cast() } };
    let handle = MemoryChannelHandle {
        base: MemoryChannelBaseHandle { semaphore },
        remote: peer.byte_add(INBOX),
        local: own.byte_add(OUTBOX),
        packets: own.byte_add(INBOX),
    };
    let args = PutPingPongArgs {
        ends: [handle; 2],
        policy: stream.policy(Rank(end), LONG),
        bytes: MESSAGE,
        wrong: wrong.address(),
        first_end: end,
        // Two processes take turns on a GPU: a hop is 2 ms.
        rounds: 50,
    };
    let function = device.load(builtin_module()).unwrap().function::<PutPingPong>().unwrap();
    // SAFETY: both ends' memory, the counts and the board outlive the launch, which is waited for.
    unsafe { stream.launch(&function, LaunchConfig::new(1, 256).concurrent(1), args) }.unwrap();
    stream.synchronize().unwrap();
    wrong.read().unwrap()[end as usize]
}

fn end_of(device: &Device, kind: MemoryKind) -> (Buffer<u8>, RegisteredMemory) {
    let buffer = device.allocate_with::<u8>(END_BYTES, MemoryOptions::new(kind)).unwrap();
    let registered = RegisteredMemory::of(&buffer, Transports::CUDA_IPC).unwrap();
    (buffer, registered)
}

/// What the children do: a line is a command and a message.
#[test]
fn child() {
    if role().is_none() {
        return;
    }
    let Some(device) = gpu() else { return };
    let mut kept: Option<Buffer<u8>> = None;
    let mut exported = None;
    tell_parent("here");
    while let Some(line) = hear_parent() {
        let (word, message) = line.split_once(' ').unwrap_or((&line, ""));
        let kind = || if message.starts_with("plain") { MemoryKind::Plain } else { MemoryKind::Virtual };
        match word {
            "open" => match SharedHandle::from_bytes(&of_hex(message)).unwrap().open::<u8>(&device) {
                Ok(buffer) => {
                    let mut first = [0; 4];
                    buffer.read_at(0, &mut first).unwrap();
                    kept = Some(buffer);
                    tell_parent(&format!("{first:?}"));
                }
                Err(error) => tell_parent(&format!("{:?} {error}", error.kind())),
            },
            "fill" => {
                kept.as_ref().unwrap().fill_bytes(message.parse().unwrap()).unwrap();
                tell_parent("filled");
            }
            "read" => {
                let mut first = [0; 4];
                kept.as_ref().unwrap().read_at(0, &mut first).unwrap();
                tell_parent(&format!("{first:?}"));
            }
            "drop" => {
                kept = None;
                tell_parent("dropped");
            }
            "export" => {
                let buffer = device.allocate_with::<u8>(4096, MemoryOptions::new(kind())).unwrap();
                buffer.fill_bytes(5).unwrap();
                let shareable = Shareable::of(&buffer, HandleChoice::Auto).unwrap();
                tell_parent(&to_hex(&shareable.handle().to_bytes().unwrap()));
                exported = Some((buffer, shareable));
            }
            "play" => {
                let (own, registered) = end_of(&device, kind());
                tell_parent(&to_hex(&registered.serialize().unwrap()));
                let peer = RegisteredMemory::deserialize(&device, &of_hex(&hear_parent().unwrap())).unwrap();
                let wrong = play(&device, own.address(), peer.address().unwrap(), 1);
                tell_parent(&format!("{wrong} wrong"));
                // The other end may still be at its last look.
                hear_parent();
            }
            other => panic!("the parent says {other:?}"),
        }
    }
    drop(exported);
}

fn start() -> Child {
    let mut child = Child::start("gpu");
    assert_eq!(child.hear(), "here");
    child
}

#[test]
fn kernels_of_two_processes_see_each_others_writes() {
    let (Some(device), _alone) = (gpu(), alone()) else { return };
    let mut child = start();
    for (kind, handle) in SHARED {
        let (own, registered) = end_of(&device, kind);
        assert!(registered.handle().unwrap().kinds().contains(handle.into()));
        let word = if kind == MemoryKind::Plain { "plain" } else { "virtual" };
        let message = child.ask(&format!("play {word}"));
        let peer = RegisteredMemory::deserialize(&device, &of_hex(&message)).unwrap();
        child.tell(&to_hex(&registered.serialize().unwrap()));
        assert_eq!(play(&device, own.address(), peer.address().unwrap(), 0), 0, "{kind}");
        assert_eq!(child.hear(), "0 wrong", "{kind}");
        child.tell("done");
        println!("{kind}: 50 rounds of {MESSAGE} bytes, by {handle} handles");
    }
    child.end();
}

#[test]
fn the_owner_may_go_first_and_the_importer_too() {
    let (Some(device), _alone) = (gpu(), alone()) else { return };
    let mut child = start();
    for (kind, _) in SHARED {
        let buffer = device.allocate_with::<u8>(8 << 20, MemoryOptions::new(kind)).unwrap();
        buffer.fill_bytes(1).unwrap();
        let shareable = Shareable::of(&buffer, HandleChoice::Auto).unwrap();
        let message = format!("open {}", to_hex(&shareable.handle().to_bytes().unwrap()));
        assert_eq!(child.ask(&message), "[1, 1, 1, 1]");
        assert_eq!(child.ask("fill 2"), "filled");
        assert_eq!(buffer.read().unwrap(), vec![2; 8 << 20]);
        drop((buffer, shareable));
        // New memory, which may not be what the child still has.
        let others: Vec<_> =
            (0..4).map(|_| device.allocate_with::<u8>(8 << 20, MemoryOptions::new(kind)).unwrap()).collect();
        others.iter().for_each(|other| other.fill_bytes(9).unwrap());
        assert_eq!(child.ask("read"), "[2, 2, 2, 2]");
        assert_eq!(child.ask("drop"), "dropped");
        let answer = child.ask(&message);
        assert!(answer.starts_with("NotFound"), "{kind}: {answer}");
    }
    child.end();
}

#[test]
fn a_handle_whose_exporter_has_died_is_an_error() {
    let (Some(device), _alone) = (gpu(), alone()) else { return };
    for word in ["plain", "virtual"] {
        let mut child = start();
        let handle = SharedHandle::from_bytes(&of_hex(&child.ask(&format!("export {word}")))).unwrap();
        let opened = handle.open::<u8>(&device).unwrap();
        assert_eq!(opened.read().unwrap(), vec![5; 4096]);
        drop(opened);
        child.kill();
        let error = handle.open::<u8>(&device).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::ExporterGone { .. })), "{word}: {error}");
    }
}

#[test]
fn a_forced_fabric_handle_gives_the_drivers_reason_and_auto_falls_back() {
    let (Some(device), _alone) = (gpu(), alone()) else { return };
    let buffer = device.allocate_shareable::<u8>(4096).unwrap();
    match Shareable::of(&buffer, HandleChoice::Only(HandleKind::Fabric)) {
        Ok(_) => println!("fabric handles work here"),
        Err(error) => {
            let text = error.to_string();
            println!("{text}");
            let unavailable = matches!(
                error,
                Error::Memory(MemoryError::HandleUnavailable { kind: HandleKind::Fabric, .. })
            );
            assert!(unavailable && text.contains("CUDA_ERROR"), "{text}");
        }
    }
    let auto = Shareable::of(&buffer, HandleChoice::Auto).unwrap();
    assert!(auto.handle().kinds().contains(HandleKinds::POSIX_FD), "{:?}", auto.handle().kinds());
    // By the environment as well.
    let mut child = Child::spawn(command("gpu").env("WARPWIRE_HANDLE_TYPE", "fd")).unwrap();
    assert_eq!(child.hear(), "here");
    let handle = SharedHandle::from_bytes(&of_hex(&child.ask("export virtual"))).unwrap();
    assert_eq!(handle.kinds(), HandleKinds::POSIX_FD);
    child.end();
}

#[test]
fn two_hundred_cycles_of_a_gib_leave_free_memory_as_it_was() {
    let (Some(device), _alone) = (gpu(), alone()) else { return };
    let mut child = start();
    for (kind, _) in SHARED {
        let mut first = 0;
        for cycle in 0..=200 {
            // The first cycle makes what is made once.
            if cycle == 1 {
                first = settled(&device);
            }
            let options = MemoryOptions::new(kind).zeroed(cycle % 2 == 0);
            let buffer = device.allocate_with::<u8>(GIB, options).unwrap();
            let shareable = Shareable::of(&buffer, HandleChoice::Auto).unwrap();
            buffer.write(&[cycle as u8; 4]).unwrap();
            let message = to_hex(&shareable.handle().to_bytes().unwrap());
            assert_eq!(child.ask(&format!("open {message}")), format!("{:?}", [cycle as u8; 4]));
            // By turns the owner first and the importer first.
            if cycle % 2 == 0 {
                assert_eq!(child.ask("drop"), "dropped");
                drop((buffer, shareable));
            } else {
                drop((buffer, shareable));
                assert_eq!(child.ask("drop"), "dropped");
            }
        }
        let last = settled(&device);
        println!("{kind}: {first} bytes free, after 200 cycles {last}");
        assert!((last - first).abs() <= 2 << 20, "{kind}: {first} bytes were free, then {last}");
    }
    child.end();
}

#[test]
fn what_the_gpu_has_no_room_for_is_an_error_and_leaves_nothing() {
    let (Some(device), _alone) = (gpu(), alone()) else { return };
    let allocate = |kind, bytes| device.allocate_with::<u8>(bytes, MemoryOptions::new(kind));
    for kind in [MemoryKind::Device, MemoryKind::Plain, MemoryKind::Virtual] {
        drop(allocate(kind, 1));
        let first = free(&device);
        for _ in 0..20 {
            let error = allocate(kind, 1 << 42).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. }), "{kind}: {error}");
            assert!(matches!(allocate(kind, 0), Err(Error::EmptyAllocation)));
        }
        // Out of memory, a driver gives back what it had kept in reserve: more may be free than before, but not less.
        assert!(first - free(&device) <= 2 << 20, "{kind}");
    }
}

#[test]
fn addresses_are_known_and_memory_is_set() {
    let (Some(device), _alone) = (gpu(), alone()) else { return };
    let on_stack = 0u64;
    for address in [0, 1, &raw const on_stack as u64] {
        assert!(!is_cu_mem_map_allocated(&device, address));
        assert_eq!(allocation_of(&device, address), None);
    }
    for kind in [MemoryKind::Device, MemoryKind::Plain, MemoryKind::Virtual] {
        let buffer = device.allocate_with::<u8>(3 << 20, MemoryOptions::new(kind)).unwrap();
        let address = buffer.address().address();
        assert_eq!(is_cu_mem_map_allocated(&device, address + 5), kind == MemoryKind::Virtual, "{kind}");
        let range = allocation_of(&device, address + (1 << 20)).unwrap();
        assert!(range.address == address && range.bytes >= 3 << 20, "{kind}: {range:?}");
        let stream = device.stream().unwrap();
        // SAFETY: inside the buffer, which outlives the work, and which nothing else touches.
        unsafe {
            gpu_memset(&device, buffer.address(), 0xA5, 100).unwrap();
            gpu_memset_async(&stream, buffer.address().add(50), 0x11, 10).unwrap();
        }
        stream.synchronize().unwrap();
        let mut expected = vec![0xA5; 100];
        expected[50..60].fill(0x11);
        expected.push(0);
        assert_eq!(buffer.read().unwrap()[..101], expected, "{kind}");
    }
    println!("multicast: {}", is_nvls_supported(&device));
}

#[test]
fn memory_from_elsewhere_is_shared_or_named_with_its_kind() {
    use cust::sys::{CUcontext, cuCtxSetCurrent, cuDevicePrimaryCtxRetain, cuMemAlloc_v2, cuMemAllocManaged};
    let (Some(device), _alone) = (gpu(), alone()) else { return };
    let mut context: CUcontext = std::ptr::null_mut();
    let (mut plain, mut managed) = (0, 0);
    // SAFETY: live places for the results; the driver has been started by the device. The memory is leaked.
    let results = unsafe {
        [
            cuDevicePrimaryCtxRetain(&mut context, 0),
            cuCtxSetCurrent(context),
            cuMemAlloc_v2(&mut plain, 1 << 20),
            cuMemAllocManaged(&mut managed, 1 << 20, 1),
        ]
    };
    assert!(results.iter().all(|&result| result == cust::sys::CUresult::CUDA_SUCCESS), "{results:?}");
    let share = |address, bytes| {
        // SAFETY: leaked memory, memory of a buffer below, or memory that is refused.
        unsafe { Shareable::of_address(&device, Global::from_address(address), bytes, HandleChoice::Auto) }
    };
    let ours = share(plain + 100, 1000).unwrap();
    assert_eq!(ours.handle().kinds(), HandleKinds::CUDA_IPC);
    let mut child = start();
    let message = to_hex(&ours.handle().to_bytes().unwrap());
    // SAFETY: leaked memory, which nothing else touches.
    unsafe { gpu_memset(&device, Global::from_address(plain + 100), 7, 1000) }.unwrap();
    assert_eq!(child.ask(&format!("open {message}")), "[7, 7, 7, 7]");
    let virtual_memory = device.allocate_shareable::<u8>(100).unwrap();
    let again = share(virtual_memory.address().address() + 4, 96).unwrap();
    virtual_memory.fill_bytes(8).unwrap();
    drop(virtual_memory);
    let message = to_hex(&again.handle().to_bytes().unwrap());
    assert_eq!(child.ask(&format!("open {message}")), "[8, 8, 8, 8]");
    child.end();

    let private = MemoryOptions::new(MemoryKind::Virtual).exportable(false);
    let (pool, private) =
        (device.allocate::<u8>(100).unwrap(), device.allocate_with::<u8>(100, private).unwrap());
    let host = device.allocate_host::<u8>(100).unwrap();
    let ordinary = [0u8; 100];
    for (address, kind) in [
        (pool.address().address(), "pool"),
        (private.address().address(), "virtual memory"),
        (host.address().address(), "pinned host memory"),
        (managed, "managed memory"),
        (ordinary.as_ptr() as u64, "ordinary host memory"),
    ] {
        let text = share(address, 100).unwrap_err().to_string();
        println!("{text}");
        assert!(text.contains(kind), "{text}");
    }
    let error = share(plain, 2 << 20).unwrap_err();
    assert!(matches!(error, Error::Memory(MemoryError::NotOneAllocation { .. })), "{error}");
}

#[test]
fn a_recycled_token_is_zero() {
    let (Some(device), _alone) = (gpu(), alone()) else { return };
    let pool = TokenPool::with_block_slots(&device, 1);
    for _ in 0..100 {
        let token = pool.take().unwrap();
        assert_eq!(token.read().unwrap(), 0);
        // SAFETY: the slot is this test's.
        unsafe { gpu_memset(&device, token.address().cast(), 7, 8) }.unwrap();
        assert_eq!(token.read().unwrap(), 0x0707_0707_0707_0707);
    }
    assert_eq!(pool.capacity(), 1);
}
