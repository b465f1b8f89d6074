//! All-reduce among the ranks of one process.

use std::time::Duration;

use warpwire_device::abi::{Global, Ll16, MAX_RANKS, Packet, Rank, RankTable};
use warpwire_kernels::all_pair::{AllPairArgs, AllReduceAllPair, MAX_BLOCKS, MAX_SLOTS, Round};

use super::shape;
use crate::device::{Buffer, Device, DeviceKind, Function, LaunchConfig, Stream, builtin_module};
use crate::error::{Error, Result};

/// Elements that a packet carries.
const PER_PACKET: usize = Ll16::PAYLOAD_BYTES as usize / size_of::<f32>();

/// The sum over all ranks, for messages up to a size that is fixed when it is made: all-pair packets, one step.
///
/// All ranks are in this process; several may share a device. Every rank calls [`AllReduce::enqueue`] once a round, each on a
/// stream of its own, in the same order of rounds.
#[derive(Debug)]
pub struct AllReduce {
    members: Vec<Member>,
    slots: u32,
}

#[derive(Debug)]
struct Member {
    function: Function<AllReduceAllPair>,
    scratch: Buffer<Ll16>,
    rounds: Buffer<Round>,
    /// Ranks on the same device, this one counted.
    sharing: u32,
}

/// What one rank reduces.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    /// `count` elements.
    pub input: Global<f32>,
    /// Room for as many: `input` itself, or memory that does not overlap it.
    pub output: Global<f32>,
    /// Elements.
    pub count: usize,
}

impl AllReduce {
    /// An all-reduce among `devices.len()` ranks, rank `r` on `devices[r]`, of up to `max_elements` elements.
    ///
    /// # Errors
    ///
    /// [`Error::RankCount`] for fewer than 2 ranks or more than [`MAX_RANKS`]; [`Error::TooManyElements`];
    /// [`Error::NoPeerAccess`] where the ranks are on several GPUs; those of loading the kernels and of the allocations.
    pub fn new(devices: &[Device], max_elements: usize) -> Result<Self> {
        let ranks = devices.len();
        if !(2..=MAX_RANKS).contains(&ranks) {
            return Err(Error::RankCount { ranks, least: 2, most: MAX_RANKS });
        }
        let several_gpus =
            devices.iter().any(|d| d.properties().kind == DeviceKind::Cuda && !d.is_same(&devices[0]));
        if several_gpus {
            return Err(Error::NoPeerAccess);
        }
        let limit = MAX_SLOTS as usize * PER_PACKET;
        if max_elements == 0 || max_elements > limit {
            return Err(Error::TooManyElements { count: max_elements, limit });
        }
        // At most `MAX_SLOTS`, which is a power of two.
        let slots = max_elements.div_ceil(PER_PACKET).next_power_of_two();
        let members = devices.iter().map(|device| {
            Ok(Member {
                function: device.load(builtin_module())?.function()?,
                scratch: device.allocate(2 * (ranks - 1) * slots)?,
                rounds: device.allocate(MAX_BLOCKS as usize)?,
                sharing: devices.iter().filter(|other| other.is_same(device)).count() as u32,
            })
        });
        Ok(Self { members: members.collect::<Result<_>>()?, slots: slots as u32 })
    }

    /// Ranks of the group.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.members.len()
    }

    /// Queues `rank`'s part of a round on `stream`; its waits last at most `timeout` each. Nothing is queued for 0 elements.
    ///
    /// It may be captured into a graph: the rounds are counted on the device.
    ///
    /// # Errors
    ///
    /// Before anything is queued: those of [`AllReduce::launch_of`] and of [`Stream::launch`]. A peer that does not take part:
    /// [`Error::WaitFailed`] from [`Stream::synchronize`]; the group then has to be [`reset`](AllReduce::reset) before its
    /// next round.
    ///
    /// # Safety
    ///
    /// Until the launch has ended, `operands` holds addresses of live memory of the rank's device that nobody else touches
    /// (but for reading the input), and `self` is not dropped.
    pub unsafe fn enqueue(
        &self,
        rank: Rank,
        stream: &Stream,
        operands: Operands,
        timeout: Duration,
    ) -> Result<()> {
        let (function, config, args) = self.launch_of(rank, stream, operands, timeout)?;
        if operands.count == 0 {
            return Ok(());
        }
        // SAFETY: the scratch of every rank and the rounds live as long as `self`, the operands as long as the caller says,
        // the board as long as the stream; all are reached by the rank's device, since there is only one GPU, or none.
        unsafe { stream.launch(function, config, args) }
    }

    /// What [`AllReduce::enqueue`] launches for `rank`: the kernel, the shape and the arguments, for a kernel of one's own that
    /// takes the same ones.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRank`], [`Error::TooManyElements`], [`Error::Misaligned`], [`Error::Overlap`], and the driver's.
    pub fn launch_of(
        &self,
        rank: Rank,
        stream: &Stream,
        operands: Operands,
        timeout: Duration,
    ) -> Result<(&Function<AllReduceAllPair>, LaunchConfig, AllPairArgs)> {
        let ranks = self.members.len();
        let member = self.members.get(rank.0 as usize).ok_or(Error::NoSuchRank { rank, ranks })?;
        let Operands { input, output, count } = operands;
        let limit = self.slots as usize * PER_PACKET;
        if count > limit {
            return Err(Error::TooManyElements { count, limit });
        }
        check(input, output, count)?;
        let packets = count.div_ceil(PER_PACKET) as u64;
        let function = &member.function;
        let config = shape::all_pair(
            packets,
            function.device().properties().kind,
            function.max_threads(),
            member.sharing,
            |threads| function.resident_blocks(threads, 0),
        )?;
        let scratch: Vec<_> = self.members.iter().map(|member| member.scratch.address()).collect();
        let args = AllPairArgs {
            scratch: RankTable::new(&scratch).ok_or(Error::RankCount { ranks, least: 2, most: MAX_RANKS })?,
            policy: stream.policy(rank, timeout),
            input,
            output,
            count: count as u64,
            rounds: member.rounds.address(),
            slots: self.slots,
            ranks: ranks as u32,
        };
        Ok((function, config, args))
    }

    /// Forgets all rounds, after a failed one. No launch of any rank may be in flight; each stream has to be reset too.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn reset(&mut self) -> Result<()> {
        for member in &self.members {
            member.scratch.fill_bytes(0)?;
            member.rounds.fill_bytes(0)?;
        }
        Ok(())
    }
}

/// Fails for operands that the kernel cannot take.
fn check(input: Global<f32>, output: Global<f32>, count: usize) -> Result<()> {
    for (what, address) in [("input", input.address()), ("output", output.address())] {
        if !address.is_multiple_of(align_of::<f32>() as u64) {
            return Err(Error::Misaligned { what, address, alignment: align_of::<f32>() as u64 });
        }
    }
    let bytes = (count * size_of::<f32>()) as u64;
    let distance = input.address().abs_diff(output.address());
    if distance != 0 && distance < bytes {
        return Err(Error::Overlap { input: input.address(), output: output.address(), bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: u64) -> Global<f32> {
        // SAFETY: only the number is looked at.
        unsafe { Global::from_address(address) }
    }

    #[test]
    fn operands_are_checked() {
        assert!(check(at(4096), at(4096), 100).is_ok());
        assert!(check(at(4096), at(4096 + 400), 100).is_ok());
        assert!(matches!(check(at(4096), at(4096 + 396), 100), Err(Error::Overlap { .. })));
        assert!(matches!(check(at(4096 + 396), at(4096), 100), Err(Error::Overlap { .. })));
        assert!(matches!(check(at(4098), at(8192), 1), Err(Error::Misaligned { what: "input", .. })));
    }
}
