//! `packets`: payload written as packets, and packets unpacked.

use warpwire::abi::{Flag, Ll8, Ll16, Packet};
use warpwire_kernels::packets::{PutPackets8, PutPackets16, UnpackPackets8, UnpackPackets16};
use warpwire_kernels::transfer::TransferArgs;

use crate::bench::case::{Case, Contestant, Row};
use crate::bench::kernels::HasBaseline;
use crate::bench::setup::Bench;
use crate::bench::transfer::{Move, Transfer, Value, shapes};
use crate::size::Size;

/// The row.
pub const ROW: Row = Row {
    name: "packets",
    about: "payload written as packets, and packets unpacked; GB/s count the payload",
    cases,
};

/// The flag of every packet here.
const FLAG: Flag = Flag::FIRST;
/// Short ones, whose data stay in the cache, and the aim on an H200.
const HOT: [(usize, f64); 3] = [(1 << 10, 0.90), (64 << 10, 1.15), (1 << 20, 1.50)];

fn cases(bench: &Bench) -> anyhow::Result<Vec<Case<'_>>> {
    let largest = bench.memory()?.largest;
    // Packets take twice their payload, and unpacked payload lies behind them.
    let bytes = bench.pick((largest / 4).min(256 << 20), 64 << 10);
    let value = Value::Rate(bytes);
    let configuration = format!("{}, best grid", Size(bytes));
    let at_size = |aim: f64| (bytes == 256 << 20).then(|| bench.aim(aim)).flatten();
    let large =
        |name: &str, aim: f64, prepare: fn(&Bench, usize, Value) -> anyhow::Result<Vec<Contestant<'_>>>| {
            Case::new(name, &configuration, value.unit(), move |bench| prepare(bench, bytes, value))
                .aim(at_size(aim))
        };
    let mut cases = vec![
        large("put_packets LL16", 1320.0, put::<PutPackets16, Ll16>),
        large("put_packets LL8", 1250.0, put::<PutPackets8, Ll8>),
        large("unpack_packets LL16", 1380.0, unpack::<PutPackets16, UnpackPackets16, Ll16>),
        large("unpack_packets LL8", 1320.0, unpack::<PutPackets8, UnpackPackets8, Ll8>),
    ];
    for (bytes, aim) in HOT.into_iter().filter(|&(bytes, _)| bytes <= bench.pick(largest / 4, 64 << 10)) {
        let configuration = format!("{}, hot", Size(bytes));
        let case =
            Case::new("put_packets LL16 in a graph", configuration, Value::Time.unit(), move |bench| {
                put::<PutPackets16, Ll16>(bench, bytes, Value::Time)
            });
        cases.push(case.aim(bench.aim(aim)).point("put_packets LL16 in a graph", bytes as u64));
    }
    Ok(cases)
}

fn put<K: HasBaseline<Args = TransferArgs>, P: Packet>(
    bench: &Bench,
    bytes: usize,
    value: Value,
) -> anyhow::Result<Vec<Contestant<'_>>> {
    let memory = bench.memory()?;
    let transfer = Transfer {
        args: Move::of(bytes).put(bench, FLAG.get())?,
        shapes: &shapes(bench, bytes / P::PAYLOAD_BYTES as usize),
        arrange: &|| memory.poison(),
        check: &|| memory.expect_packets(bytes, FLAG),
        value,
    };
    // SAFETY: the payload lies in the bench's source, the packets, twice as long, in its destination.
    unsafe { transfer.contestants(bench, bench.entries::<K>()?) }
}

fn unpack<Put, Unpack, P>(bench: &Bench, bytes: usize, value: Value) -> anyhow::Result<Vec<Contestant<'_>>>
where
    Put: HasBaseline<Args = TransferArgs>,
    Unpack: HasBaseline<Args = TransferArgs>,
    P: Packet,
{
    let memory = bench.memory()?;
    let to = 2 * bytes;
    let shapes = shapes(bench, bytes / P::PAYLOAD_BYTES as usize);
    let put = Move::of(bytes).put(bench, FLAG.get())?;
    // Each contender unpacks the packets that ours wrote.
    let packets = bench.entries::<Put>()?;
    let write = || -> anyhow::Result<()> {
        memory.poison()?;
        let (Some(ours), Some(&shape)) = (packets.first(), shapes.last()) else { return Ok(()) };
        // SAFETY: as in `put`.
        unsafe { ours.launch(&bench.stream, shape, put) }?;
        Ok(bench.stream.synchronize()?)
    };
    let transfer = Transfer {
        args: Move { to, ..Move::of(bytes) }.unpack(bench, FLAG.get())?,
        shapes: &shapes,
        arrange: &write,
        check: &|| memory.expect_payload(to, bytes),
        value,
    };
    // SAFETY: the packets lie at the front of the bench's destination, the payload goes behind them.
    unsafe { transfer.contestants(bench, bench.entries::<Unpack>()?) }
}
