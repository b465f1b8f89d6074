//! Aborts, drops, and ranks that are gone.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use warpwire::abi::{Rank, WaitError};
use warpwire::bootstrap::Tag;
use warpwire::communicator::Communicator;
use warpwire::error::ConnectionError;
use warpwire::{Error, ErrorKind};

use crate::exercises::{launch_wait, memory};
use crate::jobs::{LONG, channel, connect, device, each, other, with_bootstraps};

fn aborted(error: &Error) {
    assert!(matches!(error, Error::WaitFailed { outcome: WaitError::Aborted, .. }), "{error}");
}

#[test]
fn an_abort_ends_kernels_calls_and_connections() {
    each(2, |communicator| {
        let peer = other(&communicator);
        let connection = connect(&communicator, peer);
        let channel = channel(&communicator, &connection, 3);
        if communicator.rank() == Rank(1) {
            // Waits for a rank that aborts, by whatever it has asked of it.
            let error = communicator.recv_memory(peer, Tag(8)).unwrap().wait(LONG).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PeerLost);
            assert!(error.to_string().contains("rank 0 was aborted"), "{error}");
            return;
        }
        let stream = communicator.context().stream().unwrap();
        launch_wait(&communicator, &stream, &channel.base_handle().semaphore, LONG);
        thread::scope(|scope| {
            let (communicator, mut pending) =
                (&communicator, communicator.recv_memory(peer, Tag(9)).unwrap());
            let waiting = scope.spawn(move || pending.wait(LONG).unwrap_err());
            communicator.abort();
            let error = waiting.join().unwrap();
            assert_eq!(error.kind(), ErrorKind::Aborted, "{error}");
        });
        aborted(&stream.synchronize().unwrap_err());
        let error = connection.flush(LONG).unwrap_err();
        assert!(matches!(error, Error::Connection(ConnectionError::Closed { peer: Rank(1), .. })), "{error}");
        assert_eq!(communicator.barrier().unwrap_err().kind(), ErrorKind::Aborted);
        let kept = memory(&communicator, 1, 0);
        assert_eq!(communicator.send_memory(&kept, peer, Tag(1)).unwrap_err().kind(), ErrorKind::Aborted);
    });
}

/// The channel lives on; the kernels that wait do not.
#[test]
fn the_drop_of_the_last_communicator_ends_kernels_that_wait() {
    each(2, |communicator| {
        let channel = channel(&communicator, &connect(&communicator, other(&communicator)), 3);
        let stream = communicator.context().stream().unwrap();
        let plain = communicator.device().stream().unwrap();
        communicator.context().watch(&plain);
        let clone = communicator.clone();
        launch_wait(&communicator, &stream, &channel.base_handle().semaphore, LONG);
        launch_wait(&communicator, &plain, &channel.base_handle().semaphore, LONG);
        communicator.barrier().unwrap();
        drop(communicator);
        assert!(!stream.is_idle().unwrap(), "a clone is left");
        drop(clone);
        aborted(&stream.synchronize().unwrap_err());
        aborted(&plain.synchronize().unwrap_err());
    });
}

/// A stream that is not watched is nobody's business.
#[test]
fn other_streams_are_left_alone() {
    each(2, |communicator| {
        let channel = channel(&communicator, &connect(&communicator, other(&communicator)), 3);
        let stream = communicator.device().stream().unwrap();
        launch_wait(&communicator, &stream, &channel.base_handle().semaphore, Duration::from_millis(50));
        communicator.abort();
        let error = stream.synchronize().unwrap_err();
        assert!(matches!(error, Error::WaitFailed { outcome: WaitError::Timeout, .. }), "{error}");
    });
}

#[test]
fn a_rank_that_is_gone_before_the_communicator_is_made_is_named() {
    let errors = with_bootstraps(&["here"; 3], |bootstrap| {
        if bootstrap.rank() == Rank(2) {
            return None;
        }
        Some(Communicator::new(Arc::clone(&bootstrap), &device()).unwrap_err())
    });
    for error in errors.into_iter().flatten() {
        assert_eq!(error.kind(), ErrorKind::PeerLost, "{error}");
        assert!(error.to_string().contains("rank 2 has left"), "{error}");
    }
}
