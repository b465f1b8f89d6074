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

/// Words that a thread has in flight before it stores the first: enough that 8 blocks of 1,024 threads move what 8
/// multiprocessors can, and no more registers than 1,024 threads may have.
const IN_FLIGHT: usize = 8;

/// The same where each word takes two loads.
const IN_FLIGHT_SHIFTED: usize = 4;

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
    let to_alignment = dst.address().wrapping_neg() % WORD;
    let shift = src.byte_add(to_alignment).address() % WORD;
    // A shifted copy reads the whole aligned word in which its first byte stands: begin one word later where that word
    // would begin before the source does.
    let head = if shift > to_alignment { to_alignment + WORD } else { to_alignment };
    // ... and ends where its second word would pass the source's end.
    let lookahead = if shift == 0 { 0 } else { WORD - shift };
    let words = bytes.saturating_sub(head + lookahead) / WORD;

    // SAFETY: the caller's contract; the words lie inside both ranges, and the edges are what lies around them.
    unsafe {
        if words == 0 {
            edges(group, dst, src, bytes, bytes, bytes);
            return;
        }
        let (to, from) = (dst.byte_add(head).cast(), src.byte_add(head));
        if shift == 0 {
            body::<IN_FLIGHT, G>(group, to, from.cast(), words, |at, there| {
                arch::load_weak_v2_u64_if(there, at)
            });
        } else {
            let aligned = from.byte_add(shift.wrapping_neg()).cast();
            let bits = shift as u32 * 8;
            body::<IN_FLIGHT_SHIFTED, G>(group, to, aligned, words, |at, there| {
                let (low, high) =
                    (arch::load_weak_v2_u64_if(there, at), arch::load_weak_v2_u64_if(there, at.add(1)));
                cut(low, high, bits)
            });
        }
        edges(group, dst, src, head, head + words * WORD, bytes);
    }
}

/// The 16 bytes that begin `bits` bits into the 32 bytes of `low` and `high`. `bits` is a multiple of 8 below 128.
#[inline(always)]
fn cut(low: [u64; 2], high: [u64; 2], bits: u32) -> [u64; 2] {
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
/// A turn of a team of `t` threads is `N * t` neighbouring words, thread `i` taking the words `i + k * t`; the teams take
/// turns. Neighbouring words meet in one DRAM page at one time, and each thread has `N` loads in flight. The last turn,
/// which may not be whole, is the same with its accesses predicated.
///
/// # Safety
///
/// `dst` is aligned and holds `words` words; `load` may be called for the address of each of `src`'s, and with `false` for
/// any.
#[inline(always)]
unsafe fn body<const N: usize, G: Group>(
    group: G,
    dst: Global<[u64; 2]>,
    src: Global<[u64; 2]>,
    words: u64,
    load: impl Fn(Global<[u64; 2]>, bool) -> [u64; 2],
) {
    let Team { rank, size, index, teams } = group.team();
    let turn = N as u32 * size;
    let first = u64::from(index) * u64::from(turn) + u64::from(rank);
    let (mut to, mut from) = (dst.add(first), src.add(first));
    let stride = u64::from(turn) * u64::from(teams);
    let step = u64::from(size) * WORD;
    // Words from this thread's first on; below 1 there is nothing left for it.
    let mut left = words as i64 - first as i64;
    while left > i64::from(turn - size) {
        let mut at = Steps::from(from, step);
        let values: [[u64; 2]; N] = core::array::from_fn(|_| load(at.next_address(), true));
        let mut at = Steps::from(to, step);
        for k in 0..N {
            // SAFETY: the place is below `words`.
            unsafe { arch::store_weak_v2_u64(at.next_address(), values[k]) };
        }
        (to, from) = (to.add(stride), from.add(stride));
        left -= stride as i64;
    }
    if left > 0 {
        let (mut at, mut there) = (Steps::from(from, step), Steps::left(left, size));
        let values: [[u64; 2]; N] = core::array::from_fn(|_| load(at.next_address(), there.next_is_left()));
        let (mut at, mut there) = (Steps::from(to, step), Steps::left(left, size));
        for k in 0..N {
            // SAFETY: where it is stored, the place is below `words`.
            unsafe { arch::store_weak_v2_u64_if(there.next_is_left(), at.next_address(), values[k]) };
        }
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
