//! One connection in one process, by each way of setting words and of writing.

use super::*;
use crate::connection::{Connection, contract};
use crate::device::{Buffer, DeviceSelector};
use crate::memory::{RegisteredMemory, Transports};

const LONG: Duration = Duration::from_secs(60);

fn cpu() -> Device {
    Device::open(DeviceSelector::Cpu).unwrap()
}

/// A connection to rank 3, whose words are written by the stream, one whose words are copied, and one whose small writes a
/// kernel makes.
fn all(device: &Device) -> [Connection; 3] {
    [Queue::new, Queue::copying, Queue::delivering]
        .map(|make| Connection::over(Arc::new(CudaIpcLink::over(make(device).unwrap(), Rank(3)))))
}

fn memory<T: warpwire_device::abi::Pod>(buffer: &Buffer<T>) -> RegisteredMemory {
    RegisteredMemory::of(buffer, Transports::CUDA_IPC).unwrap()
}

#[test]
fn each_does_what_a_connection_has_to() {
    let device = cpu();
    for connection in all(&device) {
        contract::writes_and_updates_arrive_in_order(&device, &connection);
        contract::an_update_comes_behind_the_writes_before_it(&device, &connection);
        contract::memories_are_kept_until_their_work_is_complete(&device, &connection);
    }
}

/// Of every length, on both sides of the one from which on it is no longer a kernel that writes, and with others in between.
#[test]
fn a_write_and_its_word_in_one() {
    const LEN: usize = 80_000;
    let device = cpu();
    for connection in all(&device) {
        let (from, to) = (
            device.allocate_shareable::<u8>(LEN).unwrap(),
            device.allocate_shareable::<u8>(2 * LEN).unwrap(),
        );
        let words = device.allocate_shareable::<u64>(3).unwrap();
        let bytes: Vec<u8> = (0..LEN).map(|i| (i * 7 % 251) as u8).collect();
        from.write(&bytes).unwrap();
        let (source, target, word) = (memory(&from), memory(&to), memory(&words));
        let mut last = connection.mark().unwrap();
        for (round, (len, offset, at)) in
            [(1, 3, 0), (65_536, 0, 16), (65_537, 5, 9), (LEN, 0, LEN), (0, 0, 0), (4096, 1, 2)]
                .into_iter()
                .enumerate()
        {
            to.fill_bytes(0xA5).unwrap();
            let places = [(&target, at as u64), (&source, offset as u64)];
            connection.write_and_update(places, len as u64, (&word, 8), round as u64 + 1).unwrap();
            let mark = connection.mark().unwrap();
            assert!(mark > last, "{mark:?} after {last:?}");
            last = mark;
            connection.flush(LONG).unwrap();
            let mut expected = vec![0xA5; 2 * LEN];
            expected[at..at + len].copy_from_slice(&bytes[offset..offset + len]);
            assert!(to.read().unwrap() == expected, "{len} bytes from {offset} to {at}");
            assert_eq!(words.read().unwrap(), [0, round as u64 + 1, 0], "{len} bytes");
        }
    }
}

#[test]
fn more_words_than_are_staged_and_no_flush_between() {
    let device = cpu();
    for connection in all(&device) {
        let words = device.allocate_shareable::<u64>(1).unwrap();
        let word = memory(&words);
        (1..=1000).for_each(|value| connection.update(&word, 0, value).unwrap());
        connection.flush(LONG).unwrap();
        assert_eq!(words.read().unwrap(), [1000]);
    }
}

#[test]
fn what_does_not_fit_or_is_not_mapped_is_refused() {
    let device = cpu();
    let connection = Connection::over(Arc::new(CudaIpcLink::over(Queue::new(&device).unwrap(), Rank(3))));
    // Before it is used there is nothing to wait for.
    let nothing = connection.mark().unwrap();
    assert!(connection.is_complete(nothing).unwrap());
    let buffer = device.allocate_shareable::<u8>(64).unwrap();
    let all = memory(&buffer);
    for (to, from, bytes) in [(0, 1, 64), (60, 0, 5), (u64::MAX, 0, 2), (65, 0, 0)] {
        let error = connection.write(&all, to, &all, from, bytes).unwrap_err();
        assert!(matches!(error, Error::OutsideMemory { .. }), "{error}");
    }
    let error = connection.update(&all, 4, 1).unwrap_err();
    assert!(matches!(error, Error::Misaligned { .. }), "{error}");
    // Of the two in one, neither is done.
    buffer.write(&[7; 64]).unwrap();
    let from = (&all, 0);
    for (to, word) in [(60, 0), (32, 4), (32, 64)] {
        connection.write_and_update([(&all, to), from], 8, (&all, word), 1).unwrap_err();
    }
    connection.flush(LONG).unwrap();
    assert_eq!(buffer.read().unwrap(), [7; 64]);
    let elsewhere = RegisteredMemory::of(&buffer, Transports::ETHERNET).unwrap();
    let elsewhere = RegisteredMemory::deserialize(&device, &elsewhere.serialize().unwrap()).unwrap();
    let error = connection.write(&elsewhere, 0, &all, 0, 8).unwrap_err().to_string();
    assert!(error.contains("CudaIpc connection to rank 3 does not reach"), "{error}");
    connection.write(&all, 0, &all, 32, 32).unwrap();
    connection.flush(LONG).unwrap();
}

#[test]
fn a_closed_connection_refuses_everything() {
    let device = cpu();
    for connection in all(&device) {
        let buffer = device.allocate_shareable::<u64>(1).unwrap();
        let word = memory(&buffer);
        connection.update(&word, 0, 5).unwrap();
        let mark = connection.mark().unwrap();
        connection.clone().close();
        connection.close();
        let closed = |error: Error| {
            assert!(
                matches!(error, Error::Connection(ConnectionError::Closed { peer: Rank(3), .. })),
                "{error}"
            );
        };
        closed(connection.update(&word, 0, 6).unwrap_err());
        closed(connection.write(&word, 0, &word, 0, 8).unwrap_err());
        closed(connection.write_and_update([(&word, 0); 2], 8, (&word, 0), 6).unwrap_err());
        closed(connection.mark().unwrap_err());
        closed(connection.is_complete(mark).unwrap_err());
        closed(connection.flush(LONG).unwrap_err());
    }
}
