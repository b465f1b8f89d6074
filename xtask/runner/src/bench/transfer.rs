//! Transfers: kernels that move the bench's memory, each with the best of some shapes.

use std::rc::Rc;

use warpwire::abi::Global;
use warpwire::channel::ChannelBuffers;
use warpwire::device::{LaunchConfig, Stream};
use warpwire_kernels::transfer::TransferArgs;

use super::case::{Contestant, Unit, Who};
use super::kernels::Entry;
use super::setup::Bench;
use super::timing::{Batch, Queue};

/// What is moved: where it begins in the bench's source and in its destination, in bytes, and how much it is.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// In the source.
    pub from: usize,
    /// In the destination.
    pub to: usize,
    /// Bytes of payload.
    pub bytes: usize,
}

impl Move {
    /// From the beginning to the beginning.
    pub const fn of(bytes: usize) -> Self {
        Self { from: 0, to: 0, bytes }
    }

    /// The arguments of a put: the source is the local buffer. `flag` is for packets; 0 for plain transfers, which then
    /// signal nobody.
    pub fn put(self, bench: &Bench, flag: u32) -> anyhow::Result<TransferArgs> {
        let memory = bench.memory()?;
        let buffers =
            ChannelBuffers { local: memory.source(), remote: memory.destination(), packets: Global::NULL };
        Ok(TransferArgs {
            remote_offset: self.to as u64,
            local_offset: self.from as u64,
            ..self.arguments(bench, buffers, flag)
        })
    }

    /// The arguments of a get: the source is the peer's buffer.
    pub fn get(self, bench: &Bench) -> anyhow::Result<TransferArgs> {
        let memory = bench.memory()?;
        let buffers =
            ChannelBuffers { local: memory.destination(), remote: memory.source(), packets: Global::NULL };
        Ok(TransferArgs {
            remote_offset: self.from as u64,
            local_offset: self.to as u64,
            ..self.arguments(bench, buffers, 0)
        })
    }

    /// The arguments of an unpacking: packets from the front of the destination, payload to [`Move::to`] in it.
    pub fn unpack(self, bench: &Bench, flag: u32) -> anyhow::Result<TransferArgs> {
        let memory = bench.memory()?;
        let (local, packets) = (memory.destination(), memory.destination());
        let buffers = ChannelBuffers { local, remote: Global::NULL, packets };
        Ok(TransferArgs { local_offset: self.to as u64, ..self.arguments(bench, buffers, flag) })
    }

    fn arguments(self, bench: &Bench, buffers: ChannelBuffers, flag: u32) -> TransferArgs {
        TransferArgs {
            channel: bench.channel.handle(buffers),
            policy: bench.policy(),
            remote_offset: 0,
            local_offset: 0,
            bytes: self.bytes as u64,
            signal_or_flag: flag,
            reserved: 0,
        }
    }
}

/// What a transfer's time is turned into.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// GB/s, of so many bytes.
    Rate(usize),
    /// Microseconds.
    Time,
}

impl Value {
    /// Its unit.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Rate(_) => Unit::GigabytesPerSecond,
            Self::Time => Unit::Microseconds,
        }
    }

    fn of(self, seconds: f64) -> f64 {
        match self {
            Self::Rate(bytes) => bytes as f64 / seconds / 1e9,
            Self::Time => seconds * 1e6,
        }
    }
}

/// A transfer, or another kernel over buffers, as each contender is to do it.
pub struct Transfer<'a, A = TransferArgs> {
    /// The arguments.
    pub args: A,
    /// The shapes to choose from.
    pub shapes: &'a [LaunchConfig],
    /// Puts the memory in the state that the transfer begins from.
    pub arrange: &'a dyn Fn() -> anyhow::Result<()>,
    /// Fails where the transfer has not done what it should.
    pub check: &'a dyn Fn() -> anyhow::Result<()>,
    /// What is measured.
    pub value: Value,
}

impl<A: Copy + 'static> Transfer<'_, A> {
    /// Every contender that has the kernel, each with the shape that suits it.
    ///
    /// # Safety
    ///
    /// `args` is what the kernel takes, over memory that lives as long as the bench.
    pub unsafe fn contestants<'b>(
        &self,
        bench: &'b Bench,
        entries: Vec<Entry<A>>,
    ) -> anyhow::Result<Vec<Contestant<'b>>> {
        // SAFETY: the caller's contract.
        entries.into_iter().map(|entry| unsafe { self.contestant(bench, entry) }).collect()
    }

    /// # Safety
    ///
    /// As for [`Transfer::contestants`].
    unsafe fn contestant<'b>(&self, bench: &'b Bench, entry: Entry<A>) -> anyhow::Result<Contestant<'b>> {
        let (who, entry, args) = (entry.who, Rc::new(entry), self.args);
        let queue = |config: LaunchConfig| -> Queue<'b> {
            let entry = Rc::clone(&entry);
            // SAFETY: the caller's contract.
            Box::new(move |stream: &Stream| unsafe { entry.launch(stream, config, args) })
        };
        (self.arrange)()?;
        let mut best: Option<(f64, LaunchConfig, Batch<'b>)> = None;
        for &config in self.shapes {
            // SAFETY: the caller's contract.
            let batch = unsafe { Batch::new(bench, queue(config)) }?;
            // One shape needs no trial.
            let time = if self.shapes.len() == 1 { 0.0 } else { batch.time()?.min(batch.time()?) };
            if best.as_ref().is_none_or(|(least, ..)| time < *least) {
                best = Some((time, config, batch));
            }
        }
        let Some((_, config, batch)) = best else { anyhow::bail!("no shape is given for {who}") };
        (self.arrange)()?;
        queue(config)(&bench.stream)?;
        bench.stream.synchronize()?;
        (self.check)()?;
        let contestant = self.measured(who, batch);
        let chosen = format!("{} x {}", config.blocks, config.threads);
        Ok(if self.shapes.len() == 1 { contestant } else { contestant.shape(chosen) })
    }

    /// The driver's own copy of what `what` says.
    pub fn driver<'b>(&self, bench: &'b Bench, what: Move) -> anyhow::Result<Contestant<'b>> {
        let memory = bench.memory()?;
        let from = memory.source().byte_add(what.from as u64);
        let to = memory.destination().byte_add(what.to as u64);
        // SAFETY: two ranges of the bench's memory, which lives as long as the batch.
        unsafe { self.driver_copy(bench, to, from, what.bytes) }
    }

    /// The driver's own copy of `bytes` bytes.
    ///
    /// # Safety
    ///
    /// Two ranges that do not overlap, and that live as long as the contestant.
    pub unsafe fn driver_copy<'b>(
        &self,
        bench: &'b Bench,
        to: Global<u8>,
        from: Global<u8>,
        bytes: usize,
    ) -> anyhow::Result<Contestant<'b>> {
        // SAFETY: the caller's contract.
        let queue: Queue<'b> = Box::new(move |stream: &Stream| unsafe { stream.copy(to, from, bytes) });
        // SAFETY: as above.
        Ok(self.measured(Who::Driver, unsafe { Batch::new(bench, queue) }?))
    }

    fn measured<'b>(&self, who: Who, batch: Batch<'b>) -> Contestant<'b> {
        let value = self.value;
        Contestant::new(who, move || Ok(value.of(batch.time()?)))
    }
}

/// Shapes worth a trial for `accesses` accesses of 16 bytes: from several accesses a thread to one, up to many blocks a
/// multiprocessor. The CPU device's threads only take turns: two will do.
pub fn shapes(bench: &Bench, accesses: usize) -> Vec<LaunchConfig> {
    const GPU: [(u32, u32); 17] = [
        (1, 32),
        (1, 64),
        (1, 128),
        (1, 256),
        (1, 1024),
        (4, 256),
        (8, 512),
        (16, 1024),
        (32, 1024),
        (64, 1024),
        (132, 512),
        (132, 1024),
        (264, 512),
        (264, 1024),
        (1056, 1024),
        (2112, 1024),
        (16384, 512),
    ];
    const CPU: [(u32, u32); 2] = [(1, 32), (2, 64)];
    let all = if bench.is_gpu() { &GPU[..] } else { &CPU[..] };
    let configs = all.iter().map(|&(blocks, threads)| LaunchConfig::new(blocks, threads));
    let threads = |config: &LaunchConfig| config.blocks as usize * config.threads as usize;
    let fitting: Vec<_> = configs
        .clone()
        .filter(|config| threads(config) <= 2 * accesses.max(16) && accesses <= 512 * threads(config))
        .collect();
    if fitting.is_empty() { configs.collect() } else { fitting }
}
