//! What the feature `ib` links with.
//!
//! The crate `ibverbs` asks the linker for `-libverbs`. This crate takes the types and the inline functions from there and
//! looks the library's functions up at run time, so that a program starts on machines without the library. Where the linker
//! would find none either, an empty archive of that name stands in for it: nothing is called through it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// An archive without members (`ar(5)`).
const EMPTY_ARCHIVE: &[u8] = b"!<arch>\n";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_IB").is_none() {
        return Ok(());
    }
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    let out = Path::new(&out);
    if !linker_finds_verbs(out) {
        fs::write(out.join("libibverbs.a"), EMPTY_ARCHIVE)?;
        println!("cargo::rustc-link-search=native={}", out.display());
    }
    Ok(())
}

/// Whether `-libverbs` can be linked with as the system is.
fn linker_finds_verbs(out: &Path) -> bool {
    let mut command = Command::new("cc");
    command.args(["-shared", "-nostdlib", "-o"]).arg(out.join("probe.so")).arg("-libverbs");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
