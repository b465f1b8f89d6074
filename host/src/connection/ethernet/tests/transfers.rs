//! What is asked for arrives: whole, in order, and is complete when it is said to be.

use super::super::frame::PIECE_BYTES;
use super::*;
use crate::connection::contract;

#[test]
fn it_does_what_a_connection_has_to() {
    let device = cpu();
    for ip in ["127.0.0.1", "::1"] {
        let [connection, _other] = pair_at(&device, ip.parse::<std::net::IpAddr>().unwrap());
        assert_eq!((connection.transport(), connection.peer()), (Transport::Ethernet, Rank(1)));
        contract::writes_and_updates_arrive_in_order(&device, &connection);
        contract::an_update_comes_behind_the_writes_before_it(&device, &connection);
        contract::memories_are_kept_until_their_work_is_complete(&device, &connection);
    }
}

#[test]
fn lengths_about_a_frames_arrive_whole() {
    let device = cpu();
    let [connection, _other] = pair(&device);
    let room = 3 * PIECE_BYTES + 100;
    let (from, to) = (device.allocate::<u8>(room).unwrap(), device.allocate::<u8>(room).unwrap());
    let (source, target) = (own(&from), own(&to));
    let there = told(&device, &target);
    let pieces = PIECE_BYTES as u64;
    for (round, bytes) in [1, pieces - 1, pieces, pieces + 1, 2 * pieces - 1, 2 * pieces, 3 * pieces + 13]
        .into_iter()
        .enumerate()
    {
        let content = pattern(room, round as u64);
        from.write(&content).unwrap();
        to.fill_bytes(0xEE).unwrap();
        connection.write(&there, 51, &source, 7, bytes).unwrap();
        connection.flush(LONG).unwrap();
        let mut expected = vec![0xEE; room];
        expected[51..51 + bytes as usize].copy_from_slice(&content[7..7 + bytes as usize]);
        assert!(to.read().unwrap() == expected, "{bytes} bytes");
    }
}

/// Both ends of several connections send more than any socket holds, at once: neither waits for the other to stop sending.
#[test]
fn both_ends_of_several_connections_send_at_once() {
    const BYTES: usize = (16 << 20) + 5;
    let device = cpu();
    let pairs: Vec<_> = (0..3).map(|_| pair(&device)).collect();
    thread::scope(|scope| {
        for (number, connection) in pairs.iter().flatten().enumerate() {
            let device = &device;
            scope.spawn(move || {
                let (from, to) = (device.allocate(BYTES).unwrap(), device.allocate::<u8>(BYTES).unwrap());
                let (source, target) = (own(&from), own(&to));
                let content = pattern(BYTES, number as u64);
                from.write(&content).unwrap();
                connection.write(&told(device, &target), 0, &source, 0, BYTES as u64).unwrap();
                connection.flush(LONG).unwrap();
                assert!(to.read().unwrap() == content, "connection {number}");
            });
        }
    });
}

#[test]
fn many_threads_share_one_connection() {
    let device = cpu();
    let [connection, _other] = pair(&device);
    let (from, to) = (device.allocate::<u64>(8 * 500).unwrap(), device.allocate::<u64>(8 * 500).unwrap());
    let content: Vec<u64> = (0..4000).map(|i| i * i).collect();
    from.write(&content).unwrap();
    let (source, target) = (own(&from), own(&to));
    let there = told(&device, &target);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (connection, source, there) = (&connection, &source, &there);
            scope.spawn(move || {
                for element in 500 * thread..500 * (thread + 1) {
                    connection.write(there, 8 * element, source, 8 * element, 8).unwrap();
                }
                connection.flush(LONG).unwrap();
            });
        }
    });
    assert_eq!(to.read().unwrap(), content);
}

#[test]
fn more_than_four_gib_is_so_many_frames() {
    let buffer = cpu().allocate::<u8>(1).unwrap();
    let source = Arc::clone(own(&buffer).region().unwrap());
    let target = Target { slot: 0, generation: 0, offset: 0 };
    let write = |bytes| Request::Write { target, source: Arc::clone(&source), offset: 0, bytes };
    assert_eq!(write((5 << 30) + 1).frames(), 5 * 4096 + 1);
    assert_eq!(write(1).frames(), 1);
    assert_eq!(write(u64::MAX).frames(), u64::MAX.div_ceil(PIECE_BYTES as u64));
}
