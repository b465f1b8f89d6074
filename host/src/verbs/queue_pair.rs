//! Queue pairs: reliable connections between two adapters.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use ibverbs::ibv_access_flags;
use ibverbs_sys as ffi;
use ibverbs_sys::ibv_qp_attr_mask as Mask;

use super::address::{Address, Route};
use super::completion::CompletionQueue;
use super::domain::Domain;
use super::state::{State, suspects};
use super::work::{Chain, Request};
use crate::error::{Result, VerbsError};

/// Bytes that a request may carry itself: a message's three words, and room to spare.
pub(crate) const INLINE_BYTES: u32 = 64;

/// How a queue pair is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depths {
    /// Requests in flight.
    pub(crate) send: u32,
    /// Receives that wait for a message.
    pub(crate) receive: u32,
}

/// How long it tries to reach its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// The time for an answer: 4.096 µs times 2 to this.
    pub(crate) timeout: u8,
    /// How often a request is sent again when no answer has come: 0 to 6, and 7, which soft-RoCE takes for ever.
    pub(crate) retries: u8,
    /// How often one is when the peer had no receive for it: 0 to 6; 7 would be for ever.
    pub(crate) receiver_retries: u8,
    /// How long the peer is told to wait then, as the verbs' code: 31 is 0.49 s, the most there is but for 0, 0.66 s.
    pub(crate) receiver_timer: u8,
}

/// A queue pair. Any thread may post; requests of one queue take effect in the order of the calls.
#[derive(Debug)]
pub(crate) struct QueuePair {
    raw: NonNull<ffi::ibv_qp>,
    number: u32,
    state: AtomicState,
    domain: Arc<Domain>,
    // Dropped after the queue pair, whose drop destroys it first.
    send: Arc<CompletionQueue>,
    receive: Arc<CompletionQueue>,
}

// SAFETY: libibverbs allows any thread to call any verb on any object; it is destroyed once, on drop.
unsafe impl Send for QueuePair {}
// SAFETY: as above.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// A new one, in the state RESET.
    pub(crate) fn new(
        domain: &Arc<Domain>,
        send: &Arc<CompletionQueue>,
        receive: &Arc<CompletionQueue>,
        depths: Depths,
    ) -> Result<Self> {
        let mut attributes = ffi::ibv_qp_init_attr {
            send_cq: send.as_ptr(),
            recv_cq: receive.as_ptr(),
            cap: ffi::ibv_qp_cap {
                max_send_wr: depths.send,
                max_recv_wr: depths.receive,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: INLINE_BYTES,
            },
            qp_type: ffi::ibv_qp_type::IBV_QPT_RC,
            sq_sig_all: 0,
            ..Default::default()
        };
        let context = &domain.context;
        // SAFETY: a live domain and live queues of its adapter.
        let raw = unsafe { (context.verbs.create_qp)(domain.raw.as_ptr(), &raw mut attributes) };
        let raw = NonNull::new(raw).ok_or_else(|| context.failed("making a queue pair", ""))?;
        // SAFETY: live.
        let number = unsafe { raw.as_ref().qp_num };
        Ok(Self {
            raw,
            number,
            state: AtomicState::new(),
            domain: Arc::clone(domain),
            send: Arc::clone(send),
            receive: Arc::clone(receive),
        })
    }

    /// Its number, by which its peer finds it.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Where its sends complete.
    pub(crate) fn send_completions(&self) -> &CompletionQueue {
        &self.send
    }

    /// Where its receives complete.
    pub(crate) fn receive_completions(&self) -> &CompletionQueue {
        &self.receive
    }

    /// Why it can no longer be used, where the adapter has said so by itself: of it, of its completion queues, or of all that the
    /// adapter has.
    pub(crate) fn fault(&self) -> Option<String> {
        let needed = [self.raw.as_ptr().addr(), self.send.as_ptr().addr(), self.receive.as_ptr().addr()];
        self.domain.context.faults().of(&needed).map(str::to_owned)
    }

    /// From RESET to INIT: from now on it takes receives.
    pub(crate) fn initialise(&self, port: u8) -> Result<()> {
        let limits = &self.domain.context.limits;
        let write = ibv_access_flags::IBV_ACCESS_REMOTE_WRITE | ibv_access_flags::IBV_ACCESS_REMOTE_READ;
        let atomic = ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC;
        let attributes = ffi::ibv_qp_attr {
            port_num: port,
            pkey_index: 0,
            qp_access_flags: write.0 | if limits.has_atomics { atomic.0 } else { 0 },
            ..Default::default()
        };
        let set = Mask::IBV_QP_PORT | Mask::IBV_QP_PKEY_INDEX | Mask::IBV_QP_ACCESS_FLAGS;
        self.change(State::Init, attributes, set)
    }

    /// From INIT to RTR: from now on it answers `peer`, and no other.
    pub(crate) fn answer(&self, route: &Route, peer: &Address, patience: Patience) -> Result<()> {
        let attributes = ffi::ibv_qp_attr {
            path_mtu: route.mtu.min(peer.mtu),
            dest_qp_num: peer.number,
            rq_psn: peer.first_packet,
            max_dest_rd_atomic: self.domain.context.limits.atomics.0.min(MAX_ATOMICS),
            min_rnr_timer: patience.receiver_timer,
            ah_attr: route.vector(peer),
            ..Default::default()
        };
        let set = Mask::IBV_QP_AV
            | Mask::IBV_QP_PATH_MTU
            | Mask::IBV_QP_DEST_QPN
            | Mask::IBV_QP_RQ_PSN
            | Mask::IBV_QP_MAX_DEST_RD_ATOMIC
            | Mask::IBV_QP_MIN_RNR_TIMER;
        self.change(State::ReadyToReceive, attributes, set)
    }

    /// From RTR to RTS: from now on it sends. What comes before the peer answers is sent again, as `patience` says.
    pub(crate) fn speak(&self, first_packet: u32, patience: Patience) -> Result<()> {
        let attributes = ffi::ibv_qp_attr {
            sq_psn: first_packet,
            timeout: patience.timeout,
            retry_cnt: patience.retries,
            rnr_retry: patience.receiver_retries,
            max_rd_atomic: self.domain.context.limits.atomics.1.min(MAX_ATOMICS),
            ..Default::default()
        };
        let set = Mask::IBV_QP_SQ_PSN
            | Mask::IBV_QP_TIMEOUT
            | Mask::IBV_QP_RETRY_CNT
            | Mask::IBV_QP_RNR_RETRY
            | Mask::IBV_QP_MAX_QP_RD_ATOMIC;
        self.change(State::ReadyToSend, attributes, set)
    }

    /// Stops it: every request in flight ends with an error.
    pub(crate) fn stop(&self) -> Result<()> {
        self.change(State::Error, ffi::ibv_qp_attr::default(), Mask(0))
    }

    /// Back to RESET: everything under way is forgotten.
    pub(crate) fn reset(&self) -> Result<()> {
        self.change(State::Reset, ffi::ibv_qp_attr::default(), Mask(0))
    }

    fn change(&self, to: State, mut attributes: ffi::ibv_qp_attr, set: Mask) -> Result<()> {
        let from = self.state.get();
        let set = set | Mask::IBV_QP_STATE;
        attributes.qp_state = to.raw();
        let context = &self.domain.context;
        // SAFETY: a live queue pair, and attributes of which those in `set` are filled in.
        let code = unsafe { (context.verbs.modify_qp)(self.raw.as_ptr(), &raw mut attributes, set.0 as i32) };
        if code == 0 {
            self.state.set(to);
            return Ok(());
        }
        let source = io::Error::from_raw_os_error(code.abs());
        // Only of wrong attributes is anything known.
        let wrong = source.raw_os_error() == Some(libc::EINVAL);
        Err(VerbsError::Transition {
            adapter: context.name.clone(),
            number: self.number,
            from: from.name(),
            to: to.name(),
            source,
            detail: if wrong { suspects(from, to, set) } else { String::new() },
        }
        .into())
    }

    /// Posts requests in order, with one call. What they name has to stay registered until they have completed.
    ///
    /// # Errors
    ///
    /// [`VerbsError::Call`]: those before the one refused have been posted, and the caller stops the queue pair.
    pub(crate) fn post(&self, requests: &[Request]) -> Result<()> {
        if requests.is_empty() {
            return Ok(());
        }
        let mut chain = Chain::new(requests);
        let mut refused = ptr::null_mut();
        // SAFETY: a live queue pair, whose context has the function (every provider has); the chain and what it points to
        // are live, and the library has copied them when the call returns.
        let code = unsafe {
            let context = (*self.raw.as_ptr()).context;
            match (*context).ops.post_send {
                Some(post) => post(self.raw.as_ptr(), chain.first(), &raw mut refused),
                None => libc::ENOSYS,
            }
        };
        self.domain.context.check(code, "posting to a send queue")
    }

    /// Posts a receive: messages go to `bytes` bytes at `address`, of a region with that local key, which stay registered.
    pub(crate) fn post_receive(&self, id: u64, address: u64, bytes: u32, key: u32) -> Result<()> {
        let mut range = ffi::ibv_sge { addr: address, length: bytes, lkey: key };
        let mut request =
            ffi::ibv_recv_wr { wr_id: id, next: ptr::null_mut(), sg_list: &raw mut range, num_sge: 1 };
        let mut refused = ptr::null_mut();
        // SAFETY: as in `post`.
        let code = unsafe {
            let context = (*self.raw.as_ptr()).context;
            match (*context).ops.post_recv {
                Some(post) => post(self.raw.as_ptr(), &raw mut request, &raw mut refused),
                None => libc::ENOSYS,
            }
        };
        self.domain.context.check(code, "posting a receive")
    }
}

/// More atomics in flight than any adapter keeps busy.
const MAX_ATOMICS: u8 = 16;

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: live, destroyed only here.
        let code = unsafe { (self.domain.context.verbs.destroy_qp)(self.raw.as_ptr()) };
        if code != 0 {
            tracing::warn!(adapter = self.domain.adapter(), code, "destroying a queue pair failed");
        }
        // Behind the destruction, which has taken the events that nobody had heard.
        self.domain.context.faults().forget(self.raw.as_ptr().addr());
    }
}

/// The last state that a change has led to, for the words of errors.
#[derive(Debug)]
struct AtomicState(AtomicU8);

impl AtomicState {
    const ALL: [State; 5] =
        [State::Reset, State::Init, State::ReadyToReceive, State::ReadyToSend, State::Error];

    fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    fn get(&self) -> State {
        Self::ALL[usize::from(self.0.load(Ordering::Relaxed)).min(Self::ALL.len() - 1)]
    }

    fn set(&self, state: State) {
        let at = Self::ALL.iter().position(|other| *other == state).unwrap_or(0);
        self.0.store(at as u8, Ordering::Relaxed);
    }
}
