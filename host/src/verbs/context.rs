//! Adapters that this machine has, and adapters that are open.

use std::ffi::{CStr, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ibverbs_sys as ffi;

use super::fault::{Concern, Faults};
use super::gid::{GidKind, GidRow};
use super::library::Verbs;
use crate::error::{Error, Result, VerbsError};

/// The names of this machine's adapters, in libibverbs's order. None where there is no library, unless one was asked for
/// by `WARPWIRE_IBV_SO`.
pub(super) fn names() -> Result<Vec<String>> {
    let verbs = match Verbs::load() {
        Ok(verbs) => verbs,
        Err(error) if is_absence(&error, crate::env::verbs_library()?.as_deref()) => return Ok(vec![]),
        Err(error) => return Err(error),
    };
    Ok(List::new(verbs)?.devices().map(|device| verbs.name_of(device)).collect())
}

/// Whether an error says only that this machine has no library, and none was asked for.
fn is_absence(error: &Error, asked: Option<&str>) -> bool {
    matches!(error, Error::Verbs(VerbsError::NoLibrary { .. })) && asked.is_none()
}

/// An open adapter.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) verbs: &'static Verbs,
    pub(super) raw: NonNull<ffi::ibv_context>,
    pub(super) name: String,
    pub(super) limits: Limits,
    faults: Mutex<Faults>,
}

// SAFETY: libibverbs allows any thread to call any verb on any object (`ibv_*` manual pages, rdma-core: "libibverbs is thread
// safe"); the pointer is closed once, on drop.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// What an adapter can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Tells adapters apart, in the whole job.
    pub(super) guid: u64,
    /// Ports, numbered from 1.
    pub(super) ports: u8,
    /// Requests that a queue holds.
    pub(super) queue_depth: u32,
    /// Entries of a completion queue.
    pub(super) completions: u32,
    /// Atomics and reads in flight that a queue pair answers, and starts.
    pub(super) atomics: (u8, u8),
    /// Whether it does atomics at all.
    pub(super) has_atomics: bool,
}

/// A port, as it is now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub(super) number: u8,
    pub(super) state: ffi::ibv_port_state::Type,
    pub(super) lid: u16,
    pub(super) mtu: ffi::ibv_mtu,
    /// The longest message, in bytes.
    pub(super) max_message: u32,
    pub(super) is_ethernet: bool,
    gids: u32,
}

impl Port {
    pub(super) fn is_active(&self) -> bool {
        self.state == ffi::ibv_port_state::IBV_PORT_ACTIVE
    }

    pub(super) fn state_name(&self) -> &'static str {
        const NAMES: [&str; 6] = ["no port", "down", "initialising", "armed", "active", "active, deferred"];
        NAMES.get(self.state as usize).copied().unwrap_or("in an unknown state")
    }
}

impl Context {
    /// Opens the adapter of that name.
    pub(super) fn open(name: &str) -> Result<Self> {
        let verbs = Verbs::load()?;
        let list = List::new(verbs)?;
        let found = list.devices().find(|device| verbs.name_of(*device) == name);
        let Some(device) = found else {
            let present = list.devices().map(|device| verbs.name_of(device)).collect();
            return Err(VerbsError::NoSuchAdapter { asked: name.to_owned(), present }.into());
        };
        // SAFETY: a device of the list, which is live.
        let raw = unsafe { (verbs.open_device)(device) };
        let raw = NonNull::new(raw).ok_or_else(|| {
            call("opening it", name, "; its device file in /dev/infiniband has to be readable and writable")
        })?;
        let mut attributes = MaybeUninit::<ffi::ibv_device_attr>::zeroed();
        // SAFETY: an open context, and room for the attributes.
        let code = unsafe { (verbs.query_device)(raw.as_ptr(), attributes.as_mut_ptr()) };
        // SAFETY: all zeroes are a value of every field.
        let limits = Limits::of(&unsafe { attributes.assume_init() });
        // Closed on the error path too, by this value's drop.
        let context = Self { verbs, raw, name: name.to_owned(), limits, faults: Mutex::default() };
        context.check(code, "asking for its limits")?;
        rustix::io::ioctl_fionbio(context.events(), true)
            .map_err(|error| Error::system("making an adapter's events non-blocking", error))?;
        Ok(context)
    }

    /// One of its ports.
    pub(super) fn port(&self, number: u8) -> Result<Port> {
        let mut attributes = MaybeUninit::<ffi::ibv_port_attr>::zeroed();
        // SAFETY: an open context; the library writes an older, shorter form of the structure, and the rest stays zero.
        let code = unsafe { (self.verbs.query_port)(self.raw.as_ptr(), number, attributes.as_mut_ptr()) };
        self.check(code, "asking for a port's state")?;
        // SAFETY: all zeroes are a value of every field, and so is what the library has written.
        let attributes = unsafe { attributes.assume_init() };
        Ok(Port {
            number,
            state: attributes.state,
            lid: attributes.lid,
            mtu: attributes.active_mtu,
            max_message: attributes.max_msg_sz,
            is_ethernet: u32::from(attributes.link_layer) == ffi::IBV_LINK_LAYER_ETHERNET,
            gids: u32::try_from(attributes.gid_tbl_len).unwrap_or(0),
        })
    }

    /// The port's GIDs, as they are now.
    pub(super) fn gids(&self, port: &Port) -> Vec<GidRow> {
        (0..port.gids).map(|index| self.gid(port.number, index)).collect()
    }

    fn gid(&self, port: u8, index: u32) -> GidRow {
        let mut entry = MaybeUninit::<ffi::ibv_gid_entry>::zeroed();
        let (context, size) = (self.raw.as_ptr(), size_of::<ffi::ibv_gid_entry>());
        // SAFETY: an open context, and room for an entry of that size.
        let code =
            unsafe { (self.verbs.query_gid)(context, port.into(), index, entry.as_mut_ptr(), 0, size) };
        // SAFETY: all zeroes are a value of every field.
        let entry = unsafe { entry.assume_init() };
        // SAFETY: each form of the union is 16 plain bytes.
        let gid = unsafe { entry.gid.raw };
        let kind = match entry.gid_type {
            _ if code != 0 => None,
            ffi::IBV_GID_TYPE_IB => Some(GidKind::InfiniBand),
            ffi::IBV_GID_TYPE_ROCE_V1 => Some(GidKind::RoceV1),
            ffi::IBV_GID_TYPE_ROCE_V2 => Some(GidKind::RoceV2),
            _ => None,
        };
        // A row that cannot be read, one without an address among them, counts as empty.
        GidRow { index, gid: if code == 0 { gid } else { [0; 16] }, kind }
    }

    /// Readable when the adapter has something to say that nobody has heard yet.
    pub(super) fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: the open context's own descriptor, open as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.raw.as_ref().async_fd) }
    }

    /// What has failed, as far as the adapter has said by now. Does not wait.
    pub(super) fn faults(&self) -> MutexGuard<'_, Faults> {
        // Each change is one insertion or removal: a panic elsewhere leaves the lists whole. Held while events are taken, so
        // that whoever was woken by one finds it noted, though another thread has taken it.
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let mut event = ffi::ibv_async_event::default();
        // SAFETY: an open context, whose descriptor does not block, and room for an event.
        while unsafe { (self.verbs.get_async_event)(self.raw.as_ptr(), &raw mut event) } == 0 {
            // SAFETY: the library has filled it in; what it names stays where it is until the event is acknowledged.
            let concern = unsafe { Concern::of(&event) };
            // SAFETY: the library answers every number with static text.
            let words = unsafe { CStr::from_ptr((self.verbs.event_type_str)(event.event_type)) };
            // SAFETY: taken above, and acknowledged once.
            unsafe { (self.verbs.ack_async_event)(&raw mut event) };
            let words = format!("the adapter {} says: {}", self.name, words.to_string_lossy());
            match concern {
                Concern::Other | Concern::PortUp(_) => tracing::debug!(?concern, "{words}"),
                _ => tracing::warn!(?concern, "{words}"),
            }
            faults.note(concern, &words);
        }
        faults
    }

    /// An error where a verb that answers with an error number has not answered 0.
    pub(super) fn check(&self, code: c_int, operation: &'static str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let (adapter, source) = (self.name.clone(), io::Error::from_raw_os_error(code.abs()));
        Err(VerbsError::Call { operation, adapter, source, hint: "" }.into())
    }

    /// The error of a verb that has left its reason in `errno`.
    pub(super) fn failed(&self, operation: &'static str, hint: &'static str) -> Error {
        call(operation, &self.name, hint)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: open, and closed only here; everything made of it holds it by `Arc`, and is gone.
        let code = unsafe { (self.verbs.close_device)(self.raw.as_ptr()) };
        if code != 0 {
            tracing::warn!(adapter = %self.name, code, "closing the adapter failed");
        }
    }
}

fn call(operation: &'static str, adapter: &str, hint: &'static str) -> Error {
    let source = io::Error::last_os_error();
    VerbsError::Call { operation, adapter: adapter.to_owned(), source, hint }.into()
}

impl Limits {
    fn of(attributes: &ffi::ibv_device_attr) -> Self {
        let count = |number: c_int| u32::try_from(number).unwrap_or(0);
        let small = |number: c_int| u8::try_from(number.clamp(0, 255)).unwrap_or(0);
        Self {
            guid: u64::from_be(attributes.node_guid),
            ports: attributes.phys_port_cnt,
            queue_depth: count(attributes.max_qp_wr),
            completions: count(attributes.max_cqe),
            atomics: (small(attributes.max_qp_rd_atom), small(attributes.max_qp_init_rd_atom)),
            has_atomics: attributes.atomic_cap != ffi::IBV_ATOMIC_NONE,
        }
    }
}

impl Verbs {
    fn name_of(&self, device: *mut ffi::ibv_device) -> String {
        // SAFETY: a device of a live list; its name is text that lives as long.
        let name = unsafe { CStr::from_ptr((self.get_device_name)(device)) };
        name.to_string_lossy().into_owned()
    }
}

/// The library's list of adapters; freed on drop. An open context holds its own reference to its device.
struct List {
    verbs: &'static Verbs,
    first: *mut *mut ffi::ibv_device,
    length: usize,
}

impl List {
    fn new(verbs: &'static Verbs) -> Result<Self> {
        let mut length = 0;
        // SAFETY: room for the length.
        let first = unsafe { (verbs.get_device_list)(&raw mut length) };
        if first.is_null() {
            // A kernel without RDMA: no adapters, and no fault.
            return match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(Self { verbs, first, length: 0 }),
                source => {
                    let adapter = "this machine".to_owned();
                    Err(VerbsError::Call { operation: "listing the adapters", adapter, source, hint: "" }
                        .into())
                }
            };
        }
        Ok(Self { verbs, first, length: usize::try_from(length).unwrap_or(0) })
    }

    fn devices(&self) -> impl Iterator<Item = *mut ffi::ibv_device> + '_ {
        // SAFETY: the list has that many entries.
        (0..self.length).map(|index| unsafe { *self.first.add(index) })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if !self.first.is_null() {
            // SAFETY: the library's own list, freed once.
            unsafe { (self.verbs.free_device_list)(self.first) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_library_is_no_adapters_unless_one_was_asked_for() {
        let none = Error::Verbs(VerbsError::NoLibrary { tried: vec![] });
        assert!(is_absence(&none, None));
        assert!(!is_absence(&none, Some("/nowhere/libibverbs.so.1")));
        let wrong = VerbsError::NoSymbol { library: "libc.so.6".to_owned(), symbol: "ibv_open_device" };
        assert!(!is_absence(&Error::Verbs(wrong), None));
    }
}
