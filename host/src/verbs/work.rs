//! Requests of a send queue.

use ibverbs_sys as ffi;

/// A range of this process's registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) key: u32,
}

/// A place in a peer's registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) address: u64,
    pub(crate) key: u32,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Bytes into the peer's memory.
    Write { from: Local, to: Remote },
    /// Eight bytes of the request itself into the peer's memory.
    WriteWord { value: u64, to: Remote },
    /// Nothing but an immediate value, which takes a receive of the peer's.
    WriteImmediate { value: u32 },
    /// An addition to a word of the peer's; what it held before goes to `old`.
    FetchAdd { add: u64, to: Remote, old: Local },
    /// A message of the request itself, which takes a receive of the peer's.
    Send { words: [u64; 3] },
}

impl Work {
    /// What it is, for an error.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Write { from, .. } => format!("a write of {} bytes", from.bytes),
            Self::WriteWord { .. } => "a write of a word".to_owned(),
            Self::WriteImmediate { .. } => "a signal by immediate value".to_owned(),
            Self::FetchAdd { .. } => "a signal by fetch-and-add".to_owned(),
            Self::Send { .. } => "a message".to_owned(),
        }
    }
}

/// A request, with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) work: Work,
    /// Whether its success is told; its failure is in any case.
    pub(crate) signalled: bool,
}

/// Requests in the library's form. What they point to lies in the boxes beside them, which do not move.
pub(super) struct Chain {
    requests: Box<[ffi::ibv_send_wr]>,
    _ranges: Box<[ffi::ibv_sge]>,
    _inline: Box<[[u64; 3]]>,
}

impl Chain {
    /// Puts requests in a row, in order.
    pub(super) fn new(requests: &[Request]) -> Self {
        let mut inline: Box<[[u64; 3]]> =
            requests.iter().map(|request| inline_words(&request.work)).collect();
        let mut ranges: Box<[ffi::ibv_sge]> =
            requests.iter().zip(&mut inline).map(|(request, words)| range(&request.work, words)).collect();
        let mut raw: Box<[ffi::ibv_send_wr]> =
            requests.iter().zip(&mut ranges).map(|(request, range)| raw(request, range)).collect();
        for index in (1..raw.len()).rev() {
            let next = &raw mut raw[index];
            raw[index - 1].next = next;
        }
        Self { requests: raw, _ranges: ranges, _inline: inline }
    }

    /// The first; null where there is none.
    pub(super) fn first(&mut self) -> *mut ffi::ibv_send_wr {
        self.requests.first_mut().map_or(std::ptr::null_mut(), |first| first)
    }
}

fn inline_words(work: &Work) -> [u64; 3] {
    match *work {
        Work::WriteWord { value, .. } => [value, 0, 0],
        Work::Send { words } => words,
        _ => [0; 3],
    }
}

fn range(work: &Work, inline: &mut [u64; 3]) -> ffi::ibv_sge {
    let of_inline = |length: usize, inline: &mut [u64; 3]| ffi::ibv_sge {
        addr: inline.as_mut_ptr().expose_provenance() as u64,
        length: length as u32,
        lkey: 0,
    };
    match *work {
        Work::Write { from, .. } | Work::FetchAdd { old: from, .. } => {
            ffi::ibv_sge { addr: from.address, length: from.bytes, lkey: from.key }
        }
        Work::WriteWord { .. } => of_inline(size_of::<u64>(), inline),
        Work::Send { .. } => of_inline(size_of::<[u64; 3]>(), inline),
        Work::WriteImmediate { .. } => ffi::ibv_sge::default(),
    }
}

fn raw(request: &Request, range: &mut ffi::ibv_sge) -> ffi::ibv_send_wr {
    let mut raw = ffi::ibv_send_wr {
        wr_id: request.id,
        sg_list: range,
        num_sge: 1,
        send_flags: if request.signalled { ffi::ibv_send_flags::IBV_SEND_SIGNALED.0 } else { 0 },
        ..Default::default()
    };
    match request.work {
        Work::Write { to, .. } => {
            raw.opcode = ffi::ibv_wr_opcode::IBV_WR_RDMA_WRITE;
            raw.wr.rdma.remote_addr = to.address;
            raw.wr.rdma.rkey = to.key;
        }
        Work::WriteWord { to, .. } => {
            raw.opcode = ffi::ibv_wr_opcode::IBV_WR_RDMA_WRITE;
            raw.send_flags |= ffi::ibv_send_flags::IBV_SEND_INLINE.0;
            raw.wr.rdma.remote_addr = to.address;
            raw.wr.rdma.rkey = to.key;
        }
        Work::WriteImmediate { value } => {
            raw.opcode = ffi::ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM;
            raw.num_sge = 0;
            raw.__bindgen_anon_1.imm_data = value.to_be();
        }
        Work::FetchAdd { add, to, .. } => {
            raw.opcode = ffi::ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD;
            raw.wr.atomic.remote_addr = to.address;
            raw.wr.atomic.compare_add = add;
            raw.wr.atomic.rkey = to.key;
        }
        Work::Send { .. } => {
            raw.opcode = ffi::ibv_wr_opcode::IBV_WR_SEND;
            raw.send_flags |= ffi::ibv_send_flags::IBV_SEND_INLINE.0;
        }
    }
    raw
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stand_in_a_row_in_order() {
        let from = Local { address: 0x1000, bytes: 77, key: 5 };
        let to = Remote { address: 0x2000, key: 6 };
        let works = [
            Work::Write { from, to },
            Work::Send { words: [1, 2, 3] },
            Work::WriteImmediate { value: 0x0102_0304 },
            Work::FetchAdd { add: 9, to, old: from },
        ];
        let requests: Vec<Request> = works
            .iter()
            .enumerate()
            .map(|(at, &work)| Request { id: at as u64, work, signalled: at == 3 })
            .collect();
        let mut chain = Chain::new(&requests);
        let mut at = chain.first();
        let mut seen = Vec::new();
        while !at.is_null() {
            // SAFETY: a request of the chain, which is live.
            let raw = unsafe { &*at };
            seen.push((raw.wr_id, raw.opcode, raw.num_sge, raw.send_flags));
            if raw.num_sge == 1 {
                // SAFETY: its one range, in the chain's box.
                let range = unsafe { &*raw.sg_list };
                assert_eq!(range.length, [77, 24, 0, 77][raw.wr_id as usize]);
            }
            at = raw.next;
        }
        // Opcodes of `enum ibv_wr_opcode`, flags of `enum ibv_send_flags`: signalled is 2, inline 8.
        assert_eq!(seen, [(0, 0, 1, 0), (1, 2, 1, 8), (2, 1, 0, 0), (3, 6, 1, 2)]);
        // SAFETY: the third request's value was set.
        let immediate = unsafe { chain.requests[2].__bindgen_anon_1.imm_data };
        assert_eq!(immediate.to_ne_bytes(), [1, 2, 3, 4]);
        assert!(Chain::new(&[]).first().is_null());
    }
}
