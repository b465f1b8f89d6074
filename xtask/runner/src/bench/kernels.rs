//! The contenders' kernels: warpwire's, the C++ baseline's, and a peer's where one is given, launched alike.
//!
//! The others' kernels have the argument blocks of warpwire's, so a row builds its arguments once and launches each kernel
//! with them, typed as for our own.

use std::marker::PhantomData;
use std::path::Path;
use std::rc::Rc;

use anyhow::Context;
use warpwire::Error;
use warpwire::abi::LaunchLimits;
use warpwire::device::{Device, Function, LaunchConfig, Module, ModuleSource, Stream};
use warpwire::error::ModuleError;
use warpwire::kernel::Kernel;
use warpwire_build::ptx::Header;
use warpwire_device::arch::Params;
use warpwire_kernels::{all_pair, barrier, bulk, convert, fifo, packets, ping_pong, port, transfer};

use super::case::Who;

/// A kernel that others have under names of their own, with the same arguments and the same effect.
pub trait HasBaseline: Kernel {
    /// The entry in the C++ baseline.
    const BASELINE: &'static str;
    /// The entry in a peer's file.
    const PEER: &'static str;
}

macro_rules! has_baseline {
    ($($Kernel:ty = $name:literal;)*) => { $(
        impl HasBaseline for $Kernel {
            const BASELINE: &'static str = concat!("baseline_", $name);
            const PEER: &'static str = concat!("peer_", $name);
        }
    )* };
}

has_baseline! {
    all_pair::AllReduceAllPair = "all_reduce_all_pair_f32_sum";
    barrier::BarrierRounds = "barrier_rounds";
    bulk::PutBulk = "put_bulk";
    convert::E4m3B15ExtendedToF16 = "e4m3b15_extended_to_f16";
    convert::E4m3B15ExtendedToF32 = "e4m3b15_extended_to_f32";
    convert::E4m3B15ToF16 = "e4m3b15_to_f16";
    convert::E4m3B15ToF32 = "e4m3b15_to_f32";
    convert::F16ToE4m3B15 = "f16_to_e4m3b15";
    convert::F16ToE4m3B15Extended = "f16_to_e4m3b15_extended";
    convert::F32ToE4m3B15 = "f32_to_e4m3b15";
    convert::F32ToE4m3B15Extended = "f32_to_e4m3b15_extended";
    fifo::FifoPush = "fifo_push";
    packets::PutPackets8 = "put_packets_ll8";
    packets::PutPackets16 = "put_packets_ll16";
    packets::UnpackPackets8 = "unpack_packets_ll8";
    packets::UnpackPackets16 = "unpack_packets_ll16";
    port::PortPingPong = "port_ping_pong";
    port::PortRequests = "port_requests";
    ping_pong::PacketPingPong8 = "ll8_ping_pong";
    ping_pong::PacketPingPong16 = "ll16_ping_pong";
    ping_pong::PutPingPong = "put_ping_pong";
    ping_pong::SemaphorePingPong = "semaphore_ping_pong";
    transfer::Get = "get";
    transfer::Put = "put";
}

macro_rules! foreign {
    ($(#[$meta:meta])* $Foreign:ident: $name:ident) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $Foreign<K>(PhantomData<fn() -> K>);

        // SAFETY: the entry takes the argument block of `K`: its source includes the C++ side of the layouts, and the host
        // compares the size with the PTX's parameter when it is loaded.
        unsafe impl<K: HasBaseline> Kernel for $Foreign<K> {
            const NAME: &'static str = K::$name;
            const LIMITS: LaunchLimits = K::LIMITS;
            type Args = K::Args;

            unsafe fn run(_: Params<K::Args>) {
                // There is no such body, and a table of kernels that names this one does not compile.
                const { panic!("a C++ kernel has no body for the CPU device") }
            }
        }
    };
}

foreign! {
    /// The C++ baseline's counterpart of `K`.
    Baseline: BASELINE
}

foreign! {
    /// A peer's counterpart of `K`.
    Peer: PEER
}

/// A contender's kernel that takes `A`, ready to be launched. A cheap clone.
pub struct Entry<A> {
    /// Whose it is.
    pub who: Who,
    function: Rc<dyn Launch<A>>,
}

impl<A> Clone for Entry<A> {
    fn clone(&self) -> Self {
        Self { who: self.who, function: Rc::clone(&self.function) }
    }
}

impl<A> Entry<A> {
    pub(super) fn new<K: Kernel<Args = A>>(who: Who, function: Function<K>) -> Self {
        Self { who, function: Rc::new(function) }
    }

    /// Queues a launch.
    ///
    /// # Safety
    ///
    /// As for [`Stream::launch`].
    pub unsafe fn launch(&self, stream: &Stream, config: LaunchConfig, args: A) -> warpwire::Result<()> {
        // SAFETY: the caller's contract.
        unsafe { self.function.launch(stream, config, args) }
    }
}

/// A [`Function`] of whatever kernel, by its arguments.
trait Launch<A> {
    /// # Safety
    ///
    /// As for [`Stream::launch`].
    unsafe fn launch(&self, stream: &Stream, config: LaunchConfig, args: A) -> warpwire::Result<()>;
}

impl<K: Kernel> Launch<K::Args> for Function<K> {
    unsafe fn launch(&self, stream: &Stream, config: LaunchConfig, args: K::Args) -> warpwire::Result<()> {
        // SAFETY: the caller's contract.
        unsafe { stream.launch(self, config, args) }
    }
}

/// Loads a file of PTX that others' kernels were compiled to; `None`, with a printed line, where this device cannot run it.
pub fn load(device: &Device, name: &'static str, path: &Path) -> anyhow::Result<Option<Module>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let header = Header::parse(&text).with_context(|| format!("{shown} is no PTX"))?;
    // A module's text lives as long as the program, which ends when the benchmark does.
    let text: &'static str = text.leak();
    let ptx = vec![(header.target.number, text)].leak();
    match device.load(&ModuleSource { name, kernels: &[], ptx }) {
        Err(
            error
            @ (Error::Module(ModuleError::NoCode { .. }) | Error::Module(ModuleError::PtxTooNew { .. })),
        ) => {
            println!("no columns for {shown}: {error}");
            Ok(None)
        }
        loaded => loaded.map(Some).with_context(|| format!("cannot load {shown}")),
    }
}

/// The module's kernel; `None` where it has none of that name.
pub fn find<K: Kernel>(module: &Module) -> warpwire::Result<Option<Function<K>>> {
    match module.function::<K>() {
        Ok(function) => Ok(Some(function)),
        Err(Error::Module(ModuleError::UnknownKernel { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}
