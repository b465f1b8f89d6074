//! Memory shared between processes, on the CPU device.

mod support {
    pub mod process;
}

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use support::process::{Child, command, hear_parent, of_hex, role, tell_parent, to_hex};
use warpwire::device::{Buffer, Device, DeviceSelector, HandleKinds, MemoryKind, MemoryOptions};
use warpwire::memory::{HandleChoice, HandleKind, RegisteredMemory, Shareable, SharedHandle, Transports};
use warpwire::{Error, ErrorKind, MemoryError};

fn cpu() -> Device {
    Device::open(DeviceSelector::Cpu).unwrap()
}

fn shared(device: &Device, kind: MemoryKind, words: &[u32]) -> (Buffer<u32>, Shareable, String) {
    let buffer = device.allocate_with::<u32>(words.len(), MemoryOptions::new(kind)).unwrap();
    buffer.write(words).unwrap();
    let shareable = Shareable::of(&buffer, HandleChoice::Auto).unwrap();
    let message = to_hex(&shareable.handle().to_bytes().unwrap());
    (buffer, shareable, message)
}

fn open(device: &Device, message: &str) -> warpwire::Result<Buffer<u32>> {
    SharedHandle::from_bytes(&of_hex(message))?.open::<u32>(device)
}

/// What the children of this file do.
#[test]
fn child() {
    let Some(role) = role() else { return };
    let device = cpu();
    match role.as_str() {
        "importer" => importer(&device),
        "exporter" => exporter(&device),
        "few descriptors" => few_descriptors(&device),
        other => panic!("no child is {other}"),
    }
}

/// Opens what it is told, and says what is in it; keeps it until the next.
fn importer(device: &Device) {
    let mut kept = None;
    while let Some(line) = hear_parent() {
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("open", message) => match open(device, message) {
                Ok(buffer) => {
                    tell_parent(&format!("{:?}", buffer.read().unwrap()));
                    kept = Some(buffer);
                }
                Err(error) => tell_parent(&format!("{:?} {error}", error.kind())),
            },
            ("read", "") => tell_parent(&format!("{:?}", kept.as_ref().unwrap().read().unwrap())),
            ("write", value) => {
                let buffer = kept.as_ref().unwrap();
                buffer.write(&vec![value.parse().unwrap(); buffer.len()]).unwrap();
                tell_parent("written");
            }
            ("drop", "") => {
                kept = None;
                tell_parent("dropped");
            }
            other => panic!("the parent says {other:?}"),
        }
    }
}

/// Shares a buffer of its own; drops the parts that it is told.
fn exporter(device: &Device) {
    let (buffer, shareable, message) = shared(device, MemoryKind::Virtual, &[5, 6, 7]);
    tell_parent(&message);
    let (mut buffer, mut shareable) = (Some(buffer), Some(shareable));
    while let Some(line) = hear_parent() {
        match line.as_str() {
            "drop buffer" => buffer = None,
            "drop export" => shareable = None,
            other => panic!("the parent says {other:?}"),
        }
        tell_parent("dropped");
    }
    drop((buffer, shareable));
}

#[test]
fn both_sides_see_each_others_writes() {
    let device = cpu();
    let mut child = Child::start("importer");
    for kind in [MemoryKind::Plain, MemoryKind::Virtual] {
        // Several in one slab, so that a handle has an offset.
        let before = device.allocate_with::<u8>(300, MemoryOptions::new(kind)).unwrap();
        let (buffer, shareable, message) = shared(&device, kind, &[1, 2, 3]);
        assert_eq!(shareable.handle().kinds(), HandleKinds::POSIX_FD);
        assert_eq!(child.ask(&format!("open {message}")), "[1, 2, 3]");
        assert_eq!(child.ask("write 9"), "written");
        assert_eq!(buffer.read().unwrap(), [9; 3]);
        buffer.write(&[4]).unwrap();
        assert_eq!(child.ask("read"), "[4, 9, 9]");
        assert_eq!(before.read().unwrap(), [0; 300]);
    }
    child.end();
}

#[test]
fn the_owner_may_go_first_and_the_importer_too() {
    let device = cpu();
    let mut child = Child::start("importer");
    let (buffer, shareable, message) = shared(&device, MemoryKind::Virtual, &[1, 2, 3]);
    // The buffer goes before anybody has mapped it: the export keeps it.
    drop(buffer);
    assert_eq!(child.ask(&format!("open {message}")), "[1, 2, 3]");
    drop(shareable);
    assert_eq!(child.ask("read"), "[1, 2, 3]");
    assert_eq!(child.ask("write 8"), "written");
    assert_eq!(child.ask("read"), "[8, 8, 8]");
    assert_eq!(child.ask("drop"), "dropped");
    // It is gone for those who come now.
    let answer = child.ask(&format!("open {message}"));
    assert!(answer.starts_with("NotFound") && answer.contains("no longer shares it"), "{answer}");

    let (buffer, shareable, message) = shared(&device, MemoryKind::Virtual, &[7]);
    assert_eq!(child.ask(&format!("open {message}")), "[7]");
    assert_eq!(child.ask("drop"), "dropped");
    assert_eq!(child.ask(&format!("open {message}")), "[7]");
    child.end();
    assert_eq!(buffer.read().unwrap(), [7]);
    drop(shareable);
}

#[test]
fn a_handle_whose_exporter_has_died_is_an_error_and_what_is_mapped_stays() {
    let device = cpu();
    let mut exporter = Child::start("exporter");
    let message = exporter.hear();
    let buffer = open(&device, &message).unwrap();
    exporter.kill();
    assert_eq!(buffer.read().unwrap(), [5, 6, 7]);
    drop(buffer);
    let error = open(&device, &message).unwrap_err();
    assert!(matches!(error, Error::Memory(MemoryError::ExporterGone { .. })), "{error}");
}

#[test]
fn a_handle_whose_export_was_dropped_is_an_error() {
    let device = cpu();
    let mut exporter = Child::start("exporter");
    let message = exporter.hear();
    assert_eq!(exporter.ask("drop buffer"), "dropped");
    assert_eq!(open(&device, &message).unwrap().read().unwrap(), [5, 6, 7]);
    assert_eq!(exporter.ask("drop export"), "dropped");
    let error = open(&device, &message).unwrap_err();
    assert!(matches!(error, Error::Memory(MemoryError::ExporterGone { .. })), "{error}");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    exporter.end();
}

#[test]
fn importers_that_come_at_once_all_get_it() {
    let device = cpu();
    let (buffer, _shareable, message) = shared(&device, MemoryKind::Plain, &[3; 4]);
    let mut children: Vec<_> = (0..4).map(|_| Child::start("importer")).collect();
    for child in &mut children {
        child.tell(&format!("open {message}"));
    }
    for child in &mut children {
        assert_eq!(child.hear(), "[3, 3, 3, 3]");
    }
    children[0].ask("write 6");
    assert_eq!(buffer.read().unwrap(), [6; 4]);
    for mut child in children {
        assert_eq!(child.ask("read"), "[6, 6, 6, 6]");
        child.end();
    }
}

#[test]
fn the_exporting_process_opens_its_own_handles() {
    let (device, other) = (cpu(), cpu());
    let (buffer, shareable, message) = shared(&device, MemoryKind::Plain, &[1, 2]);
    for device in [&device, &other] {
        let opened = open(device, &message).unwrap();
        assert_eq!(opened.kind(), MemoryKind::Imported);
        assert_eq!(opened.address(), buffer.address());
        opened.write(&[7]).unwrap();
        // What is somebody else's is not handed on.
        let error = Shareable::of(&opened, HandleChoice::Auto).unwrap_err().to_string();
        assert!(error.contains("share it from the process that it belongs to"), "{error}");
    }
    let opened = open(&other, &message).unwrap();
    drop((buffer, shareable, device));
    assert_eq!(opened.read().unwrap(), [7, 2]);
}

#[test]
fn a_handle_opens_as_whole_elements_alone() {
    let device = cpu();
    let (_buffer, shareable, _) = shared(&device, MemoryKind::Plain, &[1, 2, 3]);
    let error = shareable.handle().open::<u64>(&device).unwrap_err();
    assert!(
        matches!(error, Error::Memory(MemoryError::ElementSize { bytes: 12, element_bytes: 8 })),
        "{error}"
    );
    let error = shareable.handle().open::<[u32; 0]>(&device).unwrap_err();
    assert!(matches!(error, Error::Memory(MemoryError::ElementSize { .. })), "{error}");
    assert_eq!(shareable.handle().open::<[u32; 3]>(&device).unwrap().read().unwrap(), [[1, 2, 3]]);
}

#[test]
fn registered_memory_is_mapped_by_the_peer_or_only_known() {
    let (device, peer) = (cpu(), cpu());
    let buffer = device.allocate_shareable::<u32>(100).unwrap();
    let registered = RegisteredMemory::of(&buffer, Transports::CUDA_IPC | Transports::ETHERNET).unwrap();
    let known = RegisteredMemory::deserialize(&peer, &registered.serialize().unwrap()).unwrap();
    assert_eq!((known.bytes(), known.owner_address()), (400, buffer.address().address()));
    assert_eq!(known.address(), Some(buffer.address().cast()));
    assert_eq!(known.transports(), registered.transports());

    // Private memory is good for a transport that maps nothing.
    let private = device.allocate::<u32>(10).unwrap();
    let registered = RegisteredMemory::of(&private, Transports::ETHERNET).unwrap();
    let known = RegisteredMemory::deserialize(&peer, &registered.serialize().unwrap()).unwrap();
    assert_eq!((known.address(), known.bytes()), (None, 40));
    assert!(known.handle().is_none());
    let error = RegisteredMemory::of(&private, Transports::CUDA_IPC).unwrap_err();
    assert!(matches!(error, Error::Memory(MemoryError::NotShareable { .. })), "{error}");

    let mut message = registered.serialize().unwrap();
    *message.last_mut().unwrap() ^= 1;
    assert!(RegisteredMemory::deserialize(&peer, &message).is_err());
    let error = RegisteredMemory::deserialize(&peer, b"nonsense, of some length").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[test]
fn the_kind_of_handle_can_be_forced_by_the_environment() {
    let start = |name: &str, value: &str| Child::spawn(command("exporter").env(name, value)).unwrap();
    let device = cpu();
    let mut child = start("WARPWIRE_HANDLE_TYPE", "fd");
    let handle = SharedHandle::from_bytes(&of_hex(&child.hear())).unwrap();
    assert_eq!(handle.kinds(), HandleKinds::POSIX_FD);
    // A child that fails says nothing.
    for bad in ["fabric", "ipc", "nonsense"] {
        let mut quiet = command("exporter");
        quiet.env("WARPWIRE_HANDLE_TYPE", bad).stderr(Stdio::null());
        assert_eq!(Child::spawn(&mut quiet).unwrap().try_hear(), None);
    }
    child.end();
    let buffer = device.allocate_shareable::<u8>(1).unwrap();
    for kind in [HandleKind::Fabric, HandleKind::CudaIpc] {
        let error = Shareable::of(&buffer, HandleChoice::Only(kind)).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::HandleUnavailable { .. })), "{error}");
        assert!(error.to_string().contains("memfds"), "{error}");
    }
}

#[test]
fn another_hosts_handle_is_an_error_that_names_both() {
    let device = cpu();
    let mut child = Child::spawn(command("exporter").env("WARPWIRE_HOST_ID", "elsewhere")).unwrap();
    let error = open(&device, &child.hear()).unwrap_err();
    assert!(matches!(error, Error::Memory(MemoryError::NoHandleWorked { .. })), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("processes of its own host ("), "{error}");
    child.end();
}

/// With few descriptors left: says what the error is, then that all is well again.
fn few_descriptors(device: &Device) {
    let message = hear_parent().unwrap();
    // What is found out once has been found out.
    drop(open(device, &message).unwrap());
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let few = rustix::process::Rlimit { current: Some(64), ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, few).unwrap();
    let mut taken: Vec<fs::File> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
    // None at all; one, for the socket; two, for the memory as well, but none to be kept by.
    for _ in 0..2 {
        let error = open(device, &message).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.to_string().contains("ulimit -n"), "{error}");
        taken.pop();
    }
    let error = device.allocate_with::<u8>(1 << 20, MemoryOptions::new(MemoryKind::Virtual));
    let shared = error.and_then(|buffer| Shareable::of(&buffer, HandleChoice::Auto));
    assert_eq!(shared.unwrap_err().kind(), ErrorKind::Limit);
    drop(taken);
    tell_parent(&format!("{:?}", open(device, &message).unwrap().read().unwrap()));
}

#[test]
fn a_process_without_descriptors_is_told_so() {
    let device = cpu();
    let (_buffer, _shareable, message) = shared(&device, MemoryKind::Virtual, &[1, 2]);
    let mut child = Child::start("few descriptors");
    assert_eq!(child.ask(&message), "[1, 2]");
    child.end();
}

/// Why this process cannot do something that only root does.
fn not_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: this takes root");
    }
    !root
}

#[test]
fn another_users_process_is_refused() {
    if not_root() {
        return;
    }
    let device = cpu();
    let (_buffer, _shareable, message) = shared(&device, MemoryKind::Virtual, &[1]);
    // A copy, where that user may read it.
    let program = env::temp_dir().join(format!("warpwire-memory-share-{}", std::process::id()));
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut other = Command::new(&program);
    let own = command("importer");
    other.args(own.get_args()).uid(65534).gid(65534).current_dir("/");
    other.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = loop {
        match Child::spawn(&mut other) {
            // Another test is just starting a child, which has the copy open for writing until it becomes its program.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            child => break child.unwrap(),
        }
    };
    let answer = child.ask(&format!("open {message}"));
    assert!(answer.starts_with("Refused") && answer.contains("another user"), "{answer}");
    child.end();
    fs::remove_file(program).unwrap();
}

#[test]
fn processes_in_different_pid_namespaces_share_memory_without_ptrace_rights() {
    if not_root() {
        return;
    }
    let own = command("importer");
    let mut elsewhere = Command::new("unshare");
    elsewhere.args(["--pid", "--fork", "--kill-child"]).arg(own.get_program()).args(own.get_args());
    elsewhere.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let probe = Command::new("unshare").args(["--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        println!("skipped: no PID namespace can be made here");
        return;
    }
    let device = cpu();
    let (buffer, _shareable, message) = shared(&device, MemoryKind::Virtual, &[1, 2]);
    let mut child = Child::spawn(&mut elsewhere).unwrap();
    assert_eq!(child.ask(&format!("open {message}")), "[1, 2]");
    child.ask("write 3");
    assert_eq!(buffer.read().unwrap(), [3, 3]);
    child.end();
}
