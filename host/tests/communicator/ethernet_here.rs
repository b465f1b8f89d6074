//! Ranks connected by TCP, in threads of one process.

use std::time::Instant;

use warpwire::abi::Rank;
use warpwire::bootstrap::Tag;
use warpwire::connection::EndpointConfig;
use warpwire::error::ConnectionError;

use crate::ethernet::{ETHERNET, Inbox, exchange};
use crate::exercises::{the_host_signals_the_peers_kernel, written_pieces_arrive_in_order};
use crate::jobs::{LONG, connect_by, connection_failure, each, on_hosts, other};

#[test]
fn ranks_of_one_process_exchange_by_tcp() {
    each(2, |communicator| exchange(&communicator, 300_007));
    each(2, |communicator| the_host_signals_the_peers_kernel(&communicator, ETHERNET));
    each(2, |communicator| written_pieces_arrive_in_order(&communicator, ETHERNET));
    // Where CudaIpc does not reach.
    on_hosts(&["one", "two"], |communicator| written_pieces_arrive_in_order(&communicator, ETHERNET));
}

#[test]
fn ends_of_two_transports_do_not_meet() {
    each(2, |communicator| {
        let config = if communicator.rank() == Rank(0) { ETHERNET } else { EndpointConfig::CudaIpc };
        let peer = other(&communicator);
        let error = connection_failure(communicator.connect(config, peer, Tag(1)).unwrap().wait(LONG));
        let text = error.to_string();
        assert!(matches!(error, ConnectionError::Mismatch { .. }), "{text}");
        assert!(text.contains("Ethernet") && text.contains("CudaIpc"), "{text}");
        communicator.barrier().unwrap();
    });
}

#[test]
fn an_abort_closes_the_connection_on_both_ends() {
    each(2, |communicator| {
        let peer = other(&communicator);
        let connection = connect_by(&communicator, ETHERNET, peer);
        let inbox = Inbox::new(&communicator, peer, 8, 2);
        connection.update(&inbox.theirs, 0, 1).unwrap();
        connection.flush(LONG).unwrap();
        communicator.barrier().unwrap();
        if communicator.rank() == Rank(0) {
            communicator.abort();
        }
        let begun = Instant::now();
        let error = loop {
            if let Err(error) = connection.update(&inbox.theirs, 0, 1) {
                break error.to_string();
            }
            assert!(begun.elapsed() < LONG, "it never ends");
        };
        let expected = if communicator.rank() == Rank(0) {
            "to rank 1 was closed by this rank"
        } else {
            "to rank 0 has failed: it has closed its end"
        };
        assert!(error.contains(expected), "{error}");
    });
}
