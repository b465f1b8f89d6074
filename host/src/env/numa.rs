//! The processors near a device.

use std::fs;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Keeps the calling thread on the processors of the memory node that an RDMA adapter is at. Where that is not known, or not
/// allowed, the thread runs anywhere.
pub(crate) fn bind_to_adapter(adapter: &str) {
    let device = format!("/sys/class/infiniband/{adapter}/device");
    let Ok(node) = fs::read_to_string(format!("{device}/numa_node")) else { return };
    // -1 where the machine has no nodes.
    let Ok(node) = node.trim().parse::<u32>() else { return };
    let Ok(list) = fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist")) else { return };
    let mut set = CpuSet::new();
    let Some(processors) = processors(&list) else { return };
    processors
        .into_iter()
        .filter(|processor| *processor < CpuSet::MAX_CPU)
        .for_each(|processor| set.set(processor));
    if let Err(error) = sched_setaffinity(None, &set) {
        tracing::debug!(adapter, node, %error, "a thread stays unbound");
    }
}

/// The processors of a list as the kernel writes it: `0-3,8,10-11`. `None` for another text, and for one without any.
fn processors(list: &str) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        // No machine has more; a damaged list must not fill the memory.
        if first > last || last >= 1 << 16 {
            return None;
        }
        found.extend(first..=last);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(processors("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(processors("5"), Some(vec![5]));
        for bad in ["", "a", "3-1", "0-", "0-99999999999"] {
            assert_eq!(processors(bad), None, "{bad:?}");
        }
    }
}
