//! What is asked for arrives: whole, in order, and is complete when it is said to be.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::frame::PIECE_BYTES;
use super::*;

#[test]
fn writes_of_odd_lengths_and_updates_arrive_in_order() {
    let device = cpu();
    for ip in ["127.0.0.1", "::1"] {
        let [connection, _other] = pair_at(&device, ip.parse::<std::net::IpAddr>().unwrap());
        assert_eq!((connection.transport(), connection.peer()), (Transport::Ethernet, Rank(1)));
        let (from, to) = (device.allocate::<u8>(5000).unwrap(), device.allocate::<u8>(5000).unwrap());
        let words = device.allocate::<u64>(2).unwrap();
        let bytes = pattern(5000, 1);
        from.write(&bytes).unwrap();
        let (source, target, word) = (own(&from), own(&to), own(&words));
        let (target_there, word_there) = (told(&device, &target), told(&device, &word));
        let mut expected = vec![0; 5000];
        let mut last = connection.mark().unwrap();
        for (round, (offset, at, len)) in
            [(0, 0, 1), (1, 7, 3), (13, 100, 4096), (4999, 4999, 1), (0, 4000, 999), (5, 5, 0)]
                .into_iter()
                .enumerate()
        {
            connection.write(&target_there, at, &source, offset, len).unwrap();
            connection.update(&word_there, 8, round as u64 + 1).unwrap();
            let mark = connection.mark().unwrap();
            assert!(mark > last, "{mark:?} after {last:?}");
            last = mark;
            let (at, offset, len) = (at as usize, offset as usize, len as usize);
            expected[at..at + len].copy_from_slice(&bytes[offset..offset + len]);
        }
        connection.flush(LONG).unwrap();
        assert!(connection.is_complete(last).unwrap());
        assert_eq!(to.read().unwrap(), expected);
        assert_eq!(words.read().unwrap(), [0, 6]);
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

#[test]
fn whoever_sees_an_update_sees_the_writes_before_it() {
    const ROUNDS: u64 = 2000;
    let device = cpu();
    let [connection, _other] = pair(&device);
    let (from, to) = (device.allocate::<u64>(300).unwrap(), device.allocate::<u64>(300).unwrap());
    let words = device.allocate::<u64>(1).unwrap();
    let (source, target, word) = (own(&from), own(&to), own(&words));
    let (target_there, word_there) = (told(&device, &target), told(&device, &word));
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                from.write(&[round; 300]).unwrap();
                connection.write(&target_there, 0, &source, 0, 2400).unwrap();
                connection.update(&word_there, 0, round).unwrap();
                connection.flush(LONG).unwrap();
            }
        });
        // SAFETY: the word is live and aligned, and touched by atomic accesses alone.
        let seen = unsafe { AtomicU64::from_ptr(words.address().address() as *mut u64) };
        let mut round = 0;
        while round < ROUNDS {
            let now = seen.load(Ordering::Acquire);
            assert!(now >= round, "{now} after {round}");
            if now > round {
                round = now;
                let mut edge = [0];
                to.read_at(299, &mut edge).unwrap();
                assert!(edge[0] >= round, "{edge:?} behind {round}");
            } else {
                thread::yield_now();
            }
        }
    });
    assert_eq!(to.read().unwrap(), [ROUNDS; 300]);
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
fn memories_are_kept_until_their_work_is_complete_and_no_longer() {
    let device = cpu();
    let [connection, _other] = pair(&device);
    let to = device.allocate::<u64>(10).unwrap();
    let target = own(&to);
    let there = told(&device, &target);
    let buffer = device.allocate::<u64>(1000).unwrap();
    buffer.write(&[7; 1000]).unwrap();
    let part = buffer.memory().0;
    let before = Arc::strong_count(part);
    for _ in 0..500 {
        // Each time a registration of its own, dropped at once.
        connection.write(&there, 0, &own(&buffer.part(10, 10).unwrap()), 0, 80).unwrap();
    }
    connection.flush(LONG).unwrap();
    assert_eq!(to.read().unwrap(), [7; 10]);
    // The last ones are let go right behind their acknowledgement.
    eventually("all were let go", || Arc::strong_count(part) == before);
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
