//! A group's copy between two places in global memory, of any length and alignment.
//!
//! The middle is written in aligned 16-byte words. Where the source is aligned alike, each is one load; where it is not,
//! each is cut out of two neighbouring aligned words by a byte shift, so a misaligned copy moves the same bytes by the same
//! wide accesses. The few bytes before and after go one by one (or four by four, where both sides allow). Nothing outside
//! the two ranges is read or written.

use crate::abi::Global;
use crate::arch;
use crate::coop::{Group, Team};
use crate::mem::Steps;

/// Bytes of the widest access.
const WORD: u64 = 16;

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
    // SAFETY: the caller's contract.
    unsafe {
        // The usual case stands by itself: a small copy's time is that of the instructions before its first load.
        if (dst.address() | src.address() | bytes).is_multiple_of(WORD) {
            body::<_, G>(group, dst.cast(), src.cast(), bytes / WORD, Plain);
        } else {
            unaligned(group, dst, src, bytes);
        }
    }
}

/// How a word is loaded. Not a closure: those are not sure to be inlined.
trait Load: Copy {
    /// The word for the place that `at` is in the aligned source.
    ///
    /// # Safety
    ///
    /// As for [`copy`].
    unsafe fn load(self, at: Global<Word>) -> Word;
}

/// The word itself.
#[derive(Clone, Copy)]
struct Plain;

impl Load for Plain {
    #[inline(always)]
    unsafe fn load(self, at: Global<Word>) -> Word {
        // SAFETY: the caller's contract.
        unsafe { arch::load_weak_v2_u64(at) }
    }
}

/// The 16 bytes that begin so many bits into it.
#[derive(Clone, Copy)]
struct Shifted(u32);

impl Load for Shifted {
    #[inline(always)]
    unsafe fn load(self, at: Global<Word>) -> Word {
        // SAFETY: the caller's contract.
        unsafe { cut(arch::load_weak_v2_u64(at), arch::load_weak_v2_u64(at.add(1)), self.0) }
    }
}

/// A copy of any length and alignment.
///
/// # Safety
///
/// As for [`copy`].
#[inline(always)]
unsafe fn unaligned<G: Group>(group: G, dst: Global<u8>, src: Global<u8>, bytes: u64) {
    let Parts { head, shift, words } = Parts::of(dst, src, bytes);
    let (to, from) = (dst.byte_add(head).cast(), src.byte_add(head));
    // SAFETY: the caller's contract; the words lie inside both ranges, and the edges are what lies around them.
    unsafe {
        if shift == 0 {
            body::<_, G>(group, to, from.cast(), words, Plain);
        } else {
            let first = from.byte_add(shift.wrapping_neg()).cast();
            body::<_, G>(group, to, first, words, Shifted(shift as u32 * 8));
        }
        edges(group, dst, src, head, head + words * WORD, bytes);
    }
}

/// How a copy is cut up.
struct Parts {
    /// Bytes before the first aligned word of the destination.
    head: u64,
    /// How far the source's bytes for that word lie behind an aligned address.
    shift: u64,
    /// Whole words from there.
    words: u64,
}

impl Parts {
    #[inline(always)]
    fn of(dst: Global<u8>, src: Global<u8>, bytes: u64) -> Self {
        let to_alignment = dst.address().wrapping_neg() % WORD;
        let shift = src.byte_add(to_alignment).address() % WORD;
        // A shifted copy reads the whole aligned word in which its first byte stands: begin one word later where that word
        // would begin before the source does.
        let head = if shift > to_alignment { to_alignment + WORD } else { to_alignment };
        // ... and ends where its second word would pass the source's end.
        let lookahead = if shift == 0 { 0 } else { WORD - shift };
        let head = head.min(bytes);
        Self { head, shift, words: (bytes - head).saturating_sub(lookahead) / WORD }
    }
}

/// The 16 bytes that begin `bits` bits into the 32 bytes of `low` and `high`. `bits` is a multiple of 8 below 128.
#[inline(always)]
fn cut(low: Word, high: Word, bits: u32) -> Word {
    // Whole 32-bit words first, by two and by one, then the rest by funnel shifts, each one instruction. Word by word: an
    // array indexed by a condition would go through local memory.
    let (a, b, c, d, e, f, g, h) = (
        low[0] as u32,
        (low[0] >> 32) as u32,
        low[1] as u32,
        (low[1] >> 32) as u32,
        high[0] as u32,
        (high[0] >> 32) as u32,
        high[1] as u32,
        (high[1] >> 32) as u32,
    );
    let (two, one) = (bits & 64 != 0, bits & 32 != 0);
    let pick = |later: bool, x: u32, y: u32| if later { y } else { x };
    let (a, b, c) = (pick(two, a, c), pick(two, b, d), pick(two, c, e));
    let (d, e, f) = (pick(two, d, f), pick(two, e, g), pick(two, f, h));
    let (a, b, c, d, e) =
        (pick(one, a, b), pick(one, b, c), pick(one, c, d), pick(one, d, e), pick(one, e, f));
    let shift = |x: u32, y: u32| (join(x, y) >> (bits % 32)) as u32;
    [join(shift(a, b), shift(b, c)), join(shift(c, d), shift(d, e))]
}

#[inline(always)]
const fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// Stores what `load` makes of each of `words` places at `src` at the same place of `dst`.
///
/// While there is work for every thread four times over, each team takes `4 * t` neighbouring words a turn (`t` its threads),
/// thread `i` the words `i + k * t`: neighbouring words meet in one DRAM page at one time, and each thread has four loads in
/// flight. What is left is dealt word by word to all threads of the group, 4, 2 and 1 of them in flight.
///
/// # Safety
///
/// `dst` is aligned and holds `words` words; `load` may load at the address of each of `src`'s.
#[inline(always)]
unsafe fn body<L: Load, G: Group>(
    group: G,
    mut dst: Global<Word>,
    mut src: Global<Word>,
    mut words: u64,
    load: L,
) {
    let (first, step) = (u64::from(group.rank()), group.size());
    // The shortest way for the shortest copies, whose time is that of the way.
    if words <= u64::from(step) {
        if first < words {
            // SAFETY: word `first`.
            unsafe { batch::<1, L>(dst.add(first), src.add(first), 0, load) };
        }
        return;
    }
    let Team { rank, size, index, teams } = group.team();
    let turn = u64::from(IN_FLIGHT as u32 * size);
    let all = turn * u64::from(teams);
    if words >= all {
        let own = u64::from(index) * turn + u64::from(rank);
        let (mut to, mut from) = (dst.add(own), src.add(own));
        while words >= all {
            // SAFETY: the team's turn of `all` words that are left.
            unsafe { batch::<IN_FLIGHT, L>(to, from, u64::from(size) * WORD, load) };
            (to, from) = (to.add(all), from.add(all));
            words -= all;
        }
        let back = (own * WORD).wrapping_neg();
        (dst, src) = (to.byte_add(back), from.byte_add(back));
    }
    let (mut to, mut from) = (dst.add(first), src.add(first));
    // Words from this thread's first on; below 1 there is nothing left for it.
    let mut left = words as i64 - first as i64;
    let stride = u64::from(step) * WORD;
    // SAFETY: places from this thread's first on, `step` apart, of which `left` tells how many there are.
    unsafe {
        if left > 3 * i64::from(step) {
            batch::<4, L>(to, from, stride, load);
            return;
        }
        if left > i64::from(step) {
            batch::<2, L>(to, from, stride, load);
            (to, from) = (to.byte_add(2 * stride), from.byte_add(2 * stride));
            left -= 2 * i64::from(step);
        }
        if left > 0 {
            batch::<1, L>(to, from, stride, load);
        }
    }
}

/// `N` words, `stride` bytes apart: all loads, then all stores.
///
/// # Safety
///
/// They lie inside both ranges.
#[inline(always)]
unsafe fn batch<const N: usize, L: Load>(to: Global<Word>, from: Global<Word>, stride: u64, load: L) {
    let mut at = Steps::from(from, stride);
    // SAFETY: the caller's contract.
    let values: [Word; N] = core::array::from_fn(|_| unsafe { load.load(at.next_address()) });
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
    let step = u64::from(group.size()) * unit;
    let end = head + (bytes - tail);
    let mut i = u64::from(group.rank()) * unit;
    while i < end {
        let at = if i < head { i } else { i - head + tail };
        let (to, from) = (dst.byte_add(at), src.byte_add(at));
        // SAFETY: the caller's contract; a word where both sides, and so head and tail, are aligned to 4.
        unsafe {
            if narrow {
                arch::store_weak_u8(to, arch::load_weak_u8(from));
            } else {
                arch::store_weak_u32(to.cast(), arch::load_weak_u32(from.cast()));
            }
        }
        i = arch::advance(i, step); // a few turns at most: not unrolled
    }
}
