//! `port`: port channels between two ranks that share the device, each a thread with a proxy of its own when it is set up.

use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use warpwire::abi::{ChannelId, MemoryId, PortChannelHandle, Rank};
use warpwire::bootstrap::{Group, LocalBootstrap, Tag};
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::{Buffer, Device, LaunchConfig, Stream};
use warpwire::memory::Transports;
use warpwire::proxy::{ProxyOptions, ProxyService};
use warpwire_kernels::port::{PortCall, PortPingPong, PortPingPongArgs, PortRequests, PortRequestsArgs};

use crate::bench::case::{Case, Contestant, Row, Unit};
use crate::bench::setup::Bench;
use crate::bench::timing;

/// The row.
pub const ROW: Row = Row {
    name: "port",
    about: "port channels between two ranks that share the device: the kernel asks, a proxy has it done",
    cases,
};

/// How long setting up may take.
const PATIENCE: Duration = Duration::from_secs(20);

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let mut cases = Vec::new();
    for (name, flush, aim) in [("round trip, a flush each", 1, Some(20.0)), ("round trip", 0, None)] {
        for bytes in [4, 4096] {
            let case = Case::new(name, format!("{bytes} B, 2 x 32"), Unit::Microseconds, move |bench| {
                round_trips(bench, bytes, flush)
            });
            cases.push(case.aim(aim.filter(|_| bytes == 4096).and_then(|aim| bench.aim(aim))));
        }
    }
    for bytes in bench.pick([64 << 10, 1 << 20, 16 << 20, 128 << 20], [4 << 10, 64 << 10, 256 << 10, 1 << 20])
    {
        let configuration = format!("{} KiB", bytes >> 10);
        let case = Case::new("put, a flush each", configuration, Unit::GigabytesPerSecond, move |bench| {
            puts(bench, bytes)
        });
        cases.push(case.point("put through a port", bytes));
    }
    Ok(cases)
}

/// One rank.
struct End {
    // Dropped in this order: the proxy before what it moves.
    service: ProxyService,
    channel: PortChannelHandle,
    buffer: Buffer<u8>,
    wrong: Buffer<u32>,
    stream: Stream,
    _communicator: Communicator,
}

impl End {
    /// The rank's end of a channel between buffers of `len` bytes. Collective.
    fn new(bootstrap: Group, device: &Device, len: usize) -> anyhow::Result<Self> {
        let communicator = Communicator::new(Arc::new(bootstrap), device)?;
        let (own, peer) = (communicator.rank(), Rank(1 - communicator.rank().0));
        let buffer = device.allocate_shareable(len)?;
        let registered = communicator.register_memory(&buffer, Transports::CUDA_IPC)?;
        let service = ProxyService::new(device, own, ProxyOptions::default())?;
        let memories = communicator.all_gather_memory(&registered)?;
        let ids =
            memories.iter().map(|memory| service.add_memory(memory)).collect::<Result<Vec<MemoryId>, _>>()?;
        let connection = communicator.connect(EndpointConfig::CudaIpc, peer, Tag(1))?.wait(PATIENCE)?;
        let semaphore = communicator.build_semaphore(&connection, Tag(2))?.wait(PATIENCE)?;
        let port = service.add_port(semaphore, ChannelId(0))?;
        let channel = port.handle(ids[peer.0 as usize], ids[own.0 as usize])?;
        let stream = communicator.context().stream()?;
        service.watch(&stream);
        service.start()?;
        communicator.barrier()?;
        Ok(Self { service, channel, wrong: device.allocate(1)?, buffer, stream, _communicator: communicator })
    }

    /// Both ends, each set up by a thread of its own.
    fn pair(bench: &Bench, len: usize) -> anyhow::Result<Rc<[Self; 2]>> {
        let device = &bench.device;
        let ends = thread::scope(|scope| {
            let ranks = LocalBootstrap::group(2)?.into_iter();
            let threads: Vec<_> =
                ranks.map(|rank| scope.spawn(move || Self::new(rank, device, len))).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, anyhow::Result<Self>>| {
                thread.join().map_err(|_| anyhow!("setting up a rank panicked"))?
            };
            threads.into_iter().map(join).collect::<anyhow::Result<Vec<_>>>()
        })?;
        let pair: [Self; 2] = ends.try_into().map_err(|_| anyhow!("not two ranks"))?;
        Ok(Rc::new(pair))
    }

    fn args(&self, bench: &Bench, end: u32, bytes: usize, rounds: u32, flush: u32) -> PortPingPongArgs {
        let address = self.buffer.address();
        PortPingPongArgs {
            channel: self.channel,
            policy: self.stream.policy(Rank(end), bench.patience()),
            // The outbox, then the inbox.
            outbox: address.cast(),
            inbox: address.add(bytes as u64).cast(),
            inbox_offset: bytes as u64,
            wrong: self.wrong.address(),
            bytes: bytes as u64,
            end,
            rounds,
            flush,
            reserved: 0,
        }
    }
}

fn round_trips(bench: &Bench, bytes: usize, flush: u32) -> anyhow::Result<Vec<Contestant<'_>>> {
    let rounds = bench.pick(200, 50);
    let pair = End::pair(bench, 2 * bytes)?;
    let config = LaunchConfig::new(1, 32).concurrent(2);
    let mut contestants = Vec::new();
    for entry in bench.entries::<PortPingPong>()? {
        let pair = Rc::clone(&pair);
        let who = entry.who;
        let run = move |check: bool| -> anyhow::Result<f64> {
            let args = [0, 1].map(|end| {
                let args = pair[end].args(bench, end as u32, bytes, rounds, flush);
                PortPingPongArgs { wrong: if check { args.wrong } else { Default::default() }, ..args }
            });
            let begin = pair[0].stream.record()?;
            for end in [1, 0] {
                // SAFETY: the ends live as long as the contestant's closure, and both launches are waited for.
                unsafe { entry.launch(&pair[end].stream, config, args[end]) }?;
            }
            let ended = pair[0].stream.record()?;
            for end in &*pair {
                end.stream.synchronize().with_context(|| format!("the proxy: {:?}", end.service.health()))?;
                let wrong = end.wrong.read()?;
                ensure!(wrong == [0], "{} words of the messages were wrong", wrong[0]);
            }
            Ok(timing::seconds(ended.elapsed_since(&begin)?)? * 1e6 / f64::from(rounds))
        };
        run(true)?;
        contestants.push(Contestant::new(who, move || run(false)));
    }
    Ok(contestants)
}

fn puts(bench: &Bench, bytes: u64) -> anyhow::Result<Vec<Contestant<'_>>> {
    let count = bench.pick(((1 << 30) / bytes).clamp(8, 500) as u32, 8);
    let pair = End::pair(bench, bytes as usize)?;
    let mut contestants = Vec::new();
    for entry in bench.entries::<PortRequests>()? {
        let (who, of_run) = (entry.who, Rc::clone(&pair));
        let run = move || -> anyhow::Result<f64> {
            let [sender, _] = &*of_run;
            let args = PortRequestsArgs {
                channel: sender.channel,
                policy: sender.stream.policy(Rank(0), bench.patience()),
                destination_offset: 0,
                source_offset: 0,
                bytes,
                count,
                call: PortCall::PutWithSignalAndFlush,
            };
            let begin = sender.stream.record()?;
            // SAFETY: the ends live as long as the contestant's closure, and the launch is waited for.
            unsafe { entry.launch(&sender.stream, LaunchConfig::new(1, 1).concurrent(1), args) }?;
            let ended = sender.stream.record()?;
            sender
                .stream
                .synchronize()
                .with_context(|| format!("the proxy: {:?}", sender.service.health()))?;
            let seconds = timing::seconds(ended.elapsed_since(&begin)?)?;
            Ok(bytes as f64 * f64::from(count) / seconds / 1e9)
        };
        check_put(&pair, bytes, &run).with_context(|| format!("the kernel of: {who}"))?;
        contestants.push(Contestant::new(who, run));
    }
    Ok(contestants)
}

/// Runs once, and compares what came with what was sent.
fn check_put(pair: &[End; 2], bytes: u64, run: &impl Fn() -> anyhow::Result<f64>) -> anyhow::Result<()> {
    let [sender, receiver] = pair;
    let sent: Vec<u8> = (0..bytes).map(|i| (i.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
    sender.buffer.write(&sent)?;
    receiver.buffer.fill_bytes(0xA5)?;
    run()?;
    let came = receiver.buffer.read()?;
    let differ = came.iter().zip(&sent).filter(|(came, sent)| came != sent).count();
    ensure!(differ == 0, "{differ} of the {bytes} bytes that came are not those that were sent");
    Ok(())
}
