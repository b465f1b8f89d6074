//! A field in strips, one a rank, smoothed step by step; the ranks exchange their edge rows by themselves, from their kernels.
//!
//! ```text
//! cargo run -p halo -- [--device auto|cpu|cuda] [--ranks N] [--width W] [--rows R] [--steps S]
//! ```
//!
//! Every element is compared with the same steps done in f64 on the whole field.

mod field;
mod options;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use halo_kernels::{Exchange, HaloArgs, Smooth};
use warpwire::abi::{ChannelId, Rank};
use warpwire::channel::{ChannelBuffers, MemoryChannel};
use warpwire::device::{Buffer, Device, LaunchConfig, ModuleSource, Stream};

use options::Options;

// Written by the build script: `PTX: &[(u32, &str)]`, the kernels for each architecture.
include!(concat!(env!("OUT_DIR"), "/halo_kernels_ptx.rs"));

/// The kernels in both forms.
static MODULE: ModuleSource = ModuleSource { name: "halo_kernels", kernels: halo_kernels::KERNELS, ptx: PTX };

/// How long a rank waits for a neighbour before it gives up.
const PATIENCE: Duration = Duration::from_secs(10);

/// One rank: its strip of the field, twice, and the rows that its neighbours send.
struct Strip {
    stream: Stream,
    field: Buffer<f32>,
    halo: Buffer<f32>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, Box<dyn Error>> {
    let options = Options::from_args()?;
    let Options { ranks, width, rows, steps, .. } = options;
    let device = Device::open(options.device)?;
    println!(
        "{ranks} ranks on {}: strips of {rows} rows of {width}, {steps} steps",
        device.properties().name
    );

    let module = device.load(&MODULE)?;
    let (exchange, smooth) = (module.function::<Exchange>()?, module.function::<Smooth>()?);
    let strips = (0..ranks)
        .map(|_| {
            Ok(Strip {
                stream: device.stream()?,
                field: device.allocate(2 * rows * width)?,
                halo: device.allocate(2 * 2 * width)?,
            })
        })
        .collect::<warpwire::Result<Vec<Strip>>>()?;

    let start = field::start(ranks * rows, width);
    for (strip, part) in strips.iter().zip(start.chunks(rows * width)) {
        strip.field.write(part)?;
    }

    let args = connect(&device, &strips, width, rows)?;
    for step in 0..steps {
        for (strip, args) in strips.iter().zip(&args.of_rank) {
            let args = HaloArgs { half: (step % 2) as u32, ..*args };
            // Two blocks that wait for the neighbours', all of which run at once.
            let pair = LaunchConfig::new(2, 128).concurrent(ranks as u32);
            let grid = LaunchConfig::new(4, 128);
            // SAFETY: the strips' buffers, the channels and the streams live until all streams are synchronized below; the
            // kernels of a strip touch its own field, and its neighbours' halo by the channels' protocol.
            unsafe {
                strip.stream.launch(&exchange, pair, args)?;
                strip.stream.launch(&smooth, grid, args)?;
            }
        }
    }
    // All of them, also where one failed: none may still run when the buffers go.
    let outcomes: Vec<_> = strips.iter().map(|strip| strip.stream.synchronize()).collect();
    outcomes.into_iter().collect::<warpwire::Result<()>>()?;

    let half = steps % 2 * rows * width;
    let mut result = Vec::new();
    for strip in &strips {
        result.extend_from_slice(&strip.field.read()?[half..half + rows * width]);
    }
    let error = field::largest_error(&result, &field::reference(&start, width, steps));
    // Each step rounds a few times, and a mean of values between -1 and 1 makes no error larger.
    let bound = steps as f64 * 4.0 * f64::from(f32::EPSILON);
    let right = error <= bound;
    println!(
        "largest error {error:.1e}, at most {bound:.1e} allowed: {}",
        if right { "right" } else { "WRONG" }
    );
    Ok(right)
}

/// Each rank's arguments, and the channels that they speak of.
struct Connected {
    of_rank: Vec<HaloArgs>,
    _channels: Vec<[MemoryChannel; 2]>,
}

/// A ring: a channel between each rank and the one below it.
fn connect(device: &Device, strips: &[Strip], width: usize, rows: usize) -> warpwire::Result<Connected> {
    let ranks = strips.len();
    let channels = (0..ranks)
        .map(|rank| {
            let (upper, lower) = (Rank(rank as u32), Rank(((rank + 1) % ranks) as u32));
            MemoryChannel::between((device, upper), (device, lower), ChannelId(rank as u32))
        })
        .collect::<warpwire::Result<Vec<_>>>()?;
    let of_rank = (0..ranks)
        .map(|rank| {
            let (above, below) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
            let bind = |peer: usize| ChannelBuffers {
                local: strips[rank].field.address().cast(),
                remote: strips[peer].halo.address().cast(),
                ..ChannelBuffers::default()
            };
            HaloArgs {
                // This rank is the lower end of the channel of the rank above, and the upper end of its own.
                above: channels[above][1].handle(bind(above)),
                below: channels[rank][0].handle(bind(below)),
                policy: strips[rank].stream.policy(Rank(rank as u32), PATIENCE),
                field: strips[rank].field.address(),
                halo: strips[rank].halo.address(),
                width: width as u32,
                rows: rows as u32,
                half: 0,
                reserved: 0,
            }
        })
        .collect();
    Ok(Connected { of_rank, _channels: channels })
}
