//! The shape of a collective's launch, from its size and what the device holds.

use warpwire_kernels::all_pair::MAX_BLOCKS;

use crate::device::{DeviceKind, LaunchConfig};

/// The fewest threads of a block: more than there can be ranks, so that one block always has a thread for each of them.
const MIN_THREADS: u32 = 128;

/// The shape for `packets` packets on a device of kind `kind`, of whose blocks `resident(threads)` fit at once, shared by
/// `sharing` ranks.
///
/// A block more than needed costs a wake-up, a block too few leaves packets to be sent one after the other; so: one packet a
/// thread as long as that many blocks fit, then more.
pub(super) fn all_pair<E>(
    packets: u64,
    kind: DeviceKind,
    max_threads: u32,
    sharing: u32,
    resident: impl FnOnce(u32) -> Result<u32, E>,
) -> Result<LaunchConfig, E> {
    let threads = match kind {
        DeviceKind::Cuda => {
            let wanted = u32::try_from(packets).unwrap_or(u32::MAX).min(max_threads).next_multiple_of(32);
            wanted.clamp(MIN_THREADS, max_threads.max(MIN_THREADS))
        }
        // More threads would only be more coroutines on the same processors.
        DeviceKind::Cpu => MIN_THREADS,
    };
    let most = match kind {
        DeviceKind::Cuda => (resident(threads)? / sharing).clamp(1, MAX_BLOCKS),
        DeviceKind::Cpu => 1,
    };
    let blocks = u32::try_from(packets.div_ceil(u64::from(threads))).unwrap_or(u32::MAX).clamp(1, most);
    Ok(LaunchConfig::new(blocks, threads).concurrent(sharing))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn shape(packets: u64, sharing: u32, resident: u32) -> LaunchConfig {
        let Ok(shape) = all_pair(packets, DeviceKind::Cuda, 512, sharing, |_| Ok::<_, Infallible>(resident));
        shape
    }

    #[test]
    fn every_number_of_ranks_has_a_thread_each() {
        for ranks in [2, 3, 31, 32, 33, 72] {
            for packets in [1, 2, 100, 1000, 1_000_000] {
                let shape = shape(packets, ranks, 264);
                assert!(shape.blocks * shape.threads >= ranks, "{ranks} ranks, {shape:?}");
                assert!(shape.blocks <= MAX_BLOCKS && shape.blocks >= 1);
            }
        }
    }

    #[test]
    fn all_ranks_of_a_device_fit_at_once() {
        for sharing in [1, 2, 4, 8, 33] {
            let shape = shape(1 << 17, sharing, 264);
            assert!(shape.blocks * shape.concurrent <= 264, "{shape:?}");
        }
    }

    #[test]
    fn small_messages_take_one_block() {
        assert_eq!(shape(1, 4, 264), LaunchConfig::new(1, 128).concurrent(4));
        assert_eq!(shape(129, 4, 264), LaunchConfig::new(1, 160).concurrent(4));
        assert_eq!(shape(513, 4, 264), LaunchConfig::new(2, 512).concurrent(4));
    }
}
