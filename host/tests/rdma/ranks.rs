//! Ranks that are processes: this program, started again. Where `WARPWIRE_RDMA_TEST_HOST` is set, there are two machines, and
//! each starts the ranks that are its own.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use warpwire::bootstrap::{Tag, from_env};
use warpwire::communicator::Communicator;
use warpwire::connection::infiniband::{InfiniBandConfig, SignalMode};
use warpwire::connection::{Connection, EndpointConfig};
use warpwire::device::{Buffer, Device, DeviceSelector};
use warpwire::memory::{RegisteredMemory, Transports};
use warpwire::{abi, verbs};

use crate::PARTS;
use crate::process::{Child, command, role, tell_parent};

/// Longer than any step of a test that goes well.
pub const LONG: Duration = Duration::from_secs(60);
pub const MODES: [SignalMode; 2] = [SignalMode::Host, SignalMode::HostNoAtomic];

const HOST: &str = "WARPWIRE_RDMA_TEST_HOST";
/// Where rank 0 is, of two machines: `xtask/src/rdma/init.sh` gives it this address.
const ROOT: &str = "10.9.0.1";
/// Ports of the tests, in the order of `PARTS`.
const FIRST_PORT: usize = 21_000;

/// Why the tests cannot run here.
fn reason() -> Option<String> {
    if env::var("WARPWIRE_DISABLE_IB_TESTS").is_ok_and(|value| value == "1") {
        return Some("WARPWIRE_DISABLE_IB_TESTS is 1".to_owned());
    }
    match verbs::Adapter::names() {
        Ok(names) if names.is_empty() => {
            Some("no RDMA adapter here; cargo xtask test-rdma brings one".to_owned())
        }
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// Runs a test's part in `size` ranks, and fails where one of them does.
pub fn run(part: &str, size: u32) {
    if let Some(reason) = reason() {
        println!("skipped: {reason}");
        return;
    }
    let index = PARTS.iter().position(|(name, _)| *name == part).expect("the test has a part");
    let host: Option<u32> = env::var(HOST).ok().map(|host| host.parse().unwrap());
    let root = if host.is_some() { ROOT } else { "127.0.0.1" };
    let own = (0..size).filter(|rank| host.is_none_or(|host| rank % 2 == host));
    let ranks: Vec<Child> = own
        .map(|rank| {
            let mut command = command(part);
            command
                .env("WARPWIRE_RANK", rank.to_string())
                .env("WARPWIRE_WORLD_SIZE", size.to_string())
                .env("WARPWIRE_ROOT", format!("{root}:{}", FIRST_PORT + index));
            Child::spawn(&mut command).unwrap()
        })
        .collect();
    for mut rank in ranks {
        // A rank whose part is to die says so.
        if rank.hear() == "done" {
            rank.end();
        }
    }
}

/// Whether the ranks are on two machines.
pub fn is_spread() -> bool {
    env::var_os(HOST).is_some()
}

/// Plays a rank, where this process was started as one.
pub fn play() {
    let Some(part) = role() else { return };
    let (_, play) = PARTS.iter().find(|(name, _)| *name == part).expect("the part is known");
    let device = Device::open(DeviceSelector::Cpu).unwrap();
    let communicator = Communicator::new(Arc::new(from_env().unwrap()), &device).unwrap();
    play(&Rank { communicator, device });
    tell_parent("done");
}

/// One rank.
pub struct Rank {
    pub communicator: Communicator,
    pub device: Device,
}

impl Rank {
    pub fn number(&self) -> u32 {
        self.communicator.rank().0
    }

    /// The other one of two.
    pub fn other(&self) -> abi::Rank {
        abi::Rank(1 - self.number())
    }

    pub fn connect(&self, mode: SignalMode, peer: abi::Rank, tag: u64) -> Connection {
        self.connect_with(InfiniBandConfig { mode: Some(mode), ..Default::default() }, peer, tag).unwrap()
    }

    pub fn connect_with(
        &self,
        config: InfiniBandConfig,
        peer: abi::Rank,
        tag: u64,
    ) -> warpwire::Result<Connection> {
        self.communicator.connect(EndpointConfig::InfiniBand(config), peer, Tag(tag))?.wait(LONG)
    }

    pub fn buffer<T: abi::Pod>(&self, len: usize) -> Buffer<T> {
        self.device.allocate(len).unwrap()
    }

    pub fn register<T: abi::Pod>(&self, buffer: &Buffer<T>) -> RegisteredMemory {
        self.communicator.register_memory(buffer, Transports::INFINIBAND).unwrap()
    }

    /// Sends this rank's memory to `peer`, and gets the peer's.
    pub fn exchange(&self, own: &RegisteredMemory, peer: abi::Rank, tag: u64) -> RegisteredMemory {
        self.communicator.send_memory(own, peer, Tag(tag)).unwrap();
        self.communicator.recv_memory(peer, Tag(tag)).unwrap().wait(LONG).unwrap()
    }

    pub fn barrier(&self) {
        self.communicator.barrier().unwrap();
    }
}

/// A word of a buffer of this rank's, as an adapter or a thread of the library writes it.
pub fn word(buffer: &Buffer<u64>, index: u64) -> &AtomicU64 {
    let address = buffer.address().add(index).address();
    // SAFETY: the CPU device's addresses are the host's; the word is aligned and lives as long as the buffer.
    unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address as usize)) }
}

/// Waits until the word is at least `value`, and gives what it is.
pub fn wait_for(word: &AtomicU64, value: u64) -> u64 {
    let begun = Instant::now();
    loop {
        let seen = word.load(Ordering::Acquire);
        if seen >= value {
            return seen;
        }
        assert!(begun.elapsed() < LONG, "the word stays at {seen}, and {value} never comes");
        std::thread::yield_now();
    }
}

/// Numbers without a pattern: a byte that is in the wrong place shows.
pub fn noise(seed: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
