//! How much runs at once.

use crate::env;
use crate::error::Result;
use crate::monitor::Monitor;

/// GPU threads that this process holds at once, all CPU devices together. Each is a coroutine whose stack and guard page are
/// two mappings of the kernel's, which allows a process 65,530 by default (`vm.max_map_count`): half of them are left to
/// the rest of the process.
const MAX_THREADS: u32 = 16_384;

/// Blocks that this process holds at once: each is an OS thread.
const MAX_BLOCKS: u32 = 1_024;

/// The room for blocks in this process: what a GPU's multiprocessors are to a GPU.
#[derive(Debug)]
pub(super) struct Capacity {
    threads: u32,
    free: Monitor<Room>,
}

#[derive(Clone, Copy, Debug)]
struct Room {
    threads: u32,
    blocks: u32,
}

impl Room {
    /// How many blocks of `threads` threads it has room for.
    fn blocks(self, threads: u32) -> u32 {
        (self.threads / threads).min(self.blocks)
    }
}

impl Capacity {
    /// This process' room. `WARPWIRE_CPU_THREADS` makes it smaller, when it is first asked for.
    pub(super) fn of_process() -> Result<&'static Self> {
        static CAPACITY: Monitor<Option<&'static Capacity>> = Monitor::new(None);
        CAPACITY.with(|capacity| {
            if let Some(capacity) = *capacity {
                return Ok(capacity);
            }
            let threads = env::cpu_threads(MAX_THREADS)?.unwrap_or(MAX_THREADS);
            Ok(&**capacity.insert(Box::leak(Box::new(Self::new(threads)))))
        })
    }

    fn new(threads: u32) -> Self {
        Self { threads, free: Monitor::new(Room { threads, blocks: MAX_BLOCKS }) }
    }

    /// How many blocks of `threads` threads run at once when nothing else does.
    pub(super) fn blocks(&self, threads: u32) -> u32 {
        Room { threads: self.threads, blocks: MAX_BLOCKS }.blocks(threads)
    }

    /// Waits for room for at least `least` blocks of `threads` threads, and takes it for up to `most`. The caller has checked
    /// that `least` fit when nothing else runs.
    ///
    /// Whoever fits goes first, whatever the order of asking: a large grid must not hold up a small one that the grids in
    /// front of it wait for.
    pub(super) fn take(&'static self, least: u32, most: u32, threads: u32) -> Vec<Permit> {
        let blocks = self.free.wait(|free| {
            let blocks = free.blocks(threads).min(most);
            (blocks >= least).then(|| {
                free.threads -= blocks * threads;
                free.blocks -= blocks;
                blocks
            })
        });
        (0..blocks).map(|_| Permit { capacity: self, threads }).collect()
    }
}

/// Room for one block, given back on drop.
#[derive(Debug)]
pub(super) struct Permit {
    capacity: &'static Capacity,
    threads: u32,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.capacity.free.change(|free| {
            free.threads += self.threads;
            free.blocks += 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn room_is_counted_in_threads_and_in_blocks() {
        let capacity = Capacity::new(4096);
        assert_eq!(capacity.blocks(1024), 4);
        assert_eq!(capacity.blocks(1000), 4);
        assert_eq!(capacity.blocks(1), MAX_BLOCKS);
    }

    #[test]
    fn who_does_not_fit_waits_and_who_fits_does_not() {
        let capacity: &'static Capacity = Box::leak(Box::new(Capacity::new(4096)));
        let held = capacity.take(3, 3, 1024);
        let (sender, taken) = mpsc::channel();
        let waiter = thread::spawn(move || {
            let permits = capacity.take(4, 4, 1024);
            sender.send(permits.len()).unwrap();
        });
        assert_eq!(capacity.take(1, 9, 512).len(), 2, "as many as fit, past the one that waits");
        assert!(taken.recv_timeout(Duration::from_millis(50)).is_err(), "there is no room for four");
        drop(held);
        assert_eq!(taken.recv().unwrap(), 4);
        waiter.join().unwrap();
    }
}
