//! `exchange`: a message that is put, then signalled for, from one block to another and back.

use anyhow::ensure;
use warpwire::abi::{ChannelId, Rank};
use warpwire::channel::{ChannelBuffers, MemoryChannel};
use warpwire::device::{Buffer, LaunchConfig};
use warpwire_kernels::ping_pong::{PutPingPong, PutPingPongArgs};

use crate::bench::case::{Case, Contestant, Row, Unit};
use crate::bench::rounds::Rounds;
use crate::bench::setup::Bench;
use crate::size::Size;

/// The row.
pub const ROW: Row = Row {
    name: "exchange",
    about: "a put, a block's barrier and a signal, from one block to another, both in one launch",
    cases,
};

/// Bytes, threads of each block, and the aim on an H200.
const SHAPES: [(usize, u32, f64); 4] =
    [(16, 32, 1080.0), (4 << 10, 256, 1100.0), (16 << 10, 1024, 1250.0), (256 << 10, 1024, 4500.0)];

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    // The CPU device takes its time for a thousand threads.
    let shapes = SHAPES.iter().filter(|(_, threads, _)| bench.is_gpu() || *threads <= 256);
    let case = |&(bytes, threads, aim): &(usize, u32, f64)| {
        let configuration = format!("{}, 2 x {threads} threads", Size(bytes));
        Case::new("put and signal", configuration, Unit::Nanoseconds, move |bench| {
            exchange(bench, bytes, threads)
        })
        .aim(bench.aim(aim))
        .point("put and signal", bytes as u64)
    };
    Ok(shapes.map(case).collect())
}

fn exchange(bench: &Bench, bytes: usize, threads: u32) -> anyhow::Result<Vec<Contestant<'_>>> {
    let rounds = bench.pick(if bytes > 64 << 10 { 300 } else { 1500 }, 20);
    let mut contestants = Vec::new();
    for entry in bench.entries::<PutPingPong>()? {
        let device = &bench.device;
        let channels = MemoryChannel::between((device, Rank(0)), (device, Rank(1)), ChannelId(0))?;
        let buffer = || device.allocate::<u8>(bytes);
        let (own, inbox): ([Buffer<u8>; 2], [Buffer<u8>; 2]) =
            ([buffer()?, buffer()?], [buffer()?, buffer()?]);
        let wrong: Buffer<u32> = device.allocate(2)?;
        let handle = |end: usize| {
            channels[end].handle(ChannelBuffers {
                local: own[end].address(),
                remote: inbox[1 - end].address(),
                packets: inbox[end].address(),
            })
        };
        let args = PutPingPongArgs {
            ends: [handle(0), handle(1)],
            policy: bench.policy(),
            bytes: bytes as u64,
            wrong: wrong.address(),
            first_end: 0,
            rounds,
        };
        let who = entry.who;
        let config = LaunchConfig::new(2, threads).concurrent(1);
        let mut run = Rounds { bench, entry, config, args, hops: 2 * rounds };
        for inbox in &inbox {
            inbox.fill_bytes(0xA5)?;
        }
        // SAFETY: the channels and the buffers are the contestant's own, and live as long as its closure.
        unsafe { run.once() }?;
        let counts = wrong.read()?;
        ensure!(counts == [0, 0], "{counts:?} words of the two ends' messages were not their round's");
        // End 0 began, so each inbox holds what the other end sent last.
        for end in 0..2 {
            ensure!(
                inbox[end].read()? == own[1 - end].read()?,
                "end {end} holds another message than was sent last"
            );
        }
        run.args.wrong = warpwire::abi::Global::NULL;
        contestants.push(Contestant::new(who, move || {
            let _alive = (&channels, &own, &inbox);
            // SAFETY: as above.
            unsafe { run.nanoseconds() }
        }));
    }
    Ok(contestants)
}
