//! Adapters, as everything above uses them.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::address::Route;
use super::completion::CompletionQueue;
use super::context::{self, Context, Port};
use super::domain::Domain;
use super::gid;
use crate::env;
use crate::error::{Result, VerbsError};

/// An open RDMA adapter. A cheap clone; a process has each adapter open once, so that what is registered through one clone can
/// be used through every other.
#[derive(Clone, Debug)]
pub struct Adapter {
    domain: Arc<Domain>,
}

impl Adapter {
    /// The names of this machine's adapters. None where libibverbs is not there.
    ///
    /// # Errors
    ///
    /// [`VerbsError::NoLibrary`] where `WARPWIRE_IBV_SO` names a library that cannot be loaded; [`VerbsError::Call`].
    pub fn names() -> Result<Vec<String>> {
        context::names()
    }

    /// The adapter for the `index`-th GPU: of `WARPWIRE_HCA_DEVICES`, names separated by commas, the one with that index;
    /// where the variable is not set, of all adapters, GPUs beyond the last beginning again at the first.
    ///
    /// # Errors
    ///
    /// [`VerbsError::NoLibrary`], [`VerbsError::NoAdapter`], [`VerbsError::NoSuchAdapter`]; those of [`Adapter::open`].
    pub fn for_index(index: usize) -> Result<Self> {
        let present = Self::names()?;
        let name = choose(&present, env::hca_devices()?.as_deref(), index)?;
        Self::open(&name)
    }

    /// The adapter of that name.
    ///
    /// # Errors
    ///
    /// [`VerbsError::NoLibrary`], [`VerbsError::NoSuchAdapter`], [`VerbsError::Call`].
    pub fn open(name: &str) -> Result<Self> {
        static OPEN: Mutex<Option<HashMap<String, Weak<Domain>>>> = Mutex::new(None);
        // Each change is one insertion: a panic elsewhere leaves the map whole.
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        if let Some(domain) = open.get(name).and_then(Weak::upgrade) {
            return Ok(Self { domain });
        }
        let domain = Arc::new(Domain::new(Arc::new(Context::open(name)?))?);
        open.insert(name.to_owned(), Arc::downgrade(&domain));
        Ok(Self { domain })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.domain.adapter()
    }

    /// Whether it does atomics: without them connections signal by immediate values.
    #[must_use]
    pub fn has_atomics(&self) -> bool {
        self.limits().has_atomics
    }

    /// The most requests that a queue pair of it may have in flight.
    pub(crate) fn queue_depth(&self) -> u32 {
        self.limits().queue_depth
    }

    /// Tells adapters apart, in the whole job.
    pub(crate) fn guid(&self) -> u64 {
        self.limits().guid
    }

    /// Readable when the adapter has said something by itself; see [`QueuePair::fault`](super::QueuePair::fault).
    pub(crate) fn events(&self) -> BorrowedFd<'_> {
        self.domain.context.events()
    }

    /// Which of its ports have lost their link, for the words of an error: begins with its own separator, or is empty.
    pub(crate) fn ports_down(&self) -> String {
        let faults = self.domain.context.faults();
        faults.ports_down().map(|port| format!("; port {port} of {} is down", self.name())).collect()
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// A completion queue that is polled.
    pub(crate) fn polled_queue(&self, entries: u32) -> Result<Arc<CompletionQueue>> {
        CompletionQueue::polled(&self.domain.context, entries).map(Arc::new)
    }

    /// A completion queue that a thread can sleep on.
    pub(crate) fn awaited_queue(&self, entries: u32) -> Result<Arc<CompletionQueue>> {
        CompletionQueue::awaited(&self.domain.context, entries).map(Arc::new)
    }

    /// The way that packets leave by now, and the longest message: `port`, or the first that is up; the GID at `gid_index`,
    /// or the best there is. Asked anew for each connection: addresses move when a port goes down and up.
    pub(crate) fn route(&self, port: Option<u8>, gid_index: Option<u32>) -> Result<(Route, u32)> {
        let context = &self.domain.context;
        let port = match port {
            Some(number) => self.port(number)?,
            None => self.first_active_port()?,
        };
        let rows = context.gids(&port);
        let row = gid::choose(context.name.as_str(), &rows, gid_index)?;
        let route = Route {
            port: port.number,
            // A table has at most 256 rows, since a queue pair names them by a byte.
            gid_index: u8::try_from(row.index).unwrap_or(u8::MAX),
            gid: row.gid,
            lid: port.lid,
            mtu: port.mtu,
            is_ethernet: port.is_ethernet,
        };
        Ok((route, port.max_message))
    }

    fn port(&self, number: u8) -> Result<Port> {
        let (context, ports) = (&self.domain.context, self.limits().ports);
        if !(1..=ports).contains(&number) {
            return Err(
                VerbsError::NoSuchPort { adapter: self.name().to_owned(), asked: number, ports }.into()
            );
        }
        let port = context.port(number)?;
        if port.is_active() { Ok(port) } else { Err(self.inactive(&[port]).into()) }
    }

    fn first_active_port(&self) -> Result<Port> {
        let numbers = 1..=self.limits().ports;
        let ports = numbers.map(|number| self.domain.context.port(number)).collect::<Result<Vec<_>>>()?;
        match ports.iter().find(|port| port.is_active()) {
            Some(port) => Ok(*port),
            None => Err(self.inactive(&ports).into()),
        }
    }

    fn inactive(&self, ports: &[Port]) -> VerbsError {
        let state = |port: &Port| (format!("port {}", port.number), port.state_name().to_owned());
        VerbsError::NoActivePort { adapter: self.name().to_owned(), ports: ports.iter().map(state).collect() }
    }

    fn limits(&self) -> &context::Limits {
        &self.domain.context.limits
    }
}

/// The adapter for an index.
fn choose(present: &[String], listed: Option<&str>, index: usize) -> Result<String, VerbsError> {
    let Some(listed) = listed else {
        let Some(at) = index.checked_rem(present.len()) else { return Err(VerbsError::NoAdapter) };
        return Ok(present[at].clone());
    };
    let names: Vec<&str> = listed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let missing = |asked: String| VerbsError::NoSuchAdapter { asked, present: present.to_vec() };
    let Some(name) = names.get(index) else {
        return Err(missing(format!("number {index} of the list \"{listed}\" (WARPWIRE_HCA_DEVICES)")));
    };
    if present.iter().any(|other| other == name) {
        Ok((*name).to_owned())
    } else {
        Err(missing(format!("{name} (WARPWIRE_HCA_DEVICES)")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_are_chosen_by_list_or_in_turn() {
        let present = ["mlx5_0".to_owned(), "mlx5_1".to_owned()];
        assert_eq!(choose(&present, None, 1).unwrap(), "mlx5_1");
        assert_eq!(choose(&present, None, 2).unwrap(), "mlx5_0");
        assert_eq!(choose(&present, Some("mlx5_1, mlx5_0"), 0).unwrap(), "mlx5_1");
        assert!(matches!(choose(&[], None, 0), Err(VerbsError::NoAdapter)));
        for (listed, index, mark) in
            [("mlx5_1", 1, "number 1 of"), ("mlx5_7", 0, "mlx5_7"), ("", 0, "number 0")]
        {
            let error = choose(&present, Some(listed), index).unwrap_err().to_string();
            assert!(error.contains(mark) && error.contains("mlx5_0, mlx5_1"), "{error}");
        }
    }
}
