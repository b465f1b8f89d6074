//! The processors next to a device.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::device::PciAddress;

/// Moves the calling thread to those of its processors that are next to the device at `pci`. Where that is not known, or none
/// of them is the thread's, it stays where it is.
pub(super) fn move_near(pci: PciAddress) {
    let path = format!("/sys/bus/pci/devices/{pci}/local_cpulist");
    let Ok(list) = fs::read_to_string(&path) else {
        return tracing::debug!(path, "no list of the processors next to the GPU");
    };
    let Some(near) = parse(&list) else {
        return tracing::debug!(path, list, "the list of processors does not read as one");
    };
    let moved = sched_getaffinity(None).and_then(|own| match intersect(&own, &near) {
        Some(both) => sched_setaffinity(None, &both),
        None => Ok(()),
    });
    if let Err(error) = moved {
        tracing::debug!(%error, "the proxy's thread stays on all processors");
    }
}

/// Processors by number, as ranges: `0-15,32-47`.
fn parse(list: &str) -> Option<Vec<(usize, usize)>> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (range.0 <= range.1).then_some(range)
    };
    list.trim().split(',').map(range).collect()
}

/// The processors of `own` that lie in `near`; `None` where there are none.
fn intersect(own: &CpuSet, near: &[(usize, usize)]) -> Option<CpuSet> {
    let mut both = CpuSet::new();
    for processor in 0..CpuSet::MAX_CPU {
        if own.is_set(processor) && near.iter().any(|&(first, last)| (first..=last).contains(&processor)) {
            both.set(processor);
        }
    }
    (both.count() > 0).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse("0-3,8,10-11\n"), Some(vec![(0, 3), (8, 8), (10, 11)]));
        assert_eq!(parse("0"), Some(vec![(0, 0)]));
        for bad in ["", "\n", "a", "3-1", "1-", "-2", "1,,2"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn only_processors_of_both_are_taken() {
        let set = |processors: &[usize]| {
            let mut set = CpuSet::new();
            processors.iter().for_each(|&processor| set.set(processor));
            set
        };
        assert_eq!(intersect(&set(&[0, 1, 5, 9]), &[(1, 5), (900, 2000)]), Some(set(&[1, 5])));
        assert_eq!(intersect(&set(&[0, 1]), &[(2, 3)]), None);
    }

    #[test]
    fn a_device_that_is_not_there_changes_nothing() {
        let own = sched_getaffinity(None).unwrap();
        move_near(PciAddress { domain: 0xFFFF, bus: 0xFF, device: 0x1F, function: 7 });
        assert_eq!(sched_getaffinity(None).unwrap(), own);
    }
}
