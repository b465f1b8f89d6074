//! Multicast objects on the CPU device, in one process and in several.

#[path = "support/process.rs"]
mod process;
mod support;

use std::sync::Barrier;
use std::{fs, thread};

use process::{Child, hear_parent, of_hex, role, tell_parent, to_hex};
use support::cpu;
use warpwire::abi::Global;
use warpwire::device::{Buffer, Device, LaunchConfig, MemoryKind, MemoryOptions, ModuleSource};
use warpwire::memory::{HandleChoice, Multicast, MulticastBinding, MulticastMapping};
use warpwire::{Error, ErrorKind, MemoryError};
use warpwire_device::arch::{self, Acquire, Relaxed, Release, Sys};
use warpwire_device::{kernel, module};

#[repr(C)]
#[derive(Clone, Copy)]
struct Args {
    /// Multicast addresses: words of each type, one a thread; then four a thread.
    floats: Global<f32>,
    numbers: Global<u32>,
    quads: Global<[f32; 4]>,
    /// The device's own: where the sums go.
    sums: Global<f32>,
    /// 0: store, 1: add, 2: sum.
    operation: u32,
    value: u32,
}

kernel! {
    /// Does one thing through multicast addresses, one word of each type a thread.
    struct Access = "multicast_access", max_threads = 256, min_blocks = 1;
    unsafe fn(args: Args) {
        let thread = arch::thread_index();
        let (i, value) = (u64::from(thread), args.value + thread);
        let (float, number, quad) = (args.floats.add(i), args.numbers.add(i), args.quads.add(i));
        // SAFETY: the launch's contract: a word of each type a thread, bound by every member.
        unsafe {
            match args.operation {
                0 => {
                    arch::multimem_st_f32::<Release, Sys>(float, value as f32);
                    arch::multimem_st_u32::<Relaxed, Sys>(number, value);
                    arch::multimem_st_v4_f32(quad, [value as f32, 1.0, 2.0, 3.0]);
                }
                1 => {
                    arch::multimem_red_add_f32::<Release, Sys>(float, value as f32);
                    arch::multimem_red_add_u32::<Relaxed, Sys>(number, value);
                }
                _ => {
                    let number = arch::multimem_ld_reduce_add_u32::<Relaxed, Sys>(number);
                    let float = arch::multimem_ld_reduce_add_f32::<Acquire, Sys>(float);
                    let quad = arch::multimem_ld_reduce_add_v4_f32(quad);
                    let sums = [float, number as f32, quad[0], quad[3]];
                    for (k, sum) in (0..).zip(sums) {
                        arch::store_weak_u32(args.sums.cast().add(4 * i + k), sum.to_bits());
                    }
                }
            }
        }
    }
}

module! { static KERNELS = [Access]; }

const THREADS: u32 = 64;

/// Where in the object a member's memory is bound, and where in its memory that is: the granule after the first.
fn granule(device: &Device) -> u64 {
    Multicast::granularity(device, 1, 1).unwrap()
}

/// One device's part in a group.
struct Member {
    // Dropped in any order: here the mapping goes after what it maps.
    buffer: Buffer<u8>,
    _binding: MulticastBinding,
    multicast: Multicast,
    mapping: MulticastMapping,
    device: Device,
}

impl Member {
    /// Joins: `together` waits for the other members between the steps.
    fn join(device: Device, multicast: Multicast, mut together: impl FnMut()) -> Self {
        multicast.add_device().unwrap();
        together();
        let granule = granule(&device);
        let buffer = device
            .allocate_with::<u8>(2 * granule as usize, MemoryOptions::new(MemoryKind::Virtual))
            .unwrap();
        let binding = multicast.bind(granule, &buffer, granule, granule).unwrap();
        assert_eq!((binding.offset(), binding.bytes()), (granule, granule));
        together();
        let mapping = multicast.map().unwrap();
        together();
        Self { buffer, _binding: binding, multicast, mapping, device }
    }

    /// Runs the kernel; gives the sums, four a thread.
    fn access(&self, operation: u32, value: u32) -> warpwire::Result<Vec<f32>> {
        static SOURCE: ModuleSource = ModuleSource { name: "multicast", kernels: KERNELS, ptx: &[] };
        let function = self.device.load(&SOURCE)?.function::<Access>()?;
        let stream = self.device.stream()?;
        let sums = self.device.allocate::<f32>(4 * THREADS as usize)?;
        let at = |offset| self.mapping.address(granule(&self.device) + offset).unwrap();
        let args = Args {
            floats: at(0).cast(),
            numbers: at(0x1000).cast(),
            quads: at(0x2000).cast(),
            sums: sums.address(),
            operation,
            value,
        };
        // SAFETY: the words lie inside the bound granule, and all outlives the launch, which is waited for.
        unsafe { stream.launch(&function, LaunchConfig::new(1, THREADS), args) }?;
        stream.synchronize()?;
        sums.read()
    }

    fn float(&self, thread: usize) -> f32 {
        f32::from_bits(self.word(4 * thread))
    }

    fn number(&self, thread: usize) -> u32 {
        self.word(0x1000 + 4 * thread)
    }

    fn word(&self, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        self.buffer.read_at(granule(&self.device) as usize + offset, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }
}

/// A group of devices of this process.
fn group(count: u32) -> Vec<Member> {
    let first = cpu();
    let object = Multicast::create(&first, 2 * granule(&first), count).unwrap();
    assert_eq!(object.bytes(), 2 * granule(&first));
    let shared = object.share(HandleChoice::Auto).unwrap();
    let message = shared.to_bytes();
    let barrier = Barrier::new(count as usize);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let (barrier, first, object, message) = (&barrier, &first, &object, &message);
                scope.spawn(move || {
                    let (device, multicast) = match number {
                        0 => (first.clone(), object.clone()),
                        _ => {
                            let device = cpu();
                            (device.clone(), Multicast::open(&device, message).unwrap())
                        }
                    };
                    Member::join(device, multicast, || {
                        barrier.wait();
                    })
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn stores_reach_every_member_and_loads_sum_them() {
    for count in [1, 2, 5] {
        let members = group(count);
        members[0].access(0, 100).unwrap();
        for member in &members {
            for thread in 0..THREADS as usize {
                let value = 100 + thread as u32;
                assert_eq!((member.float(thread), member.number(thread)), (value as f32, value));
                assert_eq!(f32::from_bits(member.word(0x2000 + 16 * thread + 12)), 3.0);
            }
            // What is not bound is untouched.
            let mut outside = vec![1; granule(&member.device) as usize];
            member.buffer.read_at(0, &mut outside).unwrap();
            assert!(outside.iter().all(|&byte| byte == 0));
        }
        // Each adds once: every member has all the additions.
        for member in &members {
            member.access(1, 1000).unwrap();
        }
        let sums = members[members.len() - 1].access(2, 0).unwrap();
        for thread in 0..THREADS as usize {
            let value = 100 + thread as u32 + count * (1000 + thread as u32);
            for member in &members {
                assert_eq!((member.float(thread), member.number(thread)), (value as f32, value));
            }
            let all = (count * value) as f32;
            let quad = (count * (100 + thread as u32)) as f32;
            assert_eq!(sums[4 * thread..][..4], [all, all, quad, 3.0 * count as f32]);
        }
    }
}

#[test]
fn concurrent_additions_are_all_counted() {
    let members = group(3);
    thread::scope(|scope| {
        for member in &members {
            scope.spawn(move || (0..20).for_each(|_| drop(member.access(1, 1).unwrap())));
        }
    });
    for member in &members {
        for thread in 0..THREADS as usize {
            let value = 60 * (1 + thread as u32);
            assert_eq!((member.float(thread), member.number(thread)), (value as f32, value));
        }
    }
}

#[test]
fn a_place_that_cannot_be_is_an_error() {
    let device = cpu();
    let granule = granule(&device);
    let multicast = Multicast::create(&device, granule + 1, 1).unwrap();
    assert_eq!(multicast.bytes(), 2 * granule, "rounded up");
    let virtual_memory = |bytes: u64| {
        device.allocate_with::<u8>(bytes as usize, MemoryOptions::new(MemoryKind::Virtual)).unwrap()
    };
    let buffer = virtual_memory(2 * granule);
    let bind = |offset, from, bytes| multicast.bind(offset, &buffer, from, bytes).unwrap_err();

    let state = bind(0, 0, granule);
    assert!(matches!(state, Error::Memory(MemoryError::MulticastState { .. })), "{state}");
    assert_eq!(state.kind(), ErrorKind::State);
    assert!(multicast.map().is_err(), "nobody has been added");
    multicast.add_device().unwrap();
    let twice = multicast.add_device().unwrap_err().to_string();
    assert!(twice.contains("added already"), "{twice}");

    for (offset, from, bytes) in [(1, 0, granule), (0, 4096, granule), (0, 0, 100)] {
        let error = bind(offset, from, bytes);
        assert!(matches!(error, Error::Memory(MemoryError::MulticastUnaligned { .. })), "{error}");
    }
    let ends =
        [(granule, 0, 2 * granule), (0, granule, 2 * granule), (0, 0, 0), (0, 0, 0u64.wrapping_sub(granule))];
    for (offset, from, bytes) in ends {
        let error = bind(offset, from, bytes);
        assert!(matches!(error, Error::Memory(MemoryError::MulticastRange { .. })), "{error}");
    }
    let plain = device.allocate_with::<u8>(granule as usize, MemoryOptions::new(MemoryKind::Plain)).unwrap();
    let error = multicast.bind(0, &plain, 0, granule).unwrap_err().to_string();
    assert!(error.contains("MemoryKind::Virtual"), "{error}");
    let foreign = cpu().allocate_with::<u8>(1, MemoryOptions::new(MemoryKind::Virtual)).unwrap();
    let error = multicast.bind(0, &foreign, 0, granule).unwrap_err();
    assert!(matches!(error, Error::ForeignObject { .. }), "{error}");

    let binding = multicast.bind(0, &buffer, 0, granule).unwrap();
    let error = bind(0, granule, granule).to_string();
    assert!(error.contains(&format!("{granule} bytes bound at offset 0")), "{error}");
    drop(binding);
    // A small buffer lies in a whole granule, which is what is bound.
    let small = virtual_memory(100);
    let _binding = multicast.bind(0, &small, 0, granule).unwrap();
    let _other = multicast.bind(granule, &buffer, 0, granule).unwrap();
    let mapping = multicast.map().unwrap();
    assert!(mapping.address(2 * granule - 1).is_some() && mapping.address(2 * granule).is_none());

    for (bytes, devices) in [(0, 1), (1, 0), (u64::MAX, 1)] {
        let error = Multicast::create(&device, bytes, devices).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::MulticastState { .. })), "{error}");
    }
}

#[test]
fn an_access_to_what_a_member_has_not_bound_is_the_launchs_error() {
    let mut members = group(2);
    let last = members.pop().unwrap();
    drop(last);
    // Its binding is gone for those who map now; who has mapped before keeps the memory.
    members[0].access(2, 0).unwrap();
    members[0].mapping = members[0].multicast.map().unwrap();
    let error = members[0].access(2, 0).unwrap_err();
    assert!(matches!(error, Error::KernelPanicked { .. }), "{error}");
    assert!(error.to_string().contains("has bound nothing to the multicast address"), "{error}");
}

#[test]
fn too_many_devices_and_foreign_bytes_are_errors() {
    let device = cpu();
    let object = Multicast::create(&device, 1, 1).unwrap();
    let shared = object.share(HandleChoice::Auto).unwrap();
    let view = Multicast::open(&cpu(), &shared.to_bytes()).unwrap();
    object.add_device().unwrap();
    let error = view.add_device().unwrap_err().to_string();
    assert!(error.contains("all of its 1 devices"), "{error}");
    // A view of somebody else's object is not handed on.
    assert!(matches!(view.share(HandleChoice::Auto), Err(Error::Memory(MemoryError::NotShareable { .. }))));
    for cut in 0..shared.to_bytes().len() {
        assert!(Multicast::open(&device, &shared.to_bytes()[..cut]).is_err());
    }
    drop(shared);
    let shared = object.share(HandleChoice::Auto).unwrap();
    let message = shared.to_bytes();
    drop(shared);
    let error = Multicast::open(&device, &message).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn two_hundred_objects_leave_nothing() {
    if role().is_some() {
        return;
    }
    // Of this test's alone: others may run beside it.
    let held = || fs::read_dir("/proc/self/fd").unwrap().count();
    drop(group(2));
    let before = held();
    for _ in 0..200 {
        drop(group(2));
    }
    // Other tests of this program have some dozens open at any time; a leak would be 200 at least.
    assert!(held() < before + 150, "{before} descriptors at first, {} at the end", held());
}

#[test]
fn child() {
    if role().is_none() {
        return;
    }
    let device = cpu();
    let multicast = Multicast::open(&device, &of_hex(&hear_parent().unwrap())).unwrap();
    let member = Member::join(device, multicast, || {
        tell_parent("here");
        hear_parent().unwrap();
    });
    while let Some(line) = hear_parent() {
        let (operation, value) = line.split_once(' ').unwrap();
        let sums = member.access(operation.parse().unwrap(), value.parse().unwrap()).unwrap();
        tell_parent(&format!("{} {} {}", member.float(3), member.number(3), sums[4 * 3]));
    }
}

#[test]
fn members_of_several_processes_reach_each_other() {
    let device = cpu();
    let object = Multicast::create(&device, 2 * granule(&device), 3).unwrap();
    let shared = object.share(HandleChoice::Auto).unwrap();
    let mut children = [Child::start("member"), Child::start("member")];
    for child in &mut children {
        child.tell(&to_hex(&shared.to_bytes()));
    }
    let own = Member::join(device, object, || {
        for child in &mut children {
            assert_eq!(child.hear(), "here");
        }
        for child in &mut children {
            child.tell("go on");
        }
    });
    own.access(0, 10).unwrap();
    let sum = (13 + 3 * 103) * 3;
    assert_eq!(children[0].ask("1 100"), "116 116 0");
    assert_eq!(children[1].ask("1 100"), "219 219 0");
    own.access(1, 100).unwrap();
    assert_eq!((own.float(3), own.number(3)), (322.0, 322));
    for child in &mut children {
        assert_eq!(child.ask("2 0"), format!("322 322 {sum}"));
    }
    let [first, second] = children;
    first.end();
    // Those who are left still reach the memory of the one who has gone.
    own.access(0, 1).unwrap();
    assert_eq!(own.access(2, 0).unwrap()[4 * 3], 12.0);
    second.end();
}
