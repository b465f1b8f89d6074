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
use warpwire_device::mem::Element;
use warpwire_device::packet::{self, Batch, Source, Wire, packets_for};
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
        let mut peer = next(rank, ranks);
        while peer != rank {
            // SAFETY: `peer` is below `ranks`; slot `i` of this rank's row there.
            unsafe {
                Ll16::write(
                    rank_entry!(args, AllPairArgs, scratch, peer).add(row_at(peer) + i),
                    payload,
                    flag,
                )
            };
            peer = next(peer, ranks);
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

    // SAFETY: `rank` is below `ranks`.
    let own = unsafe { rank_entry!(args, AllPairArgs, scratch, rank) }.add(rows);
    let output: Global<u8> = args.output.cast();
    let output_aligned = output.address().is_multiple_of(Ll16::PAYLOAD_BYTES);
    let mut i = first;
    while i < packets {
        // SAFETY: packet `i` of the input, which only this thread may have overwritten, and has not yet.
        let mine = unsafe { load(input, i, bytes, aligned) };
        // SAFETY: slot `i` of each row of this rank's own scratch.
        let sum = unsafe {
            sum_of_rows(own.add(i), args.slots * size_of::<Ll16>() as u32, mine, rank, ranks, flag, policy)
        }?;
        let length = bytes - i * Ll16::PAYLOAD_BYTES;
        let to = output.byte_add(i * Ll16::PAYLOAD_BYTES);
        // SAFETY: packet `i` of the output.
        unsafe {
            if length < Ll16::PAYLOAD_BYTES {
                u32::store_weak(to.cast(), sum as u32);
            } else if output_aligned {
                u64::store_weak(to.cast(), sum);
            } else {
                u32::store_weak(to.cast(), sum as u32);
                u32::store_weak(to.cast().add(1), (sum >> 32) as u32);
            }
        }
        i += step;
    }
    Ok(())
}

#[inline(always)]
const fn next(rank: u32, ranks: u32) -> u32 {
    if rank + 1 == ranks { 0 } else { rank + 1 }
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

/// Rows that a thread looks at together: those of all the other ranks of a node of 8, in one latency.
const ROWS: usize = 7;

/// The sum of one slot over all rows, in the order of the ranks, `mine` in its own place.
///
/// # Safety
///
/// A slot of this rank's scratch lies `row * stride` bytes behind `slot`, for each row below `ranks - 1`.
#[inline(always)]
unsafe fn sum_of_rows(
    slot: Global<Ll16>,
    stride: u32,
    mine: u64,
    rank: u32,
    ranks: u32,
    flag: Flag,
    policy: &Policy,
) -> Result<u64, WaitError> {
    let peers = ranks - 1;
    let mut sum = reduce::IDENTITY_F32X2;
    let mut base = 0;
    while base < peers {
        let peer = |k: usize| base + k as u32;
        // Peer `p` is rank `p`, or one more from this rank on.
        let source =
            |k| Source { policy, peer: Rank(peer(k) + u32::from(peer(k) >= rank)), channel: ChannelId(0) };
        let batch = Batch {
            first: slot.byte_add(u64::from(base * stride)),
            stride: u64::from(stride),
            left: i64::from(peers - base),
            left_step: 1,
        };
        // SAFETY: the caller's contract.
        let terms: [u64; ROWS] = unsafe { packet::read_batch(flag, batch, source) }?;
        for k in 0..ROWS {
            if peer(k) == rank && rank < peers {
                sum = reduce::sum_f32x2(sum, mine);
            }
            if peer(k) < peers {
                sum = reduce::sum_f32x2(sum, terms[k]);
            }
        }
        base += ROWS as u32;
    }
    Ok(if rank == peers { reduce::sum_f32x2(sum, mine) } else { sum })
}
