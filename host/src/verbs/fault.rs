//! What an adapter says by itself, beside completions: that a port, one of its objects, or all of it has failed. Of that
//! completions tell late, and nothing to one who has no request in flight.

use std::collections::{BTreeSet, HashMap};

use ibverbs_sys as ffi;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// A queue pair or a completion queue, by its address: it can no longer be used.
    Object(usize),
    /// The adapter: nothing of it can be used any more.
    Adapter,
    /// A port has lost its link.
    PortDown(u8),
    /// A port has its link again.
    PortUp(u8),
    /// Something that no connection depends on.
    Other,
}

impl Concern {
    /// That of an event.
    ///
    /// # Safety
    ///
    /// The library has filled in the event.
    pub(super) unsafe fn of(event: &ffi::ibv_async_event) -> Self {
        // SAFETY: the type of the event says which form the union has (`ibv_get_async_event`'s manual page).
        unsafe {
            match event.event_type {
                ffi::IBV_EVENT_QP_FATAL | ffi::IBV_EVENT_QP_REQ_ERR | ffi::IBV_EVENT_QP_ACCESS_ERR => {
                    Self::Object(event.element.qp.addr())
                }
                ffi::IBV_EVENT_CQ_ERR => Self::Object(event.element.cq.addr()),
                ffi::IBV_EVENT_DEVICE_FATAL => Self::Adapter,
                ffi::IBV_EVENT_PORT_ERR => Self::PortDown(port(event.element.port_num)),
                ffi::IBV_EVENT_PORT_ACTIVE => Self::PortUp(port(event.element.port_num)),
                _ => Self::Other,
            }
        }
    }
}

/// Ports are numbered from 1 to at most 255.
fn port(number: i32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// What is known to have failed.
#[derive(Debug, Default)]
pub(super) struct Faults {
    adapter: Option<String>,
    /// By address, as long as the object is there.
    objects: HashMap<usize, String>,
    ports_down: BTreeSet<u8>,
}

impl Faults {
    /// Notes an event, with the library's words for it. The first of an object counts.
    pub(super) fn note(&mut self, concern: Concern, words: &str) {
        match concern {
            Concern::Object(address) => _ = self.objects.entry(address).or_insert_with(|| words.to_owned()),
            Concern::Adapter => _ = self.adapter.get_or_insert_with(|| words.to_owned()),
            Concern::PortDown(port) => _ = self.ports_down.insert(port),
            Concern::PortUp(port) => _ = self.ports_down.remove(&port),
            Concern::Other => {}
        }
    }

    /// Why something that needs all of these objects can no longer be used.
    pub(super) fn of(&self, objects: &[usize]) -> Option<&str> {
        let of_object = || objects.iter().find_map(|object| self.objects.get(object));
        self.adapter.as_ref().or_else(of_object).map(String::as_str)
    }

    /// The object is gone; another may come to lie there.
    pub(super) fn forget(&mut self, object: usize) {
        self.objects.remove(&object);
    }

    /// The ports without a link.
    pub(super) fn ports_down(&self) -> impl Iterator<Item = u8> + '_ {
        self.ports_down.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: ffi::ibv_event_type, fill: impl FnOnce(&mut ffi::ibv_async_event)) -> Concern {
        let mut event = ffi::ibv_async_event { event_type: kind, ..Default::default() };
        fill(&mut event);
        // SAFETY: filled in as the library would.
        unsafe { Concern::of(&event) }
    }

    #[test]
    fn events_are_about_what_they_name() {
        let queue_pair = std::ptr::without_provenance_mut(64);
        for kind in [ffi::IBV_EVENT_QP_FATAL, ffi::IBV_EVENT_QP_REQ_ERR, ffi::IBV_EVENT_QP_ACCESS_ERR] {
            assert_eq!(event(kind, |event| event.element.qp = queue_pair), Concern::Object(64));
        }
        let queue = std::ptr::without_provenance_mut(128);
        assert_eq!(event(ffi::IBV_EVENT_CQ_ERR, |event| event.element.cq = queue), Concern::Object(128));
        assert_eq!(event(ffi::IBV_EVENT_DEVICE_FATAL, |_| ()), Concern::Adapter);
        let on_port_2 = |event: &mut ffi::ibv_async_event| event.element.port_num = 2;
        assert_eq!(event(ffi::IBV_EVENT_PORT_ERR, on_port_2), Concern::PortDown(2));
        assert_eq!(event(ffi::IBV_EVENT_PORT_ACTIVE, on_port_2), Concern::PortUp(2));
        // A queue pair that is being connected, a port whose addresses move.
        assert_eq!(event(ffi::IBV_EVENT_COMM_EST, |event| event.element.qp = queue_pair), Concern::Other);
        assert_eq!(event(ffi::IBV_EVENT_GID_CHANGE, on_port_2), Concern::Other);
    }

    #[test]
    fn a_fault_is_that_of_its_object_as_long_as_it_is_there() {
        let mut faults = Faults::default();
        faults.note(Concern::Object(1), "the first");
        faults.note(Concern::Object(1), "the second");
        faults.note(Concern::Other, "nothing");
        assert_eq!((faults.of(&[7, 1, 8]), faults.of(&[7, 8])), (Some("the first"), None));
        faults.forget(1);
        assert_eq!(faults.of(&[1]), None);
        faults.note(Concern::Adapter, "all of it");
        assert_eq!((faults.of(&[1]), faults.of(&[])), (Some("all of it"), Some("all of it")));
    }

    #[test]
    fn ports_come_back() {
        let mut faults = Faults::default();
        faults.note(Concern::PortDown(2), "");
        faults.note(Concern::PortDown(1), "");
        faults.note(Concern::PortUp(2), "");
        assert_eq!(faults.ports_down().collect::<Vec<_>>(), [1]);
        assert_eq!(faults.of(&[]), None, "a connection outlives a link that comes back soon");
    }
}
