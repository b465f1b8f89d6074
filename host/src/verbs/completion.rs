//! Completion queues.

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use ibverbs::{ibv_wc, ibv_wc_opcode, ibv_wc_status};
use ibverbs_sys as ffi;

use super::context::Context;
use crate::error::Result;

/// Completions that one call takes.
const BATCH: usize = 32;

/// What became of a work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The request's number.
    pub(crate) id: u64,
    /// How it ended.
    pub(crate) outcome: Outcome,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A request of the send queue is done.
    Sent,
    /// A message of that many bytes has arrived.
    Received(u32),
    /// A write with this immediate value has arrived.
    Immediate(u32),
    /// It failed.
    Failed(Status),
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    code: ibv_wc_status::Type,
    vendor: u32,
}

impl Status {
    /// Whether it was only swept away, since the queue pair had failed or been stopped before.
    pub(crate) fn is_flush(self) -> bool {
        self.code == ibv_wc_status::IBV_WC_WR_FLUSH_ERR
    }

    /// Whether the peer has not answered.
    pub(crate) fn is_unanswered(self) -> bool {
        self.code == ibv_wc_status::IBV_WC_RETRY_EXC_ERR
    }

    /// What it most often means, for the reader of an error; begins with its own separator, or is empty.
    pub(crate) fn hint(self) -> &'static str {
        match self.code {
            ibv_wc_status::IBV_WC_RETRY_EXC_ERR => ": the peer is gone, or the link to it is down",
            ibv_wc_status::IBV_WC_RNR_RETRY_EXC_ERR => ": the peer takes no more signals",
            ibv_wc_status::IBV_WC_REM_ACCESS_ERR => {
                ": the peer's memory is no longer registered, or not all of the range is"
            }
            ibv_wc_status::IBV_WC_LOC_PROT_ERR => ": this rank's memory is no longer registered",
            _ => "",
        }
    }
}

/// A completion queue, and the channel that wakes a thread which waits for it, where it has one.
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    raw: NonNull<ffi::ibv_cq>,
    channel: Option<NonNull<ffi::ibv_comp_channel>>,
    context: Arc<Context>,
}

// SAFETY: libibverbs allows any thread to call any verb on any object; both are destroyed once, on drop.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// A queue of at least `entries` completions, which is only polled.
    pub(super) fn polled(context: &Arc<Context>, entries: u32) -> Result<Self> {
        Self::create(context, entries, None)
    }

    /// One that a thread can also sleep on.
    pub(super) fn awaited(context: &Arc<Context>, entries: u32) -> Result<Self> {
        // SAFETY: an open context.
        let channel = unsafe { (context.verbs.create_comp_channel)(context.raw.as_ptr()) };
        let channel =
            NonNull::new(channel).ok_or_else(|| context.failed("making a completion channel", ""))?;
        // SAFETY: the channel is live, and its descriptor is its own.
        let descriptor = unsafe { BorrowedFd::borrow_raw(channel.as_ref().fd) };
        let unblocked = rustix::io::ioctl_fionbio(descriptor, true);
        let queue = Self::create(context, entries, Some(channel))?;
        unblocked.map_err(|error| crate::Error::System {
            operation: "making a completion channel non-blocking".to_owned(),
            source: error.into(),
        })?;
        queue.arm()?;
        Ok(queue)
    }

    fn create(
        context: &Arc<Context>,
        entries: u32,
        channel: Option<NonNull<ffi::ibv_comp_channel>>,
    ) -> Result<Self> {
        let entries = entries.min(context.limits.completions).max(1);
        let count = i32::try_from(entries).unwrap_or(i32::MAX);
        let raw_channel = channel.map_or(ptr::null_mut(), NonNull::as_ptr);
        // SAFETY: an open context, and a live channel of it or none.
        let raw = unsafe {
            (context.verbs.create_cq)(context.raw.as_ptr(), count, ptr::null_mut(), raw_channel, 0)
        };
        let Some(raw) = NonNull::new(raw) else {
            let error = context.failed("making a completion queue", "");
            if let Some(channel) = channel {
                // SAFETY: live, and no queue is tied to it.
                unsafe { (context.verbs.destroy_comp_channel)(channel.as_ptr()) };
            }
            return Err(error);
        };
        Ok(Self { raw, channel, context: Arc::clone(context) })
    }

    pub(super) fn as_ptr(&self) -> *mut ffi::ibv_cq {
        self.raw.as_ptr()
    }

    /// Hands what has completed to `take`, oldest first, and says how many that were. Does not wait.
    pub(crate) fn poll(&self, mut take: impl FnMut(Completion)) -> Result<usize> {
        let mut entries = [ibv_wc::default(); BATCH];
        let mut count = 0;
        loop {
            // SAFETY: a live queue, whose context has the function (every provider has), and room for `BATCH` entries.
            let found = unsafe {
                let context = (*self.raw.as_ptr()).context;
                match (*context).ops.poll_cq {
                    Some(poll) => poll(self.raw.as_ptr(), BATCH as i32, entries.as_mut_ptr()),
                    None => -1,
                }
            };
            let Ok(found) = usize::try_from(found) else {
                return Err(self.context.failed("polling a completion queue", ""));
            };
            entries[..found.min(BATCH)].iter().for_each(|entry| take(Completion::of(entry)));
            count += found;
            if found < BATCH {
                return Ok(count);
            }
        }
    }

    /// What a thread may sleep on: readable when a completion has come since [`CompletionQueue::arm`].
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        // SAFETY: the channel is live as long as `self`.
        self.channel.map(|channel| unsafe { channel.as_ref().fd })
    }

    /// Asks to be woken by the next completion. Whoever arms polls once more before sleeping: what came before wakes nobody.
    pub(crate) fn arm(&self) -> Result<()> {
        // SAFETY: as in `poll`.
        let code = unsafe {
            let context = (*self.raw.as_ptr()).context;
            match (*context).ops.req_notify_cq {
                Some(notify) => notify(self.raw.as_ptr(), 0),
                None => libc::ENOSYS,
            }
        };
        self.context.check(code, "asking to be woken by a completion")
    }

    /// Takes the wake-ups that have come.
    pub(crate) fn acknowledge(&self) {
        let Some(channel) = self.channel else { return };
        let (mut queue, mut unused) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: a live channel, whose descriptor does not block, and room for both answers. Each event is acknowledged
        // at once: destroying the queue waits for those that are not.
        while unsafe { (self.context.verbs.get_cq_event)(channel.as_ptr(), &raw mut queue, &raw mut unused) }
            == 0
        {
            // SAFETY: the event was this queue's, the only one of the channel.
            unsafe { (self.context.verbs.ack_cq_events)(self.raw.as_ptr(), 1) };
        }
    }

    /// A status in words: the library's, with the numbers.
    pub(crate) fn words(&self, status: Status) -> String {
        // SAFETY: the library answers every number with static text.
        let text = unsafe { CStr::from_ptr((self.context.verbs.wc_status_str)(status.code)) };
        let (text, code, vendor) = (text.to_string_lossy(), status.code, status.vendor);
        format!("{text} (status {code}, vendor error {vendor:#x}){}", status.hint())
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        self.acknowledge();
        let verbs = self.context.verbs;
        // SAFETY: live, destroyed only here; the queue pairs that use it hold it by `Arc`, and are gone. The queue goes
        // before its channel.
        let code = unsafe { (verbs.destroy_cq)(self.raw.as_ptr()) };
        if code != 0 {
            let error = io::Error::from_raw_os_error(code);
            tracing::warn!(adapter = %self.context.name, %error, "destroying a completion queue failed");
        }
        self.context.faults().forget(self.raw.as_ptr().addr());
        if let Some(channel) = self.channel {
            // SAFETY: live, destroyed only here, after the queue.
            unsafe { (verbs.destroy_comp_channel)(channel.as_ptr()) };
        }
    }
}

impl Completion {
    fn of(entry: &ibv_wc) -> Self {
        let outcome = match entry.error() {
            Some((code, vendor)) => Outcome::Failed(Status { code, vendor }),
            None if entry.opcode() == ibv_wc_opcode::IBV_WC_RECV_RDMA_WITH_IMM => {
                // In network order, as the sender has written it.
                Outcome::Immediate(u32::from_be(entry.imm_data().unwrap_or(0)))
            }
            None if entry.opcode() == ibv_wc_opcode::IBV_WC_RECV => Outcome::Received(entry.len() as u32),
            None => Outcome::Sent,
        };
        Self { id: entry.wr_id(), outcome }
    }
}
