//! Two processes whose kernels put a message to and fro.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpwire::abi::{ChannelId, Rank};
use warpwire::bootstrap::{self, Tag};
use warpwire::channel::MemoryChannel;
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::{Device, DeviceSelector, LaunchConfig, builtin_module};
use warpwire::memory::Transports;
use warpwire_kernels::ping_pong::{PutPingPong, PutPingPongArgs};

const BYTES: usize = 1 << 20;
const ROUNDS: u32 = 50;
/// How long a rank waits for the other before it says so and gives up.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn Error>> {
    // Bootstrap: the processes find each other by what the launcher has set.
    let device = Device::open(DeviceSelector::Auto)?;
    let communicator = Communicator::new(Arc::new(bootstrap::from_env()?), &device)?;
    let rank = communicator.rank();
    if communicator.size() != 2 {
        return Err(format!("this takes 2 ranks, not {}", communicator.size()).into());
    }
    let peer = Rank(1 - rank.0);

    // Memory: a message to send, and an inbox that the peer is told of.
    let (message, inbox) = (device.allocate_shareable(BYTES)?, device.allocate_shareable::<u8>(BYTES)?);
    let message = communicator.register_memory::<u8>(&message, Transports::CUDA_IPC)?;
    let inbox = communicator.register_memory(&inbox, Transports::CUDA_IPC)?;
    communicator.send_memory(&inbox, peer, Tag(1))?;
    let peers_inbox = communicator.recv_memory(peer, Tag(1))?.wait(PATIENCE)?;

    // Channel: a semaphore between the two, and the memory that it announces.
    let connection = communicator.connect(EndpointConfig::CudaIpc, peer, Tag(2))?.wait(PATIENCE)?;
    let semaphore = communicator.build_semaphore(&connection, Tag(3))?.wait(PATIENCE)?;
    let channel = MemoryChannel::new(semaphore, ChannelId(0))?.bind(&message, &peers_inbox, Some(&inbox))?;

    // Kernel: rank 0 puts and signals, rank 1 waits and answers; each looks at every word that comes.
    let kernel = device.load(builtin_module())?.function::<PutPingPong>()?;
    let (stream, wrong) = (communicator.context().stream()?, device.allocate::<u32>(2)?);
    let args = PutPingPongArgs {
        ends: [channel.handle(); 2],
        policy: stream.policy(rank, PATIENCE),
        bytes: BYTES as u64,
        wrong: wrong.address(),
        first_end: rank.0,
        rounds: ROUNDS,
    };
    communicator.barrier()?;
    let begun = Instant::now();
    // SAFETY: channel, counts and stream live until the stream is synchronized.
    unsafe { stream.launch(&kernel, communicator.concurrent(LaunchConfig::new(1, 256)), args)? };
    stream.synchronize()?;

    // Result.
    let micros = begun.elapsed().as_micros() / u128::from(2 * ROUNDS);
    let wrong: u32 = wrong.read()?.iter().sum();
    println!(
        "rank {} on {}: {} messages of {BYTES} bytes, {micros} us each, {wrong} words wrong",
        rank.0,
        device.properties().name,
        2 * ROUNDS
    );
    communicator.barrier()?; // The peer may still be looking at what came.
    if wrong == 0 { Ok(()) } else { Err("words were wrong".into()) }
}
