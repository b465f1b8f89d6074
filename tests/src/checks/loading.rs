//! Kernels that are asked for.

use std::thread;

use warpwire::device::{Device, DeviceKind, DeviceSelector, Module, builtin_module};
use warpwire::kernel::Kernel;
use warpwire_kernels::all_pair::AllReduceAllPair;
use warpwire_kernels::barrier::BarrierRounds;
use warpwire_kernels::convert::{E4m3B15ToF16, F32ToE4m3B15};
use warpwire_kernels::fifo::FifoPush;
use warpwire_kernels::packets::UnpackPackets8;
use warpwire_kernels::ping_pong::PutPingPong;
use warpwire_kernels::port::PortRequests;
use warpwire_kernels::transfer::{Get, Put};

/// Asks for `K`, and sees that it is the kernel of that name.
fn asks_for<K: Kernel>(module: &Module) {
    let function = module.function::<K>().unwrap_or_else(|error| panic!("{}: {error}", K::NAME));
    let most = K::LIMITS.max_threads.min(function.device().properties().max_threads_per_block);
    assert_eq!(function.max_threads(), most, "{}", K::NAME);
    assert!(function.resident_blocks(32, 0).expect("a shape that runs") > 0, "{}", K::NAME);
}

/// Kernels of every part of the module, of some two.
const KERNELS: [fn(&Module); 10] = [
    asks_for::<AllReduceAllPair>,
    asks_for::<BarrierRounds>,
    asks_for::<E4m3B15ToF16>,
    asks_for::<F32ToE4m3B15>,
    asks_for::<FifoPush>,
    asks_for::<Get>,
    asks_for::<PortRequests>,
    asks_for::<Put>,
    asks_for::<PutPingPong>,
    asks_for::<UnpackPackets8>,
];

/// Ranks in threads of one process ask for the same kernels and for others, all at once: each gets its own, whoever has the
/// part of the module loaded in which it is.
pub fn many_threads_ask_at_once(device: &Device) {
    // Opened anew, so that nothing is loaded yet.
    let properties = device.properties();
    let selector = match properties.kind {
        DeviceKind::Cuda => DeviceSelector::Cuda(properties.ordinal),
        DeviceKind::Cpu => DeviceSelector::Cpu,
    };
    let device = &Device::open(selector).expect("it is open already");
    thread::scope(|scope| {
        for first in 0..KERNELS.len() {
            scope.spawn(move || {
                let module = device.load(builtin_module()).expect("the device takes the module");
                let (before, from_there) = KERNELS.split_at(first);
                from_there.iter().chain(before).for_each(|ask| ask(&module));
            });
        }
    });
}
