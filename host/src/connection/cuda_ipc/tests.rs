//! One connection in one process, by both ways of setting words.

use super::*;
use crate::connection::{Connection, contract};
use crate::device::{Buffer, DeviceSelector};
use crate::memory::{RegisteredMemory, Transports};

const LONG: Duration = Duration::from_secs(60);

fn cpu() -> Device {
    Device::open(DeviceSelector::Cpu).unwrap()
}

/// A connection to rank 3, whose words are written by the stream, and one whose words are copied.
fn both(device: &Device) -> [Connection; 2] {
    [Queue::new(device).unwrap(), Queue::copying(device).unwrap()]
        .map(|queue| Connection::over(Arc::new(CudaIpcLink::over(queue, Rank(3)))))
}

fn memory<T: warpwire_device::abi::Pod>(buffer: &Buffer<T>) -> RegisteredMemory {
    RegisteredMemory::of(buffer, Transports::CUDA_IPC).unwrap()
}

#[test]
fn each_does_what_a_connection_has_to() {
    let device = cpu();
    for connection in both(&device) {
        contract::writes_and_updates_arrive_in_order(&device, &connection);
        contract::an_update_comes_behind_the_writes_before_it(&device, &connection);
        contract::memories_are_kept_until_their_work_is_complete(&device, &connection);
    }
}

#[test]
fn more_words_than_are_staged_and_no_flush_between() {
    let device = cpu();
    for connection in both(&device) {
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
    let connection = Connection::over(Arc::new(CudaIpcLink::new(&device, Rank(3)).unwrap()));
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
    for connection in both(&device) {
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
        closed(connection.mark().unwrap_err());
        closed(connection.is_complete(mark).unwrap_err());
        closed(connection.flush(LONG).unwrap_err());
    }
}
