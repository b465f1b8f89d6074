//! What every case is given: the device with one stream, the contenders' kernels, and memory to move.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use warpwire::abi::{ChannelId, PolicyHandle, Rank};
use warpwire::channel::MemoryChannel;
use warpwire::device::{Device, DeviceKind, DeviceSelector, Module, Stream, builtin_module};
use warpwire::memory::PeerAccess;

use super::case::Who;
use super::kernels::{self, Baseline, Entry, HasBaseline, Peer};
use super::memory::Memory;

/// How long a wait of ours may last: far beyond what any case takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// The fewest devices between which anything can be measured.
const FEWEST: usize = 2;

/// Others' kernels: files of PTX.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The C++ baseline.
    pub baseline: Option<PathBuf>,
    /// Another library.
    pub peer: Option<PathBuf>,
}

/// The surroundings of a run.
pub struct Bench {
    /// The device.
    pub device: Device,
    /// How it was asked for.
    selector: DeviceSelector,
    /// What the baseline was loaded from, where there is one.
    pub baseline_file: Option<PathBuf>,
    /// What the peer was loaded from, where there is one.
    pub peer_file: Option<PathBuf>,
    /// What the cases queue on, unless they need streams of their own.
    pub stream: Stream,
    /// How many devices the rows between devices were asked to take.
    pub asked_devices: Option<usize>,
    /// NCCL's library, for the rows between devices.
    pub nccl: PathBuf,
    /// A channel for transfers that signal nobody.
    pub channel: MemoryChannel,
    ours: Module,
    baseline: Option<Module>,
    peer: Option<Module>,
    memory: OnceCell<Memory>,
}

impl Bench {
    /// Loads the kernels: ours, and those of the files that are given.
    pub fn new(device: Device, selector: DeviceSelector, files: Files) -> anyhow::Result<Self> {
        let load = |name, path: &Option<PathBuf>| match path {
            Some(path) => kernels::load(&device, name, path),
            None => Ok(None),
        };
        let (baseline, peer) = (load("baseline", &files.baseline)?, load("peer", &files.peer)?);
        let [channel, _] = MemoryChannel::between((&device, Rank(0)), (&device, Rank(1)), ChannelId(0))?;
        Ok(Self {
            asked_devices: None,
            nccl: PathBuf::new(),
            channel,
            stream: device.stream()?,
            ours: device.load(builtin_module())?,
            baseline_file: files.baseline.filter(|_| baseline.is_some()),
            peer_file: files.peer.filter(|_| peer.is_some()),
            baseline,
            peer,
            memory: OnceCell::new(),
            device,
            selector,
        })
    }

    /// Whether the device is a GPU.
    pub fn is_gpu(&self) -> bool {
        self.device.properties().kind == DeviceKind::Cuda
    }

    /// What a GPU takes, or the CPU device, which is to end within seconds.
    pub fn pick<T>(&self, gpu: T, cpu: T) -> T {
        if self.is_gpu() { gpu } else { cpu }
    }

    /// The device by name, for a child process, which is to choose nothing itself.
    pub fn selector(&self) -> DeviceSelector {
        match self.selector {
            DeviceSelector::Auto => self.pick(DeviceSelector::Cuda(0), DeviceSelector::Cpu),
            named => named,
        }
    }

    /// How many devices there are for the rows between devices: as many as were asked for, else every GPU that reaches and is
    /// reached by the others. CPU devices there are as many as one likes.
    pub fn devices(&self) -> anyhow::Result<usize> {
        if !self.is_gpu() {
            return enough(self.asked_devices.unwrap_or(FEWEST), usize::MAX);
        }
        let access = PeerAccess::check()?;
        let devices = enough(self.asked_devices.unwrap_or(access.devices()), access.devices())?;
        let reach = (0..devices).all(|from| (0..devices).all(|to| access.reaches(from, to)));
        ensure!(reach, "not every GPU of the first {devices} reaches every other's memory:\n{access}");
        Ok(devices)
    }

    /// An aim that is stated for one H200: it means nothing elsewhere.
    pub fn aim(&self, on_h200: f64) -> Option<f64> {
        self.device.properties().name.contains("H200").then_some(on_h200)
    }

    /// `K` of every contender that has it, ours first; none where we have not.
    pub fn entries<K: HasBaseline>(&self) -> anyhow::Result<Vec<Entry<K::Args>>> {
        let Some(ours) = kernels::find::<K>(&self.ours)? else { return Ok(Vec::new()) };
        let mut entries = vec![Entry::new(Who::Ours, ours)];
        if let Some(function) =
            self.baseline.as_ref().map(kernels::find::<Baseline<K>>).transpose()?.flatten()
        {
            entries.push(Entry::new(Who::Baseline, function));
        }
        if let Some(function) = self.peer.as_ref().map(kernels::find::<Peer<K>>).transpose()?.flatten() {
            entries.push(Entry::new(Who::Peer, function));
        }
        Ok(entries)
    }

    /// The policy of a launch on [`Bench::stream`].
    pub fn policy(&self) -> PolicyHandle {
        self.stream.policy(Rank(0), PATIENCE)
    }

    /// How long a wait of ours may last.
    pub fn patience(&self) -> Duration {
        PATIENCE
    }

    /// The memory that transfers move, allocated and filled when it is first asked for.
    pub fn memory(&self) -> anyhow::Result<&Memory> {
        if let Some(memory) = self.memory.get() {
            return Ok(memory);
        }
        let memory = Memory::new(&self.device, self.pick(1 << 30, 1 << 20))?;
        Ok(self.memory.get_or_init(|| memory))
    }
}

/// `devices`, where there are as many and they are enough.
fn enough(devices: usize, present: usize) -> anyhow::Result<usize> {
    ensure!(devices <= present, "{devices} GPUs were asked for, and there are {present}");
    ensure!(devices >= FEWEST, "a row between devices needs {FEWEST} of them at least, not {devices}");
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_two_devices_are_refused() {
        assert_eq!(enough(2, 2).unwrap(), 2);
        assert!(enough(1, 1).unwrap_err().to_string().contains("needs 2"));
        assert!(enough(0, 8).is_err());
        assert!(enough(4, 2).unwrap_err().to_string().contains("4 GPUs were asked for, and there are 2"));
    }
}
