//! All-reduce by all-pair packets: every rank sends its whole input to every other, and each sums for itself.
//!
//! One step, so the least latency; `(n - 1) * bytes` leave each rank, so it is for small messages. Each thread sends, reduces
//! and writes back its own elements, so the result may go over the input: nothing of the input is overwritten before it
//! has been sent. All ranks add in the order of the ranks and so get the same bits.
//!
//! # Rounds
//!
//! A round's flag and its half of the scratch come from one word a block in device memory, advanced by the kernel itself:
//! a captured graph replays right. The halves alternate, so a fast rank's next round cannot overwrite what a slow one is
//! still reading; the round after that cannot begin before all have ended this one, since each needs a packet of all.
//!
//! The flag has 32 bits. So that a slot that a long run of short messages leaves alone cannot hold a flag of 2^32 rounds
//! ago, each round also stamps one slot beyond its message, a different one each time.

use core::mem::offset_of;

use static_assertions::{const_assert, const_assert_eq};
use warpwire_device::abi::{
    ChannelId, Flag, Global, Ll16, MAX_RANKS, Packet, Pod, PolicyHandle, Rank, RankTable, WaitError,
};
use warpwire_device::arch::{self, Params};
use warpwire_device::coop::{Block, Grid, Group, SyncGroup};
use warpwire_device::mem::{Element, Steps};
use warpwire_device::packet::{self, Source, Wire, packets_for};
use warpwire_device::spin::Policy;
use warpwire_device::{kernel, rank_entry, reduce};

/// The most blocks of a launch: the rounds words that a rank has.
pub const MAX_BLOCKS: u32 = 64;

/// The most packets of a row: an offset into a rank's scratch fits 32 bits, whatever the number of ranks.
pub const MAX_SLOTS: u32 = 1 << 20;
const_assert!((MAX_RANKS as u64) * (MAX_SLOTS as u64) * 16 <= u32::MAX as u64);

/// One block's count of rounds: the last flag, and the half of the scratch that it used.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The flag of the last round; 0 before the first.
    pub flag: u32,
    /// The half that the last round used: 0 or 1.
    pub half: u32,
}
const_assert_eq!(size_of::<Round>(), 8);

// SAFETY: two `u32` side by side: no padding, every bit pattern valid.
unsafe impl Pod for Round {}

/// Arguments of [`AllReduceAllPair`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllPairArgs {
    /// Each rank's scratch, mapped here: two halves of `ranks - 1` rows of `slots` LL16 packets, a row for each other rank in
    /// their order.
    pub scratch: RankTable<Global<Ll16>>,
    /// The launch's waits and this rank.
    pub policy: PolicyHandle,
    /// `count` elements, aligned to 4.
    pub input: Global<f32>,
    /// Room for as many, aligned to 4; may be `input` itself, but not overlap it otherwise.
    pub output: Global<f32>,
    /// Elements.
    pub count: u64,
    /// [`MAX_BLOCKS`] words of this device's, 0 at first, touched by this kernel alone.
    pub rounds: Global<Round>,
    /// Packets of a row: a power of two, at least `count / 2`, at most [`MAX_SLOTS`].
    pub slots: u32,
    /// Ranks, 2 to [`MAX_RANKS`].
    pub ranks: u32,
}
const_assert_eq!(offset_of!(AllPairArgs, policy), 8 * MAX_RANKS);
const_assert_eq!(size_of::<AllPairArgs>(), 8 * MAX_RANKS + 64);

kernel! {
    /// Sums `count` `f32` over all ranks. At most [`MAX_BLOCKS`] blocks, the same grid on every rank, all resident at once.
    pub struct AllReduceAllPair = "warpwire_all_reduce_all_pair_f32_sum", max_threads = 512, min_blocks = 1;
    unsafe fn(args: AllPairArgs) {
        // SAFETY: the launch's contract: the board is mapped and live.
        let policy = unsafe { Policy::new(args.policy) };
        let mine = args.rounds.add(u64::from(arch::block_index()));
        // SAFETY: the launch's contract: one word a block, written by the same block of the launch before.
        let last = unsafe { arch::load_weak_u64(mine.cast()) };
        let flag = Flag::from_counter((last as u32).wrapping_add(1));
        let half = (last >> 32) as u32 ^ 1;
        // SAFETY: the launch's contract, passed on.
        let done = unsafe { all_pair(&args, &policy, flag, half) };
        // The word may change once all of the block has read it. After a failure it stays: the round did not happen.
        if Block.agree(done).is_ok() {
            // SAFETY: as above.
            unsafe { advance(args.rounds, u64::from(flag.get()) | u64::from(half) << 32) };
        }
    }
}

/// Sets the block's own word and, with the first block, those of the blocks that this launch does not have, so that a
/// launch with more of them finds all words alike. Called by the block, of any size.
///
/// # Safety
///
/// As for the kernel's launch.
#[inline(always)]
unsafe fn advance(rounds: Global<Round>, word: u64) {
    let rounds = rounds.cast::<u64>();
    if Block.is_leader() {
        // SAFETY: the caller's contract.
        unsafe { arch::store_weak_u64(rounds.add(u64::from(arch::block_index())), word) };
    }
    if arch::block_index() == 0 {
        let mut block = arch::grid_size() + Block.rank();
        while block < MAX_BLOCKS {
            // SAFETY: the caller's contract.
            unsafe { arch::store_weak_u64(rounds.add(u64::from(block)), word) };
            block += Block.size();
        }
    }
}

/// Sends, reduces and writes back the calling thread's elements.
///
/// # Safety
///
/// As for the kernel's launch.
#[inline(always)]
unsafe fn all_pair(
    args: &Params<AllPairArgs>,
    policy: &Policy,
    flag: Flag,
    half: u32,
) -> Result<(), WaitError> {
    let (rank, ranks) = (policy.rank().0, args.ranks);
    let bytes = args.count * 4;
    let packets = packets_for::<Ll16>(bytes);
    // Where the first of a rank's rows of this half begins, and this rank's own row in `peer`'s scratch, in packets.
    let rows = u64::from(half * (ranks - 1)) * u64::from(args.slots);
    let row_at = |peer: u32| rows + u64::from(rank - u32::from(rank > peer)) * u64::from(args.slots);
    let (first, step) = (u64::from(Grid.rank()), u64::from(Grid.size()));
    let input: Global<u8> = args.input.cast();
    let aligned = input.address().is_multiple_of(Ll16::PAYLOAD_BYTES);

    let mut i = first;
    while i < packets {
        // SAFETY: packet `i` of the input.
        let payload = unsafe { load(input, i, bytes, aligned) };
        // Each rank begins with the one after it, so that not all write to one at a time.
        let mut k = 1;
        while k < ranks {
            let peer = if rank + k < ranks { rank + k } else { rank + k - ranks };
            // SAFETY: `peer` is below `ranks`; slot `i` of this rank's row there.
            unsafe {
                Ll16::write(
                    rank_entry!(args, AllPairArgs, scratch, peer).add(row_at(peer) + i),
                    payload,
                    flag,
                )
            };
            k += 1;
        }
        i += step;
    }

    // The slot that this round stamps, if its message does not reach it: half as many as flags, since each half of the
    // scratch is used every other round.
    let stamped = u64::from((flag.get() / 2) & (args.slots - 1));
    if first < u64::from(ranks) && first as u32 != rank && stamped >= packets {
        // SAFETY: `first` is below `ranks`; a slot of this rank's row there that no round of this flag reads.
        unsafe {
            let peer = first as u32;
            Ll16::write(rank_entry!(args, AllPairArgs, scratch, peer).add(row_at(peer) + stamped), 0, flag);
        }
    }

    let receive = Receive {
        // SAFETY: `rank` is below `ranks`.
        own: unsafe { rank_entry!(args, AllPairArgs, scratch, rank) }.add(rows),
        input,
        output: args.output.cast(),
        bytes,
        slots: args.slots,
        rank,
        peers: ranks - 1,
        flag,
        policy,
    };
    // SAFETY: the launch's contract: this rank's own scratch, input and output; the thread's own packets.
    unsafe {
        match ranks {
            2 => receive.few::<1, 2, 2>(),
            3 | 4 => receive.few::<3, 1, 3>(),
            _ => receive.many::<7>(),
        }
    }
}

/// The two elements of packet `i`, the second 0 behind an odd end.
///
/// # Safety
///
/// Packet `i` begins inside the `bytes` bytes of `input`, which is aligned to 4, and to 8 where `aligned`.
#[inline(always)]
unsafe fn load(input: Global<u8>, i: u64, bytes: u64, aligned: bool) -> u64 {
    let from = input.byte_add(i * Ll16::PAYLOAD_BYTES);
    let whole = bytes - i * Ll16::PAYLOAD_BYTES >= Ll16::PAYLOAD_BYTES;
    // SAFETY: the caller's contract.
    unsafe {
        if aligned && whole {
            return u64::load_weak(from.cast());
        }
        let low = u64::from(u32::load_weak(from.cast()));
        if whole { low | u64::from(u32::load_weak(from.cast().add(1))) << 32 } else { low }
    }
}

/// What a rank receives, reduces and writes back.
struct Receive<'a> {
    /// Slot 0 of the first row of this round's half.
    own: Global<Ll16>,
    input: Global<u8>,
    output: Global<u8>,
    bytes: u64,
    slots: u32,
    rank: u32,
    peers: u32,
    flag: Flag,
    policy: &'a Policy,
}

impl Receive<'_> {
    /// The calling thread's packets where there are at most `ROWS` peers: `PACKETS` at a time, all rows of each looked at
    /// together; `N` is their product. The fewer the peers, the more packets it takes to have as many looks in flight.
    ///
    /// # Safety
    ///
    /// As for the kernel's launch.
    #[inline(always)]
    unsafe fn few<const ROWS: usize, const PACKETS: usize, const N: usize>(&self) -> Result<(), WaitError> {
        const { assert!(ROWS * PACKETS == N) };
        let packets = packets_for::<Ll16>(self.bytes);
        let step = u64::from(Grid.size());
        let mut i = u64::from(Grid.rank());
        while i < packets {
            // SAFETY: the caller's contract, here and below.
            let terms: [u64; N] = unsafe { self.terms::<ROWS, PACKETS, N>(i, 0) }?;
            for k in 0..PACKETS {
                let at = i + k as u64 * step;
                if at < packets {
                    // SAFETY: packet `at`, whose input only this thread may have overwritten, and has not yet.
                    unsafe {
                        let mine = self.mine(at);
                        let rows = core::array::from_fn(|row| terms[k * ROWS + row]);
                        self.write(at, self.sum::<ROWS>(reduce::IDENTITY_F32X2, &rows, 0, mine));
                    }
                }
            }
            i += PACKETS as u64 * step;
        }
        Ok(())
    }

    /// The calling thread's packets, one at a time, for any number of peers: `ROWS` rows looked at together.
    ///
    /// # Safety
    ///
    /// As for the kernel's launch.
    #[inline(always)]
    unsafe fn many<const ROWS: usize>(&self) -> Result<(), WaitError> {
        let packets = packets_for::<Ll16>(self.bytes);
        let mut i = u64::from(Grid.rank());
        while i < packets {
            // SAFETY: packet `i`, whose input only this thread may have overwritten, and has not yet.
            let mine = unsafe { self.mine(i) };
            let (mut sum, mut base) = (reduce::IDENTITY_F32X2, 0);
            while base < self.peers {
                // SAFETY: the caller's contract.
                let terms: [u64; ROWS] = unsafe { self.terms::<ROWS, 1, ROWS>(i, base) }?;
                sum = self.sum(sum, &terms, base, mine);
                base += ROWS as u32;
            }
            // SAFETY: as above.
            unsafe { self.write(i, sum) };
            i += u64::from(Grid.size());
        }
        Ok(())
    }

    /// `sum` and the terms of the peers from `base` on, in the order of the ranks, `mine` in its place among them.
    #[inline(always)]
    fn sum<const ROWS: usize>(&self, mut sum: u64, terms: &[u64; ROWS], base: u32, mine: u64) -> u64 {
        for row in 0..ROWS {
            let peer = base + row as u32;
            if peer == self.rank && peer < self.peers {
                sum = reduce::sum_f32x2(sum, mine);
            }
            if peer < self.peers {
                sum = reduce::sum_f32x2(sum, terms[row]);
            }
        }
        // The last rank comes behind all its peers.
        let last = self.rank == self.peers && base + ROWS as u32 >= self.peers;
        if last { reduce::sum_f32x2(sum, mine) } else { sum }
    }

    /// `ROWS` rows from `base` on of `PACKETS` packets from `i` on, a grid's size apart.
    ///
    /// # Safety
    ///
    /// As for the kernel's launch.
    #[inline(always)]
    unsafe fn terms<const ROWS: usize, const PACKETS: usize, const N: usize>(
        &self,
        i: u64,
        base: u32,
    ) -> Result<[u64; N], WaitError> {
        let left = packets_for::<Ll16>(self.bytes) - i;
        let row_bytes = u64::from(self.slots) * size_of::<Ll16>() as u64;
        let packet_bytes = u64::from(Grid.size()) * size_of::<Ll16>() as u64;
        let first = self.own.add(i).byte_add(u64::from(base) * row_bytes);
        let there = |k: u32| {
            let (packet, row) = (u64::from(k / ROWS as u32), k % ROWS as u32);
            packet * u64::from(Grid.size()) < left && base + row < self.peers
        };
        let places = || {
            let (mut packet, mut row, mut k) = (Steps::from(first, packet_bytes), Steps::from(first, 0), 0);
            move || {
                if k % ROWS == 0 {
                    row = Steps::from(packet.next_address::<Ll16>(), row_bytes);
                }
                k += 1;
                row.next_address()
            }
        };
        let place = |k: u32| {
            let (packet, row) = (u64::from(k / ROWS as u32), k % ROWS as u32);
            let at = first.byte_add(packet * packet_bytes + u64::from(row) * row_bytes);
            let peer = base + row;
            // Peer `p` is rank `p`, or one more from this rank on.
            let peer = Rank(peer + u32::from(peer >= self.rank));
            (at, Source { policy: self.policy, peer, channel: ChannelId(0) })
        };
        // SAFETY: the caller's contract: a slot of this rank's own scratch, and no access where there is no packet.
        let look = |words, at| unsafe { Ll16::load_unless_ready(words, at, self.flag) };
        // SAFETY: as above, each of them.
        unsafe { packet::read_batch(self.flag, there, places, place, look) }
    }

    /// This rank's own packet `i`.
    ///
    /// # Safety
    ///
    /// As for the kernel's launch; the packet is one of the message's.
    #[inline(always)]
    unsafe fn mine(&self, i: u64) -> u64 {
        // SAFETY: packet `i` begins inside the input.
        unsafe { load(self.input, i, self.bytes, self.input.address().is_multiple_of(Ll16::PAYLOAD_BYTES)) }
    }

    /// Writes packet `i` of the output.
    ///
    /// # Safety
    ///
    /// As for the kernel's launch; the packet is one of the message's.
    #[inline(always)]
    unsafe fn write(&self, i: u64, sum: u64) {
        let at = i * Ll16::PAYLOAD_BYTES;
        let to = self.output.byte_add(at);
        // SAFETY: the caller's contract.
        unsafe {
            if self.bytes - at < Ll16::PAYLOAD_BYTES {
                u32::store_weak(to.cast(), sum as u32);
            } else if self.output.address().is_multiple_of(Ll16::PAYLOAD_BYTES) {
                u64::store_weak(to.cast(), sum);
            } else {
                u32::store_weak(to.cast(), sum as u32);
                u32::store_weak(to.cast().add(1), (sum >> 32) as u32);
            }
        }
    }
}
