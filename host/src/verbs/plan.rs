//! By which ways memory is registered, and in what order they are tried. Nothing here calls a verb.

use crate::error::VerbsError;

/// What memory it is, for an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The host's: its pages can be pinned.
    Host,
    /// A GPU's.
    Gpu,
}

/// A way to register memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By its address: host memory, whose pages the kernel pins.
    Pages,
    /// By a DMA-BUF, for the adapter's data-direct path (mlx5).
    DataDirect,
    /// By a DMA-BUF.
    DmaBuf,
    /// By its address, which a module of the GPU's driver (`nvidia-peermem`) translates.
    PeerMemory,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pages => "as host memory",
            Self::DataDirect => "by DMA-BUF, data-direct",
            Self::DmaBuf => "by DMA-BUF",
            Self::PeerMemory => "by peer memory (the module nvidia-peermem)",
        }
    }
}

impl Placement {
    /// The ways for memory of this kind, best first.
    pub(crate) fn ways(self, has_data_direct: bool) -> &'static [Way] {
        match (self, has_data_direct) {
            (Self::Host, _) => &[Way::Pages],
            (Self::Gpu, true) => &[Way::DataDirect, Way::DmaBuf, Way::PeerMemory],
            (Self::Gpu, false) => &[Way::DmaBuf, Way::PeerMemory],
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Host => "host memory",
            Self::Gpu => "GPU memory",
        }
    }
}

/// The whole pages that a range lies in, which is what a DMA-BUF is made of: where they begin, their length, and where in
/// them the range begins. `None` where that is beyond the address space.
pub(crate) fn pages(address: u64, bytes: u64, page: u64) -> Option<(u64, u64, u64)> {
    let begin = address - address % page;
    let end = address.checked_add(bytes)?.checked_next_multiple_of(page)?;
    Some((begin, end - begin, address - begin))
}

/// Tries the ways in order, and gives what the first that works gives.
///
/// # Errors
///
/// [`VerbsError::Registration`], with every way and how it failed.
pub(crate) fn first<T>(
    adapter: &str,
    placement: Placement,
    (address, bytes): (u64, u64),
    has_data_direct: bool,
    mut register: impl FnMut(Way) -> Result<T, String>,
) -> Result<T, VerbsError> {
    let mut attempts = Vec::new();
    for way in placement.ways(has_data_direct) {
        match register(*way) {
            Ok(registered) => return Ok(registered),
            Err(outcome) => attempts.push((way.name().to_owned(), outcome)),
        }
    }
    let (adapter, memory) = (adapter.to_owned(), placement.words());
    Err(VerbsError::Registration { adapter, memory, address, bytes, attempts })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways that were tried until one of `works` was.
    fn tried(placement: Placement, data_direct: bool, works: &[Way]) -> (Vec<Way>, Result<Way, VerbsError>) {
        let mut ways = Vec::new();
        let outcome = first("a", placement, (4096, 10), data_direct, |way| {
            ways.push(way);
            if works.contains(&way) { Ok(way) } else { Err("no".to_owned()) }
        });
        (ways, outcome)
    }

    #[test]
    fn host_memory_is_pinned_and_a_gpus_goes_by_dma_buf_first() {
        assert_eq!(tried(Placement::Host, true, &[Way::Pages]).0, [Way::Pages]);
        assert_eq!(tried(Placement::Gpu, false, &[Way::DmaBuf, Way::PeerMemory]).0, [Way::DmaBuf]);
        let (ways, outcome) = tried(Placement::Gpu, false, &[Way::PeerMemory]);
        assert_eq!((ways, outcome.unwrap()), (vec![Way::DmaBuf, Way::PeerMemory], Way::PeerMemory));
        assert_eq!(tried(Placement::Gpu, true, &[Way::DmaBuf]).0, [Way::DataDirect, Way::DmaBuf]);
    }

    #[test]
    fn where_nothing_works_each_way_is_named() {
        let error = tried(Placement::Gpu, false, &[]).1.unwrap_err().to_string();
        assert!(error.contains("by DMA-BUF: no") && error.contains("nvidia-peermem): no"), "{error}");
        let error = tried(Placement::Host, false, &[]).1.unwrap_err().to_string();
        assert!(error.contains("host memory at 0x1000"), "{error}");
    }

    #[test]
    fn ranges_grow_to_whole_pages() {
        assert_eq!(pages(0x1_0000, 4096, 4096), Some((0x1_0000, 4096, 0)));
        assert_eq!(pages(0x1_0010, 1, 4096), Some((0x1_0000, 4096, 0x10)));
        assert_eq!(pages(0x1_0fff, 2, 4096), Some((0x1_0000, 8192, 0xfff)));
        assert_eq!(pages(0x1_0000, 5000, 65536), Some((0x1_0000, 65536, 0)));
        assert_eq!(pages(u64::MAX - 4, 4, 4096), None);
    }
}
