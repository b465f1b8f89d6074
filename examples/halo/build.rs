//! Compiles the kernel crate beside this package to PTX and embeds it.

use std::env;
use std::error::Error;

use warpwire_build::Builder;

fn main() -> Result<(), Box<dyn Error>> {
    Builder::new("kernels")
        .or_cpu_only() // where there is no compiler for PTX, the program still runs on the CPU device
        .build()?
        .emit_cargo()
        .embed(env::var("OUT_DIR")?)?;
    Ok(())
}
