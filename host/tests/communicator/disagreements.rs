//! Ranks that do not ask for the same, and what is no rank's to ask for.

use warpwire::abi::Rank;
use warpwire::bootstrap::{Colour, Tag};
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::error::{CommunicatorError, ConnectionError};
use warpwire::memory::{RegisteredMemory, Transports};
use warpwire::{Error, MemoryError};

use crate::exercises::memory;
use crate::jobs::{LONG, cause, connection_failure, device, each, failure, on_hosts, other, with_bootstraps};

#[test]
fn a_tag_used_for_two_things_is_an_error_on_both_ranks() {
    each(2, |communicator| {
        let peer = other(&communicator);
        let outcome = if communicator.rank() == Rank(0) {
            communicator.send_memory(&memory(&communicator, 1, 0), peer, Tag(4)).unwrap();
            cause(communicator.recv_memory(peer, Tag(4)).unwrap().wait(LONG))
        } else {
            cause(communicator.connect(EndpointConfig::CudaIpc, peer, Tag(4)).unwrap().wait(LONG))
        };
        let text = outcome.to_string();
        assert!(matches!(outcome, Error::Communicator(CommunicatorError::TagMisused { .. })), "{text}");
        assert!(text.contains("an end of a connection") && text.contains("registered memory"), "{text}");
        assert!(text.contains(&format!("rank {} sent", peer.0)), "{text}");
        communicator.barrier().unwrap();
    });
}

#[test]
fn ranks_on_other_hosts_are_refused_by_name() {
    on_hosts(&["a", "b"], |communicator| {
        let peer = other(&communicator);
        let error = connection_failure(
            communicator.connect(EndpointConfig::CudaIpc, peer, Tag(1)).unwrap().wait(LONG),
        );
        let text = error.to_string();
        assert!(matches!(error, ConnectionError::Unreachable { .. }), "{text}");
        assert!(text.contains("choose Ethernet or InfiniBand"), "{text}");
        let hosts = [0, 1].map(|rank| communicator.site(Rank(rank)).unwrap().host);
        assert!(hosts.iter().all(|host| text.contains(&host.to_string())), "{text}");
        communicator.barrier().unwrap();
    });
}

/// What a peer sends is looked at before it is believed: here rank 1 sends rank 0's own message back, changed.
#[test]
fn messages_that_cannot_be_are_refused_and_name_their_sender() {
    type Change = fn(&mut Vec<u8>);
    let changes: [(Change, &str); 6] = [
        // The first byte of the body is the transport's number.
        (|bytes| bytes[8] = 2, "asked for with the transport CudaIpc here and Ethernet there"),
        (|bytes| bytes[8] = 99, "bytes that are not an end of a connection"),
        (|bytes| bytes.truncate(bytes.len() - 1), "bytes that are not an end of a connection"),
        (|bytes| bytes.push(0), "there are more than the message needs"),
        (
            |bytes| bytes[4] = 7,
            "rank 1 speaks version 7 of the communicator's protocol and this rank version 1",
        ),
        (|bytes| bytes[0] = b'X', "they do not begin with"),
    ];
    each(2, |communicator| {
        let peer = other(&communicator);
        for (change, expected) in changes {
            if communicator.rank() == Rank(0) {
                let mut pending = communicator.connect(EndpointConfig::CudaIpc, peer, Tag(1)).unwrap();
                let text = pending.wait(LONG).unwrap_err().to_string();
                assert!(text.starts_with("connecting with rank 1 on tag 1: "), "{text}");
                assert!(text.contains(expected), "{text}");
            } else {
                let mut message = communicator.bootstrap().recv(peer, Tag(1)).unwrap();
                change(&mut message);
                communicator.bootstrap().send(peer, Tag(1), &message).unwrap();
            }
        }
        communicator.barrier().unwrap();
    });
}

/// C58: every rank gets the same typed error, with both values, before any kernel.
#[test]
fn values_that_differ_are_named_on_every_rank() {
    each(3, |communicator| {
        communicator.agree("the offset", 256).unwrap();
        let offset = if communicator.rank() == Rank(2) { 256 } else { 0 };
        let error = failure(communicator.agree("the offset", offset));
        let expected = "the offset has to be the same on all ranks: rank 0 gave 0 and rank 2 gave 256";
        assert_eq!(error.to_string(), expected);

        let words = if communicator.rank() == Rank(1) { 30 } else { 31 };
        let error =
            failure(communicator.all_gather_memory(&memory(&communicator, words, 0)).map(drop)).to_string();
        assert!(error.contains("rank 0 gave 248 and rank 1 gave 240"), "{error}");

        // And the group is none the worse for it.
        let own = memory(&communicator, 4, u64::from(communicator.rank().0));
        let all = communicator.all_gather_memory(&own).unwrap();
        assert_eq!(all.iter().map(RegisteredMemory::bytes).collect::<Vec<_>>(), [32; 3]);
        communicator.barrier().unwrap();
    });
}

/// C76: a rank of another version is named on every rank, with both numbers; also to the one that has it.
#[test]
fn ranks_of_two_versions_do_not_start() {
    let errors = with_bootstraps(&["here"; 3], |bootstrap| {
        if bootstrap.rank() != Rank(1) {
            return Some(failure(Communicator::new(bootstrap, &device())).to_string());
        }
        // What a rank of version 2 does as well: it greets in a group of its own.
        let group = bootstrap.split(Some(Colour(0)), 0).unwrap().unwrap();
        let _messages = group.split(Some(Colour(0)), 0).unwrap().unwrap();
        let all = group.all_gather(b"WWCX\x02\x00\x01\x00and something else").unwrap();
        assert_eq!(all[0][..8], *b"WWCX\x01\x00\x01\x00");
        None
    });
    for error in errors.into_iter().flatten() {
        assert!(
            error.contains("rank 1 speaks version 2") && error.contains("this rank version 1"),
            "{error}"
        );
    }
}

#[test]
fn what_is_not_the_communicators_is_refused() {
    each(2, |communicator| {
        let nobody = Rank(2);
        for error in [
            communicator.recv_memory(nobody, Tag(0)).map(drop),
            communicator.connect(EndpointConfig::CudaIpc, nobody, Tag(0)).map(drop),
            communicator.send_memory(&memory(&communicator, 1, 0), nobody, Tag(0)),
        ] {
            let error = cause(error);
            assert!(matches!(error, Error::NoSuchRank { rank: Rank(2), ranks: 2 }), "{error}");
        }
        let foreign = device().allocate_shareable::<u8>(1).unwrap();
        let error = communicator.register_memory(&foreign, Transports::CUDA_IPC).unwrap_err();
        assert!(matches!(error, Error::ForeignObject { what: "buffer" }), "{error}");
        let private = communicator.device().allocate::<u8>(1).unwrap();
        let error = communicator.register_memory(&private, Transports::CUDA_IPC).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::NotShareable { .. })), "{error}");
        communicator.barrier().unwrap();
    });
}
