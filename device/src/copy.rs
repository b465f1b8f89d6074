//! A group's copy between two places in global memory, of any length and alignment.
//!
//! The middle is written in aligned 16-byte words. Where the source is aligned alike, each is one load; where it is not,
//! each is cut out of five aligned pieces of 4 bytes by a byte shift, so a misaligned copy stores as widely, and its loads
//! find in the cache what the first of them brought. The few bytes before and after go one by one (or four by four, where both sides allow). Nothing outside
//! the two ranges is read or written.

use crate::abi::Global;
use crate::arch;
use crate::coop::{Group, Team};
use crate::mem::Steps;

/// Bytes of the widest access.
const WORD: u64 = 16;

/// Bytes of the pieces that a shifted copy loads.
const QUARTER: u64 = 4;

type Word = [u64; 2];

/// Words that a thread has in flight before it stores the first: enough that 8 blocks of 1,024 threads move what 8
/// multiprocessors can. Twice as many were slower where all of the memory's bandwidth is in reach (docs/performance.md).
const IN_FLIGHT: usize = 4;

/// Copies `bytes` bytes from `src` to `dst`. Called by a group; any length, 0 among them, and any alignment. Each thread
/// returns when its own share is stored; to publish the whole, the group syncs and one thread signals.
///
/// # Ordering
///
/// Weak accesses: the source's writers are ordered before the call; the destination is published by what follows.
///
/// # Safety
///
/// Both ranges are mapped to this device and live, and do not overlap. Nobody else writes the source or touches the
/// destination meanwhile.
#[inline(always)]
pub unsafe fn copy<G: Group>(group: G, dst: Global<u8>, src: Global<u8>, bytes: u64) {
    // The usual case comes to its words at once: a small copy's time is that of the instructions before its first load.
    let aligned = (dst.address() | src.address() | bytes).is_multiple_of(WORD);
    let parts = if aligned { Parts::aligned(bytes) } else { Parts::of(dst, src, bytes) };
    let (to, from) = (dst.byte_add(parts.head).cast(), src.byte_add(parts.head));
    // SAFETY: the caller's contract; the words lie inside both ranges, and the edges are what lies around them.
    unsafe {
        if parts.is_shifted {
            shifted(group, to, from, parts.words);
        } else {
            body(group, to, from.cast(), parts.words);
        }
        if !aligned {
            edges(group, dst, src, parts.head, parts.head + parts.words * WORD, bytes);
        }
    }
}

/// How a copy is cut up.
struct Parts {
    /// Bytes before the first aligned word of the destination.
    head: u64,
    /// Whether the source's bytes for that word begin elsewhere than at an aligned address.
    is_shifted: bool,
    /// Whole words from there.
    words: u64,
}

impl Parts {
    #[inline(always)]
    const fn aligned(bytes: u64) -> Self {
        Self { head: 0, is_shifted: false, words: bytes / WORD }
    }

    #[inline(always)]
    fn of(dst: Global<u8>, src: Global<u8>, bytes: u64) -> Self {
        // Less than two words: 32 bits do.
        let to_alignment = (dst.address() as u32).wrapping_neg() % WORD as u32;
        let from = (src.address() as u32).wrapping_add(to_alignment);
        let is_shifted = !from.is_multiple_of(WORD as u32);
        // A shifted copy reads its words four bytes at a time, from the aligned address at or before the first byte: it begins
        // one word later where that address would lie before the source ...
        let before = from % QUARTER as u32;
        let head = if before > to_alignment { to_alignment + WORD as u32 } else { to_alignment };
        // ... and ends where what it reads would pass the source's end.
        let lookahead = if is_shifted { QUARTER as u32 - before } else { 0 };
        let head = u64::from(head).min(bytes);
        Self { head, is_shifted, words: (bytes - head).saturating_sub(lookahead.into()) / WORD }
    }
}

/// Copies `words` words from an address that is not aligned to them.
///
/// Two words of a thread in flight, then one. Each word is cut out of five aligned pieces of four bytes
/// by a byte shift.
///
/// # Safety
///
/// `dst` is aligned and holds `words` words, and so does `src`, with what lies before and behind them up to the next addresses
/// that are aligned to 4 ([`Parts`]).
#[inline(always)]
unsafe fn shifted<G: Group>(group: G, dst: Global<Word>, src: Global<u8>, words: u64) {
    let bits = (src.address() % QUARTER) as u32 * 8;
    let src: Global<Word> = src.byte_add((src.address() % QUARTER).wrapping_neg()).cast();
    let (first, step) = (u64::from(group.rank()), u64::from(group.size()));
    let (mut to, mut from) = (dst.add(first), src.add(first));
    let stride = step * WORD;
    let mut left = words as i64 - first as i64;
    // SAFETY: places from this thread's first on, `step` apart, of which `left` tells how many there are.
    unsafe {
        while left > step as i64 {
            arch::keep_loop();
            cut_batch::<2>(to, from, stride, bits);
            (to, from) = (to.byte_add(2 * stride), from.byte_add(2 * stride));
            left -= 2 * step as i64;
        }
        if left > 0 {
            cut_batch::<1>(to, from, stride, bits);
        }
    }
}

/// `N` words, `stride` bytes apart, each `bits` bits into the five pieces of four bytes at its place: all loads, then all
/// stores.
///
/// # Safety
///
/// As for [`shifted`].
#[inline(always)]
unsafe fn cut_batch<const N: usize>(to: Global<Word>, from: Global<Word>, stride: u64, bits: u32) {
    let mut at = Steps::from(from, stride);
    let pieces: [[u32; 5]; N] = core::array::from_fn(|_| {
        let at = at.next_address::<u32>();
        // SAFETY: the caller's contract.
        core::array::from_fn(|k| unsafe { arch::load_weak_u32(at.add(k as u64)) })
    });
    let mut at = Steps::from(to, stride);
    for k in 0..N {
        let [a, b, c, d, e] = pieces[k];
        // One instruction each, a funnel shift.
        let shift = |low: u32, high: u32| (join(low, high) >> bits) as u32;
        let word = [join(shift(a, b), shift(b, c)), join(shift(c, d), shift(d, e))];
        // SAFETY: the caller's contract.
        unsafe { arch::store_weak_v2_u64(at.next_address(), word) };
    }
}

#[inline(always)]
const fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// Copies `words` words.
///
/// While there is work for every thread four times over, each team takes `4 * t` neighbouring words a turn (`t` its threads),
/// thread `i` the words `i + k * t`: neighbouring words meet in one DRAM page at one time, and each thread has four loads in
/// flight. What is left is dealt word by word to all threads of the group, 4, 2 and 1 of them in flight.
///
/// # Safety
///
/// Both sides are aligned and hold `words` words.
#[inline(always)]
unsafe fn body<G: Group>(group: G, dst: Global<Word>, src: Global<Word>, words: u64) {
    let (first, step) = (u64::from(group.rank()), i64::from(group.size()));
    let (mut to, mut from) = (dst.add(first), src.add(first));
    // Words from this thread's first on; below 1 there is nothing left for it.
    let mut left = words as i64 - first as i64;
    let stride = step as u64 * WORD;
    // SAFETY: places from this thread's first on, `step` apart, of which `left` tells how many there are.
    unsafe {
        // In this order the shortest copies, whose time is that of the way, come to their one word a thread by one comparison.
        if left > step {
            let turned = turns(group.team(), dst, src, words);
            (to, from) = (to.add(turned), from.add(turned));
            left -= turned as i64;
            while left > 3 * step {
                batch::<IN_FLIGHT>(to, from, stride);
                (to, from) = (to.byte_add(4 * stride), from.byte_add(4 * stride));
                left -= 4 * step;
            }
            if left > step {
                batch::<2>(to, from, stride);
                (to, from) = (to.byte_add(2 * stride), from.byte_add(2 * stride));
                left -= 2 * step;
            }
        }
        if left > 0 {
            batch::<1>(to, from, stride);
        }
    }
}

/// The whole turns of a group of several teams; those of one team are what follows for any group. Gives how many words they
/// were.
///
/// # Safety
///
/// As for [`body`].
#[inline(always)]
unsafe fn turns(team: Team, dst: Global<Word>, src: Global<Word>, words: u64) -> u64 {
    let Team { rank, size, index, teams } = team;
    let turn = u64::from(IN_FLIGHT as u32 * size);
    let all = turn * u64::from(teams);
    let mut done = 0;
    if teams > 1 {
        let own = u64::from(index) * turn + u64::from(rank);
        let (mut to, mut from) = (dst.add(own), src.add(own));
        while done + all <= words {
            // SAFETY: the team's turn of the `all` words from `done` on.
            unsafe { batch::<IN_FLIGHT>(to, from, u64::from(size) * WORD) };
            (to, from) = (to.add(all), from.add(all));
            done += all;
        }
    }
    done
}

/// `N` words, `stride` bytes apart: all loads, then all stores.
///
/// # Safety
///
/// They lie inside both ranges.
#[inline(always)]
unsafe fn batch<const N: usize>(to: Global<Word>, from: Global<Word>, stride: u64) {
    let mut at = Steps::from(from, stride);
    // SAFETY: the caller's contract.
    let values: [Word; N] = core::array::from_fn(|_| unsafe { arch::load_weak_v2_u64(at.next_address()) });
    let mut at = Steps::from(to, stride);
    for k in 0..N {
        // SAFETY: the caller's contract.
        unsafe { arch::store_weak_v2_u64(at.next_address(), values[k]) };
    }
}

/// Copies the bytes before `head` and from `tail` on, of `bytes`, by narrow accesses.
///
/// # Safety
///
/// As for [`copy`]; `head <= tail <= bytes`.
#[inline(always)]
pub(crate) unsafe fn edges<G: Group>(
    group: G,
    dst: Global<u8>,
    src: Global<u8>,
    head: u64,
    tail: u64,
    bytes: u64,
) {
    let narrow = !(dst.address() | src.address() | bytes).is_multiple_of(4);
    let unit = if narrow { 1 } else { 4 };
    // In units; a few at most, before and behind.
    let (before, all) = (head as u32 / unit, (head + (bytes - tail)) as u32 / unit);
    let mut i = group.rank();
    while i < all {
        arch::keep_loop();
        let at = u64::from(i * unit) + if i < before { 0 } else { tail - head };
        let (to, from) = (dst.byte_add(at), src.byte_add(at));
        // SAFETY: the caller's contract; a word where both sides, and so head and tail, are aligned to 4.
        unsafe {
            if narrow {
                arch::store_weak_u8(to, arch::load_weak_u8(from));
            } else {
                arch::store_weak_u32(to.cast(), arch::load_weak_u32(from.cast()));
            }
        }
        i += group.size();
    }
}
