//! Communicators: ranks as threads of one process, and ranks as processes.

#[path = "../support/process.rs"]
mod process;

mod all_reduce;
mod channels;
mod exchange;
mod failures;
mod jobs;
mod lending;
mod ports;
mod processes;

/// What the children of this program do: see `processes`.
#[test]
fn child() {
    if let Some(role) = process::role() {
        processes::play(&role);
    }
}
