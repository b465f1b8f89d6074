//! `peer_access_check`: whether every GPU of this machine reaches every other's memory.
//!
//! Exit status 0: all do (a single GPU has no peer to miss). 1: some do not, and the matrix shows which. 2: CUDA could not
//! start, so nothing is known of peers; the driver's error and a hint are on standard error.

use std::process::ExitCode;

use warpwire::memory::PeerAccess;

fn main() -> ExitCode {
    match PeerAccess::check() {
        Ok(peers) => {
            println!("{peers}");
            if peers.is_complete() {
                println!("every GPU reaches every other ({} of them)", peers.devices());
                return ExitCode::SUCCESS;
            }
            println!(
                "NO: not reached. Such pairs cannot map each other's memory: see nvidia-smi topo -p2p r"
            );
            ExitCode::from(1)
        }
        Err(error) => {
            eprintln!("CUDA could not start: {error}");
            ExitCode::from(2)
        }
    }
}
