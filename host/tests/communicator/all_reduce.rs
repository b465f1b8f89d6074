//! All-reduce among ranks that only a communicator joins.

use std::time::Duration;

use warpwire::abi::{Rank, WaitKind};
use warpwire::collective::{AllReduce, Operands};
use warpwire::communicator::Communicator;
use warpwire::error::CommunicatorError;
use warpwire::{Error, ErrorKind};

use crate::exercises::{every_element_is_the_sum, round};
use crate::jobs::{LONG, device, each, failure, with_bootstraps};

#[test]
fn ranks_with_devices_of_their_own() {
    for size in [2, 3, 5] {
        each(size, |communicator| every_element_is_the_sum(&communicator));
    }
}

#[test]
fn ranks_that_share_a_device() {
    let shared = device();
    with_bootstraps(&["here"; 3], |bootstrap| {
        let communicator = Communicator::new(bootstrap, &shared).unwrap();
        every_element_is_the_sum(&communicator);
        let group = AllReduce::across(&communicator, 100).unwrap();
        let (stream, at) = (communicator.context().stream().unwrap(), shared.allocate::<f32>(100).unwrap());
        let operands = Operands { input: at.address(), output: at.address(), count: 100 };
        let (_, config, args) = group.launch_of(communicator.rank(), &stream, operands, LONG).unwrap();
        assert_eq!((config.concurrent, config.elsewhere, args.ranks), (3, 0, 3));
        // The others are not this process' to launch.
        let other = Rank((communicator.rank().0 + 1) % 3);
        let error = group.launch_of(other, &stream, operands, LONG).unwrap_err();
        assert!(matches!(error, Error::NoSuchRank { ranks: 3, .. }), "{error}");
        communicator.barrier().unwrap();
    });
}

/// C58: every rank is told, with both values, and nothing was launched.
#[test]
fn ranks_that_ask_for_different_sizes_are_told() {
    each(3, |communicator| {
        let size = if communicator.rank() == Rank(1) { 2000 } else { 1000 };
        let error = failure(AllReduce::across(&communicator, size).map(drop));
        let text = error.to_string();
        assert!(
            matches!(
                error,
                CommunicatorError::Disagreement {
                    first: Rank(0),
                    first_value: 1000,
                    other: Rank(1),
                    other_value: 2000,
                    ..
                }
            ),
            "{text}"
        );
        assert!(text.contains("the largest number of elements"), "{text}");
        // The next one is right.
        let group = AllReduce::across(&communicator, 1000).unwrap();
        round(&communicator, &group, 999, 1, false);
        communicator.barrier().unwrap();
    });
}

/// A rank that fails by itself does not keep the others waiting.
#[test]
fn a_rank_that_cannot_take_part_is_named() {
    each(3, |communicator| {
        let error = if communicator.rank() == Rank(2) {
            AllReduce::across(&communicator, 0).unwrap_err()
        } else {
            AllReduce::across(&communicator, 100).unwrap_err()
        };
        let text = error.to_string();
        if communicator.rank() == Rank(2) {
            assert!(matches!(error, Error::TooManyElements { count: 0, .. }), "{text}");
        } else {
            assert!(
                matches!(error, Error::Communicator(CommunicatorError::PeerFailed { peer: Rank(2), .. })),
                "{text}"
            );
            assert!(text.starts_with("setting up an all-reduce: rank 2 failed: "), "{text}");
        }
        communicator.barrier().unwrap();
    });
    each(1, |communicator| {
        let error = AllReduce::across(&communicator, 100).unwrap_err();
        assert!(matches!(error, Error::RankCount { ranks: 1, least: 2, .. }), "{error}");
    });
}

#[test]
fn a_missing_rank_is_reported_and_the_next_round_is_right() {
    each(3, |communicator| {
        let mut group = AllReduce::across(&communicator, 100).unwrap();
        round(&communicator, &group, 100, 0, false);
        if communicator.rank() != Rank(1) {
            let (own, buffer) = (communicator.rank(), communicator.device().allocate::<f32>(50).unwrap());
            let stream = communicator.context().stream().unwrap();
            let operands = Operands { input: buffer.address(), output: buffer.address(), count: 50 };
            // SAFETY: the buffer lives until the stream is synchronized.
            unsafe { group.enqueue(own, &stream, operands, Duration::from_millis(50)) }.unwrap();
            let error = stream.synchronize().unwrap_err();
            assert!(
                matches!(error, Error::WaitFailed { kind: WaitKind::Packet, peer: Rank(1), .. }),
                "{error}"
            );
            assert_eq!(error.kind(), ErrorKind::Timeout);
        }
        group.reset().unwrap();
        round(&communicator, &group, 100, 2, false);
        communicator.barrier().unwrap();
    });
}
