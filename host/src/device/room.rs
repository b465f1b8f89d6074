//! Room on a device that kernels which wait have to leave, for the work that they wait for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Device;

/// Who asked for room, and for how many threads each.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    threads: Mutex<Vec<u32>>,
}

impl Reserved {
    /// The most that anybody asked for; 0 where nobody did. Work of several comes one after the other, so one room does for all.
    pub(super) fn threads(&self) -> u32 {
        self.lock().iter().copied().max().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        // Each change is one push or one removal: a panic elsewhere leaves the list whole.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for a block of some threads that is left on a device, until this is dropped, by every launch that waits
/// ([`LaunchConfig::concurrent`](super::LaunchConfig#structfield.concurrent)).
#[derive(Debug)]
pub(crate) struct Room {
    device: Device,
    threads: u32,
}

impl Room {
    /// Room for `threads` threads of 32 registers each, in one multiprocessor, from the next launch on.
    pub(crate) fn on(device: &Device, threads: u32) -> Self {
        device.reserved().lock().push(threads);
        Self { device: device.clone(), threads }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut all = self.device.reserved().lock();
        if let Some(index) = all.iter().position(|&threads| threads == self.threads) {
            all.swap_remove(index);
        }
    }
}

/// How many blocks of `threads` threads can be resident, wherever they are put, so that some multiprocessor still has room for a
/// block of `room` threads; `all` is how many the whole device holds. What is missing on a multiprocessor is free there, so it
/// takes as many missing blocks as have `room` threads; and they are missing on one of them at least where the others do not hold
/// what there is.
pub(super) fn blocks_beside(room: u32, all: u32, multiprocessors: u32, threads: u32) -> u32 {
    if room == 0 {
        return all;
    }
    let each = all / multiprocessors.max(1);
    let missing = room.div_ceil(threads.max(1)).min(each);
    ((each - missing + 1) * multiprocessors).saturating_sub(1).min(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceSelector;

    /// However the blocks are put, and at the number given it cannot be more.
    #[test]
    fn some_multiprocessor_has_room_left() {
        for (multiprocessors, each, threads, room) in [
            (132, 2, 1024, 512),
            (132, 8, 256, 512),
            (132, 32, 64, 512),
            (3, 4, 100, 256),
            (2, 2, 32, 512),
            (1, 1, 1024, 512),
        ] {
            let all = multiprocessors * each;
            let blocks = blocks_beside(room, all, multiprocessors, threads);
            let fits = |held: u32| held == 0 || (each - held) * threads >= room;
            // The worst case: as evenly as can be.
            let least = |blocks: u32| blocks / multiprocessors;
            assert!(fits(least(blocks)), "{blocks} of {all} blocks of {threads} threads leave no {room}");
            assert!(
                !fits(least(blocks + 1)),
                "{} of {all} blocks of {threads} threads leave {room}",
                blocks + 1
            );
        }
        assert_eq!(blocks_beside(0, 264, 132, 1024), 264, "nobody asked for room");
        assert_eq!(blocks_beside(512, 264, 132, 1024), 263);
    }

    #[test]
    fn room_is_reserved_until_the_last_lets_it_go() {
        let device = Device::open(DeviceSelector::Cpu).unwrap();
        assert_eq!(device.reserved().threads(), 0);
        let (large, small) = (Room::on(&device, 512), Room::on(&device, 64));
        let second = Room::on(&device, 512);
        assert_eq!(device.reserved().threads(), 512);
        drop(large);
        assert_eq!(device.reserved().threads(), 512);
        drop(second);
        assert_eq!(device.reserved().threads(), 64);
        drop(small);
        assert_eq!(device.reserved().threads(), 0);
    }
}
