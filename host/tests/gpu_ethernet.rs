//! Ranks connected by TCP whose memory is a GPU's: staged through pinned memory, words set by a stream. Skipped, with the reason,
//! where there is none.
#![cfg(feature = "cuda")]

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use warpwire::ErrorKind;
use warpwire::abi::{ChannelId, OutboundHandle, Rank, SemaphoreHandle};
use warpwire::bootstrap::{LocalBootstrap, Tag};
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::{Device, DeviceSelector, LaunchConfig, builtin_module};
use warpwire::memory::Transports;
use warpwire_kernels::ping_pong::{SemaphorePingPong, SemaphorePingPongArgs};

const LONG: Duration = Duration::from_secs(60);

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

/// Runs two ranks of the one GPU, each in a thread.
fn both(run: impl Fn(&Communicator, Rank) + Sync) {
    let Some(device) = gpu() else { return };
    let ranks = LocalBootstrap::group(2).unwrap();
    thread::scope(|scope| {
        for rank in ranks {
            let (run, device) = (&run, &device);
            scope.spawn(move || {
                let communicator = Communicator::new(Arc::new(rank), device).unwrap();
                let peer = Rank(1 - communicator.rank().0);
                run(&communicator, peer);
                communicator.barrier().unwrap();
            });
        }
    });
}

fn pattern(bytes: usize, rank: Rank) -> Vec<u8> {
    (0..bytes).map(|i| (i % 251) as u8 ^ (i >> 16) as u8 ^ rank.0 as u8).collect()
}

#[test]
fn memory_of_a_gpu_is_written_whole() {
    const BYTES: usize = (8 << 20) + 13;
    both(|communicator, peer| {
        let device = communicator.device();
        let connection =
            communicator.connect(EndpointConfig::Ethernet, peer, Tag(1)).unwrap().wait(LONG).unwrap();
        let (from, inbox) =
            (device.allocate::<u8>(BYTES).unwrap(), device.allocate::<u8>(BYTES + 16).unwrap());
        let words = device.allocate::<u64>(2).unwrap();
        from.write(&pattern(BYTES, communicator.rank())).unwrap();
        inbox.fill_bytes(0xEE).unwrap();
        let register = |buffer| communicator.register_memory(buffer, Transports::ETHERNET).unwrap();
        let (source, mine) = (register(&from), register(&inbox));
        let my_words = communicator.register_memory(&words, Transports::ETHERNET).unwrap();
        communicator.send_memory(&mine, peer, Tag(2)).unwrap();
        communicator.send_memory(&my_words, peer, Tag(3)).unwrap();
        let receive = |tag| communicator.recv_memory(peer, Tag(tag)).unwrap().wait(LONG).unwrap();
        let (theirs, their_words) = (receive(2), receive(3));
        connection.write(&theirs, 7, &source, 0, BYTES as u64).unwrap();
        connection.update(&their_words, 8, 0x0102_0304_0506_0708).unwrap();
        connection.flush(LONG).unwrap();
        communicator.barrier().unwrap();
        let mut expected = vec![0xEE; BYTES + 16];
        expected[7..7 + BYTES].copy_from_slice(&pattern(BYTES, peer));
        assert!(inbox.read().unwrap() == expected, "rank {:?}", communicator.rank());
        assert_eq!(words.read().unwrap(), [0, 0x0102_0304_0506_0708]);
    });
}

/// The kernel waits while the signals come: nothing on their way waits for the kernel.
#[test]
fn a_gpus_kernel_waits_for_signals_that_come_by_tcp() {
    const SIGNALS: u32 = 20;
    both(|communicator, peer| {
        let connection =
            communicator.connect(EndpointConfig::Ethernet, peer, Tag(1)).unwrap().wait(LONG).unwrap();
        let semaphore = communicator.build_semaphore(&connection, Tag(1)).unwrap().wait(LONG).unwrap();
        if communicator.rank() == Rank(0) {
            (0..SIGNALS).for_each(|_| semaphore.signal().unwrap());
            connection.flush(LONG).unwrap();
            return;
        }
        let device = communicator.device();
        let stream = communicator.context().stream().unwrap();
        let function = device.load(builtin_module()).unwrap().function::<SemaphorePingPong>().unwrap();
        let answers = device.allocate::<u64>(1).unwrap();
        let end = SemaphoreHandle {
            inbound: semaphore.host_handle(ChannelId(4)).inbound,
            outbound: OutboundHandle { token: answers.address() },
        };
        let args = SemaphorePingPongArgs {
            ends: [end; 2],
            policy: stream.policy(Rank(1), LONG),
            first_end: 1,
            rounds: SIGNALS,
            relaxed: 0,
            reserved: 0,
        };
        // SAFETY: semaphore, answers and stream live until it is synchronized.
        unsafe { stream.launch(&function, LaunchConfig::new(1, 1).concurrent(1), args) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(answers.read().unwrap(), [u64::from(SIGNALS)]);
    });
}
