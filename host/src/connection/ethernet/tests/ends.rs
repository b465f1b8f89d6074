//! Back-pressure, completion, and how connections end.

use std::io::{Read, Write};

use super::super::frame;
use super::*;

#[test]
fn nothing_is_complete_before_the_peer_says_so() {
    let device = cpu();
    let (connection, mut theirs) = played(&device, LONG);
    let (_buffer, _registered, there) = word(&device);
    let before = connection.mark().unwrap();
    assert!(connection.is_complete(before).unwrap());
    let marks = [1, 2, 3].map(|value| {
        connection.update(&there, 0, value).unwrap();
        connection.mark().unwrap()
    });
    theirs.read_exact(&mut [0; 3 * frame::UPDATE_BYTES]).unwrap();
    assert!(!connection.is_complete(marks[0]).unwrap(), "sent, and no more");
    let short = connection.flush(Duration::from_millis(20)).unwrap_err();
    assert!(matches!(short, Error::Connection(ConnectionError::Timeout { peer: Rank(3), .. })), "{short}");
    theirs.write_all(&frame::acknowledge(2)).unwrap();
    eventually("two are complete", || connection.is_complete(marks[1]).unwrap());
    assert!(!connection.is_complete(marks[2]).unwrap());
    theirs.write_all(&frame::acknowledge(3)).unwrap();
    connection.flush(LONG).unwrap();
}

#[test]
fn a_caller_with_too_much_waits_for_room_and_not_for_ever() {
    let device = cpu();
    let (connection, mut theirs) = played(&device, Duration::from_millis(50));
    let (_buffer, _registered, there) = word(&device);
    let mut taken = 0;
    let full = loop {
        match connection.update(&there, 0, taken + 1) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 100_000, "the queue is endless");
    };
    assert!(matches!(full, Error::Connection(ConnectionError::Timeout { peer: Rank(3), .. })), "{full}");
    assert_eq!(taken, 1024);
    // With room again it goes on, and what was not taken was not sent.
    theirs.write_all(&frame::acknowledge(1)).unwrap();
    eventually("there is room", || connection.update(&there, 0, 5000).is_ok());
    let mut sent = vec![0; 1025 * frame::UPDATE_BYTES];
    theirs.read_exact(&mut sent).unwrap();
    let values: Vec<u64> = sent
        .chunks(frame::UPDATE_BYTES)
        .map(|frame| u64::from_le_bytes(frame[frame.len() - 8..].try_into().unwrap()))
        .collect();
    assert_eq!(values, (1..=1024).chain([5000]).collect::<Vec<u64>>());
}

#[test]
fn a_caller_that_waits_for_room_hears_of_the_end() {
    let device = cpu();
    let (_buffer, _registered, there) = word(&device);
    for closed in [true, false] {
        let (connection, theirs) = played(&device, LONG);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                loop {
                    if let Err(error) = connection.update(&there, 0, 1) {
                        break error.to_string();
                    }
                }
            });
            eventually("the queue is full", || connection.mark().is_ok_and(|Mark(queued)| queued == 1024));
            if closed {
                connection.close();
            } else {
                drop(theirs);
            }
            let error = waiting.join().unwrap();
            let expected = if closed { "was closed by this rank" } else { "has failed" };
            assert!(error.contains("rank 3") && error.contains(expected), "{error}");
        });
    }
}

#[test]
fn an_end_that_closes_is_no_fault_where_nothing_is_on_its_way() {
    let device = cpu();
    let (buffer, _registered, there) = word(&device);
    for round in 0..50 {
        let [first, second] = pair(&device);
        first.update(&there, 0, round + 1).unwrap();
        let mark = first.mark().unwrap();
        // The second sees the update, and goes at once.
        eventually("the update is there", || buffer.read().unwrap()[0] == round + 1);
        drop(second);
        first.flush(LONG).unwrap();
        assert!(first.is_complete(mark).unwrap());
        eventually("the end is known", || first.update(&there, 0, round + 1).is_err());
        let error = text(first.flush(LONG).and(first.update(&there, 0, 0)));
        assert!(error.contains("rank 1 has failed: it has closed its end"), "{error}");
    }
}

#[test]
fn what_is_on_its_way_when_the_peer_goes_has_failed() {
    let device = cpu();
    let (_buffer, _registered, there) = word(&device);
    let (connection, mut theirs) = played(&device, LONG);
    connection.update(&there, 0, 1).unwrap();
    let mark = connection.mark().unwrap();
    theirs.read_exact(&mut [0; frame::UPDATE_BYTES]).unwrap();
    theirs.write_all(&frame::bye()).unwrap();
    let error = text(connection.flush(LONG));
    assert!(error.contains("rank 3 has failed: it has closed its end"), "{error}");
    for error in
        [text(connection.is_complete(mark)), text(connection.mark()), text(connection.update(&there, 0, 2))]
    {
        assert!(error.contains("rank 3 has failed"), "{error}");
    }
}

#[test]
fn memory_that_its_owner_gave_up_is_not_written() {
    let device = cpu();
    let [first, second] = pair(&device);
    let (buffer, registered, there) = word(&device);
    first.update(&there, 0, 1).unwrap();
    first.flush(LONG).unwrap();
    drop(registered);
    // Another may have its place now.
    let _next = own(&buffer);
    first.update(&there, 0, 2).unwrap();
    let error = text(first.flush(LONG));
    assert!(error.contains("rank 1 has failed") && error.contains("not registered any more"), "{error}");
    let error = text(second.flush(LONG));
    assert!(error.contains("rank 0 has failed: it named memory that is not registered"), "{error}");
    assert_eq!(buffer.read().unwrap(), [1]);
}

#[test]
fn memory_that_the_connection_cannot_use_is_refused_before_anything_is_queued() {
    let device = cpu();
    let (connection, _theirs) = played(&device, LONG);
    let (buffer, registered, there) = word(&device);
    let mapped = RegisteredMemory::of(&buffer, Transports::empty()).unwrap();
    // As another process would have registered it.
    let mut bytes = registered.serialize().unwrap();
    let process = process_id().unwrap();
    let at = bytes.windows(16).position(|window| window == process).unwrap();
    bytes[at] ^= 1;
    let checked = [&bytes[..12], &bytes[16..]].concat();
    let checksum = crc32fast::hash(&checked).to_le_bytes();
    bytes[12..16].copy_from_slice(&checksum);
    let foreign = RegisteredMemory::deserialize(&device, &bytes).unwrap();
    for (error, parts) in [
        (text(connection.write(&there, 0, &mapped, 0, 8)), ["the source", "registered for Ethernet"]),
        (text(connection.write(&there, 0, &there, 0, 8)), ["the source", "this process' own"]),
        (
            text(connection.write(&mapped, 0, &registered, 0, 8)),
            ["the destination", "registered it for Ethernet"],
        ),
        (text(connection.update(&mapped, 0, 1)), ["the destination", "registered it for Ethernet"]),
        (text(connection.update(&foreign, 0, 1)), ["the destination", "not the memory of that rank"]),
        (text(connection.update(&there, 1, 1)), ["outside", "8 bytes"]),
    ] {
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    assert_eq!(connection.mark().unwrap(), Mark(0));
}

#[test]
fn a_closed_connection_refuses_everything() {
    let device = cpu();
    let (_buffer, registered, there) = word(&device);
    let [connection, _other] = pair(&device);
    connection.update(&there, 0, 5).unwrap();
    let mark = connection.mark().unwrap();
    connection.clone().close();
    connection.close();
    for error in [
        text(connection.update(&there, 0, 6)),
        text(connection.write(&there, 0, &registered, 0, 8)),
        text(connection.mark()),
        text(connection.is_complete(mark)),
        text(connection.flush(LONG)),
    ] {
        assert!(error.contains("the Ethernet connection to rank 1 was closed by this rank"), "{error}");
    }
}

/// The threads and their sockets go with the connection, also where the peer reads nothing.
#[test]
fn a_connection_that_is_stuck_can_be_closed() {
    let device = cpu();
    let (connection, theirs) = played(&device, LONG);
    let from = device.allocate::<u8>(64 << 20).unwrap();
    let source = own(&from);
    let part = from.memory().0;
    let kept = Arc::strong_count(part);
    connection.write(&told(&device, &source), 0, &source, 0, 64 << 20).unwrap();
    drop(connection);
    assert_eq!(Arc::strong_count(part), kept, "nothing keeps the source");
    drop(theirs);
}
