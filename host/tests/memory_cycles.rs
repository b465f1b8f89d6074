//! Ten thousand hand-overs between two processes, and nothing left of them. Alone in its program: it counts what the whole
//! process has.

mod support {
    pub mod process;
}

use std::fs;
use std::time::{Duration, Instant};

use support::process::{Child, hear_parent, of_hex, role, tell_parent, to_hex};
use warpwire::device::{Device, DeviceSelector, MemoryKind, MemoryOptions};
use warpwire::memory::{HandleChoice, Shareable, SharedHandle};

const CYCLES: u64 = 10_000;
/// After so many, everything that is made once has been made.
const WARM: u64 = 200;

/// What a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holdings {
    descriptors: usize,
    mappings: usize,
    threads: usize,
}

fn holdings() -> Holdings {
    let entries = |path| fs::read_dir(path).unwrap().count();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    Holdings {
        descriptors: entries("/proc/self/fd"),
        // Of memory that was handed over: the heap's own mappings come and go.
        mappings: maps.lines().filter(|line| line.contains("memfd:warpwire")).count(),
        threads: entries("/proc/self/task"),
    }
}

fn resident_kilobytes() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Waits until the process has no more than it had: a connection is closed a moment after the other end has closed.
fn wait_for(first: Holdings) {
    let more = |now: Holdings| {
        now.descriptors > first.descriptors || now.mappings > first.mappings || now.threads > first.threads
    };
    let begun = Instant::now();
    while more(holdings()) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}, at first {first:?}", holdings());
        std::thread::yield_now();
    }
}

#[test]
fn child() {
    if role().is_none() {
        return;
    }
    let device = Device::open(DeviceSelector::Cpu).unwrap();
    let mut first = None;
    let mut cycle = 0;
    while let Some(line) = hear_parent() {
        let handle = SharedHandle::from_bytes(&of_hex(&line)).unwrap();
        tell_parent(&handle.open::<u64>(&device).unwrap().read().unwrap()[0].to_string());
        cycle += 1;
        if cycle == WARM {
            first = Some((holdings(), resident_kilobytes()));
        }
    }
    let (held, resident) = first.unwrap();
    wait_for(held);
    assert!(resident_kilobytes() - resident < 4096, "{resident} kB, then {}", resident_kilobytes());
}

#[test]
fn ten_thousand_hand_overs_leave_nothing() {
    if role().is_some() {
        return;
    }
    let device = Device::open(DeviceSelector::Cpu).unwrap();
    let mut child = Child::start("");
    let mut first = None;
    for cycle in 0..CYCLES {
        // Small ones share a slab, large ones have a memfd each.
        let (kind, words) = if cycle % 2 == 0 { (MemoryKind::Plain, 1) } else { (MemoryKind::Virtual, 1000) };
        let buffer = device.allocate_with::<u64>(words, MemoryOptions::new(kind)).unwrap();
        buffer.write(&[cycle]).unwrap();
        let shareable = Shareable::of(&buffer, HandleChoice::Auto).unwrap();
        let answer = child.ask(&to_hex(&shareable.handle().to_bytes().unwrap()));
        assert_eq!(answer, cycle.to_string());
        drop((buffer, shareable));
        if cycle == WARM {
            first = Some((holdings(), resident_kilobytes()));
        }
    }
    let (held, resident) = first.unwrap();
    wait_for(held);
    assert!(resident_kilobytes() - resident < 4096, "{resident} kB, then {}", resident_kilobytes());
    child.end();
}
