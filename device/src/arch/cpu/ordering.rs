//! Core's orderings of the orders that are types.

use core::sync::atomic::Ordering;

use crate::arch::{LoadKind, LoadOrder, RmwKind, RmwOrder, StoreKind, StoreOrder};

/// Of a load.
pub(super) fn load_ordering<O: LoadOrder>() -> Ordering {
    match O::KIND {
        LoadKind::Relaxed => Ordering::Relaxed,
        LoadKind::Acquire => Ordering::Acquire,
    }
}

/// Of a store, or of an addition whose result nobody looks at.
pub(super) fn store_ordering<O: StoreOrder>() -> Ordering {
    match O::KIND {
        StoreKind::Relaxed => Ordering::Relaxed,
        StoreKind::Release => Ordering::Release,
    }
}

/// Of an access that reads and writes.
pub(super) fn rmw_ordering<O: RmwOrder>() -> Ordering {
    match O::KIND {
        RmwKind::Relaxed => Ordering::Relaxed,
        RmwKind::Acquire => Ordering::Acquire,
        RmwKind::Release => Ordering::Release,
        RmwKind::AcqRel => Ordering::AcqRel,
    }
}
