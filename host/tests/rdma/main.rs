//! InfiniBand connections between processes, on whatever RDMA adapter there is. `cargo xtask test-rdma` runs them on a software
//! adapter in virtual machines: in one, or each rank in a machine of its own.
#![cfg(feature = "ib")]

mod faults;
mod ports;
mod ranks;
mod set_up;
mod signals;
mod transfers;

#[path = "../support/process.rs"]
mod process;

use ranks::Rank;

/// What a rank of a test does.
type Part = fn(&Rank);

/// The parts of all tests, by name.
const PARTS: &[(&str, Part)] = &[
    ("puts_and_signals", signals::puts_and_signals),
    ("several_words", signals::several_words),
    ("words_across_the_wrap", signals::words_across_the_wrap),
    ("semaphores", signals::semaphores),
    ("sizes", transfers::sizes),
    ("flush", transfers::flush),
    ("shallow_queue", transfers::shallow_queue),
    ("channels_at_once", transfers::channels_at_once),
    ("late", set_up::late),
    ("many_connections", set_up::many_connections),
    ("differences", set_up::differences),
    ("unregistered", set_up::unregistered),
    ("gather", ports::gather),
    ("gather_of_four", ports::gather),
    ("peer_killed", faults::peer_killed),
    ("key_revoked", faults::key_revoked),
    ("peer_stopped", faults::peer_stopped),
    ("link_down", faults::link_down),
    ("closed", faults::closed),
];

/// A rank of another test, where this program was started as one; nothing by itself.
#[test]
fn child() {
    ranks::play();
}
