//! Two processes and one piece of memory: `cargo run --example share_memory`.
//!
//! The program starts itself again as a second process and sends it a handle of a buffer. The second process maps the memory
//! and doubles what is in it; the first reads that in its own buffer. `--device cpu` or `--device cuda` chooses where the
//! memory is, `WARPWIRE_HANDLE_TYPE` (auto, fabric, fd, ipc) by what kind of handle it is shared.

use std::error::Error;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::{env, process};

use warpwire::device::{Device, DeviceSelector};
use warpwire::memory::{HandleChoice, Shareable, SharedHandle};

/// What the second process is started with.
const PEER: &str = "--peer";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let is_peer = arguments.iter().any(|argument| argument == PEER);
    let selector = match arguments.iter().position(|argument| argument == "--device") {
        Some(at) => arguments.get(at + 1).ok_or("--device takes cpu, cuda, cuda:N or auto")?.parse()?,
        None => DeviceSelector::Auto,
    };
    let device = Device::open(selector)?;
    if is_peer { peer(&device) } else { owner(&device, &selector.to_string()) }
}

/// Shares a buffer, and shows what the other process has made of it.
fn owner(device: &Device, selector: &str) -> Result<(), Box<dyn Error>> {
    let buffer = device.allocate_shareable::<u32>(8)?;
    buffer.write(&[1, 2, 3, 4, 5, 6, 7, 8])?;
    let shareable = Shareable::of(&buffer, HandleChoice::Auto)?;
    println!(
        "process {}: {} shared by {}, on {}: {:?}",
        process::id(),
        buffer.kind(),
        shareable.handle().kinds(),
        device.properties().name,
        buffer.read()?
    );

    let mut peer =
        Command::new(env::current_exe()?).args([PEER, "--device", selector]).stdin(Stdio::piped()).spawn()?;
    // Any way of sending bytes will do. Whoever reads them can map the memory.
    let mut pipe = peer.stdin.take().ok_or("the pipe is gone")?;
    pipe.write_all(&shareable.handle().to_bytes()?)?;
    drop(pipe);
    if !peer.wait()?.success() {
        return Err("the second process failed".into());
    }

    let seen = buffer.read()?;
    println!("process {}: it now holds {seen:?}", process::id());
    if seen != [2, 4, 6, 8, 10, 12, 14, 16] {
        return Err("that is not what the second process wrote".into());
    }
    Ok(())
}

/// Maps what the handle on standard input is of, and doubles it.
fn peer(device: &Device) -> Result<(), Box<dyn Error>> {
    let mut message = Vec::new();
    io::stdin().read_to_end(&mut message)?;
    let shared = SharedHandle::from_bytes(&message)?.open::<u32>(device)?;
    let values = shared.read()?;
    println!("process {}: mapped {values:?}, doubling", process::id());
    shared.write(&values.iter().map(|value| 2 * value).collect::<Vec<_>>())?;
    Ok(())
}
