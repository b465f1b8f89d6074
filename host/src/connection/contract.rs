//! What every transport's connection has to do: each transport's tests call these with one of theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use warpwire_device::abi::Pod;

use super::{Connection, Transport};
use crate::device::{Buffer, Device};
use crate::memory::RegisteredMemory;

const LONG: Duration = Duration::from_secs(60);

/// This rank's memory, registered for the connection's transport.
fn own<T: Pod>(connection: &Connection, buffer: &Buffer<T>) -> RegisteredMemory {
    RegisteredMemory::of(buffer, connection.transport().registration()).unwrap()
}

/// The same as the peer's: mapped where the transport maps memory, else as it is told of.
fn theirs<T: Pod>(connection: &Connection, buffer: &Buffer<T>) -> [RegisteredMemory; 2] {
    let registered = own(connection, buffer);
    let told = match connection.transport() {
        Transport::CudaIpc => registered.clone(),
        _ => RegisteredMemory::deserialize(buffer.device(), &registered.serialize().unwrap()).unwrap(),
    };
    // Its owner keeps it registered.
    [registered, told]
}

/// Writes of odd lengths at odd places, each with an update behind it: all arrive, marks rise, and nothing else is touched.
pub(super) fn writes_and_updates_arrive_in_order(device: &Device, connection: &Connection) {
    let allocate = || device.allocate_shareable::<u8>(5000).unwrap();
    let (from, to, words) = (allocate(), allocate(), device.allocate_shareable::<u64>(2).unwrap());
    let bytes: Vec<u8> = (0..5000).map(|i| (i * 7 % 251) as u8).collect();
    from.write(&bytes).unwrap();
    let source = own(connection, &from);
    let ([_to, target], [_words, word]) = (theirs(connection, &to), theirs(connection, &words));
    let mut expected = vec![0; 5000];
    let mut last = connection.mark().unwrap();
    for (round, (offset, at, len)) in
        [(0, 0, 1), (1, 7, 3), (13, 100, 4096), (4999, 4999, 1), (0, 4000, 999), (5, 5, 0)]
            .into_iter()
            .enumerate()
    {
        connection.write(&target, at, &source, offset, len).unwrap();
        connection.update(&word, 8, round as u64 + 1).unwrap();
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

/// Whoever sees an update sees the writes that were asked for before it, or with it.
pub(super) fn an_update_comes_behind_the_writes_before_it(device: &Device, connection: &Connection) {
    const ROUNDS: u64 = 2000;
    let allocate = |len| device.allocate_shareable::<u64>(len).unwrap();
    let (from, to, words) = (allocate(300), allocate(300), allocate(1));
    let source = own(connection, &from);
    let ([_to, target], [_words, word]) = (theirs(connection, &to), theirs(connection, &words));
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                from.write(&[round; 300]).unwrap();
                if round % 2 == 0 {
                    connection.write(&target, 0, &source, 0, 2400).unwrap();
                    connection.update(&word, 0, round).unwrap();
                } else {
                    let places = [(&target, 0), (&source, 0)];
                    connection.write_and_update(places, 2400, (&word, 0), round).unwrap();
                }
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

/// What a write reads stays registered until it is complete, though nobody else keeps it, and no longer.
pub(super) fn memories_are_kept_until_their_work_is_complete(device: &Device, connection: &Connection) {
    let allocate = |len| device.allocate_shareable::<u64>(len).unwrap();
    let (from, to) = (allocate(1000), allocate(10));
    from.write(&[7; 1000]).unwrap();
    let [_to, target] = theirs(connection, &to);
    let memory = from.memory().0;
    let before = Arc::strong_count(memory);
    for _ in 0..500 {
        // Each time a registration of its own, dropped at once.
        connection.write(&target, 0, &own(connection, &from.part(10, 10).unwrap()), 0, 80).unwrap();
    }
    connection.flush(LONG).unwrap();
    assert_eq!(to.read().unwrap(), [7; 10]);
    // A transport may let go of the last ones right behind their acknowledgement.
    let begun = Instant::now();
    while Arc::strong_count(memory) != before {
        assert!(begun.elapsed() < LONG, "not all were let go");
        thread::yield_now();
    }
}
